"""Trees as values: folding, digests, writing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.errors import CourseBroken
from course.manifest import Course, load_course
from course.snapshot import (
    File,
    check_lock,
    checkpoint,
    checkpoint_before,
    digest,
    overlay,
    read_lock,
    read_tree,
    write_lock,
    write_tree,
)

NAMES = st.text("abcxyz_é", min_size=1, max_size=5)
TREES = st.dictionaries(NAMES, st.builds(File, st.binary(max_size=20), st.booleans()), max_size=6)


def test_a_checkpoint_is_the_base_with_the_layers_over_it(tiny: Course) -> None:
    """Later chapters add their files; the one before lacks them."""
    assert set(checkpoint(tiny, "02")) - set(checkpoint_before(tiny, "02")) == {
        "src/tally/report.py"}
    assert "src/tally/empty.txt" in checkpoint(tiny, "01")


def test_later_files_replace_earlier_ones_and_removed_ones_go() -> None:
    """REMOVED lists paths that a layer takes away, and is no file itself."""
    below = {"a": File(b"1"), "b": File(b"2")}
    layer = {"b": File(b"3"), "REMOVED": File(b"a\n")}
    assert overlay(below, layer) == {"b": File(b"3")}


def test_removing_what_is_not_there_is_refused() -> None:
    """A REMOVED line that removes nothing is a mistake in the layer."""
    with pytest.raises(CourseBroken, match="nowhere"):
        overlay({}, {"REMOVED": File(b"nowhere\n")})


@pytest.mark.parametrize(("one", "other"), [("A.py", "a.py"), ("é", "e\u0301"), ("a", "a/b")])
def test_names_that_are_one_on_some_file_systems_are_refused(one: str, other: str) -> None:
    """Case twins, normalisation twins and a file that is also a folder."""
    with pytest.raises(CourseBroken):
        overlay({one: File(b"")}, {other: File(b"")})


@given(TREES, TREES)
def test_digests_are_equal_only_for_equal_trees(one: dict[str, File], two: dict[str, File]) -> None:
    """Paths and contents decide, nothing else."""
    same = {p: f.data for p, f in one.items()} == {p: f.data for p, f in two.items()}
    assert (digest(one) == digest(two)) is same


def test_a_digest_cannot_be_shifted_between_path_and_content() -> None:
    """Lengths stand before each part, so moving a byte across changes the digest."""
    assert digest({"ab": File(b"c")}) != digest({"a": File(b"bc")})


def test_the_digest_is_as_documented() -> None:
    """sha256 of length-prefixed POSIX paths and contents in sorted order."""
    parts = [b"a", b"1", b"b/c", b""]
    want = hashlib.sha256(b"".join(len(p).to_bytes(8, "big") + p for p in parts)).hexdigest()
    assert digest({"b/c": File(b""), "a": File(b"1")}) == want


@given(TREES)
def test_what_is_written_is_what_is_read(tree: dict[str, File]) -> None:
    """Contents, empty files and the executable bit survive."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write_tree(tree, Path(folder))
        assert read_tree(Path(folder)) == tree


def test_links_and_special_files_are_refused_by_name(tmp_path: Path) -> None:
    """A layer holds only regular files."""
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(CourseBroken, match="link"):
        read_tree(tmp_path)


def test_caches_are_no_part_of_a_tree(tmp_path: Path) -> None:
    """__pycache__ and stray .pyc files are not read."""
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_bytes(b"")
    (tmp_path / "y.pyc").write_bytes(b"")
    assert read_tree(tmp_path) == {}


def test_a_changed_layer_is_refused_until_the_lock_is_written_anew(own_tiny: Path) -> None:
    """A change in chapter 01 shows which chapters moved."""
    course = load_course(own_tiny)
    check_lock(course, "02", checkpoint(course, "02"))
    layer = own_tiny / "solutions/01-counter/src/tally/counter.py"
    layer.write_text(layer.read_text("utf-8") + "\n", "utf-8")
    with pytest.raises(CourseBroken, match="02-report") as caught:
        check_lock(course, "02", checkpoint(course, "02"))
    assert "--lock" in caught.value.next_command
    assert write_lock(course) == ["01-counter", "02-report"]
    check_lock(course, "02", checkpoint(course, "02"))


def test_the_lock_holds_every_chapter_once(tiny: Course) -> None:
    """One line a chapter."""
    assert list(read_lock(tiny)) == ["01-counter", "02-report"]
