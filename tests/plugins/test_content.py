"""Hostile content: what Python could run beside the source, twins, links, swaps, sizes."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import random
import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .conftest import TOOL, Bench, in_child

IMPORT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import tool
print(json.dumps(tool.execute({}, None)))
"""


def refused(pi: Any, folder: Path) -> str:
    with pytest.raises(pi.errors.CourseError) as caught:
        pi.plugin_content.read_content(folder)
    assert str(folder) not in str(caught.value)
    return str(caught.value.code)


def test_shipped_bytecode_runs_instead_of_the_source_and_is_refused(
    pi: Any, src: Path, bench: Bench
) -> None:
    """The attack works on a plain import: the pyc answers, whatever the source says."""
    evil = bench.root / "evil.py"
    evil.write_text(TOOL.replace("seen ", "evil "))
    cached = Path(importlib.util.cache_from_source(str(bench.demo / "tool.py")))
    cached.parent.mkdir()
    py_compile.compile(
        str(evil), str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    assert in_child(src, IMPORT, bench.demo) == "evil nothing"
    assert refused(pi, bench.demo) == "CONTENT_INVALID"


@pytest.mark.parametrize(
    "path",
    [
        "tool.cpython-311-x86_64-linux-gnu.so", "tool.abi3.so", "tool.pyd", "a.dll", "a.dylib",
        "tool.pyc", "tool.pyo", "TOOL.PYC", "x.pth", "x.egg", "x.whl", "x.zip", "x.tar.gz", "x.sh",
        "sub/__pycache__/x.txt", "sub/__PYCACHE__/x.txt", ".hidden", "sub/.git/config", "~x.py",
        "a;b.txt", "nul.txt", "COM1.md", "aux", "sub/trailing.", "caf\u00e9.txt", "cafe\u0301.txt",
        "tool\u200b.py", "a\nb.txt", "\udcff.txt",
    ],
    ids=ascii,
)  # fmt: skip
def test_files_that_do_not_belong_are_refused(pi: Any, bench: Bench, path: str) -> None:
    """Anything that could be run unread, or read differently elsewhere, refuses the plugin."""
    file = bench.demo / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"")
    assert refused(pi, bench.demo) == "CONTENT_INVALID"


@pytest.mark.parametrize("twin", ["Tool.py", "TOOL.PY", "PLUGIN.json"])
def test_twins_by_case_are_refused(pi: Any, bench: Bench, twin: str) -> None:
    """On another disk the two would be one file, and which of them nobody knows."""
    if (bench.demo / twin).exists():
        pytest.skip("this disk does not tell the cases apart")
    (bench.demo / twin).write_text("")
    assert refused(pi, bench.demo) == "CONTENT_INVALID"


def test_special_files_are_refused_at_once(pi: Any, bench: Bench) -> None:
    """A FIFO would wait for a writer, a socket cannot be read: neither is opened for long."""
    os.mkfifo(bench.demo / "pipe.txt")
    assert refused(pi, bench.demo) == "CONTENT_INVALID"
    (bench.demo / "pipe.txt").unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(bench.demo / "sock.txt"))
        assert refused(pi, bench.demo) == "CONTENT_INVALID"


def test_a_folder_that_links_to_itself_ends(pi: Any, bench: Bench) -> None:
    """No walk goes through a link, so none goes round."""
    (bench.demo / "loop").symlink_to(".")
    assert refused(pi, bench.demo) == "CONTENT_INVALID"


@pytest.mark.parametrize("excess", ["files", "depth", "file_bytes", "total_bytes"])
def test_limits_are_exact(pi: Any, bench: Bench, excess: str) -> None:
    """What just fits is read, one more of anything is refused."""
    shutil.rmtree(bench.demo)
    deepest = bench.demo / "a" / "b"
    deepest.mkdir(parents=True)
    for number in range(3):
        (deepest / f"f{number}.txt").write_bytes(b"x" * 10)
    exact = {"files": 3, "depth": 2, "file_bytes": 10, "total_bytes": 30}
    limits = pi.plugin_content.ContentLimits
    assert len(pi.plugin_content.read_content(bench.demo, limits(**exact)).files) == 3
    with pytest.raises(pi.errors.CourseError) as caught:
        pi.plugin_content.read_content(bench.demo, limits(**(exact | {excess: exact[excess] - 1})))
    assert caught.value.code == "CONTENT_INVALID"


def test_a_huge_file_is_not_read(pi: Any, bench: Bench) -> None:
    """A sparse gigabyte costs a quarter of a megabyte."""
    with (bench.demo / "big.txt").open("wb") as file:
        file.truncate(1_000_000_000)
    assert refused(pi, bench.demo) == "CONTENT_INVALID"


def test_a_manifest_swapped_between_two_reads_is_noticed(
    pi: Any, bench: Bench, admit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest that was judged is the one in the content, or nothing is admitted."""
    read_content = pi.plugin_loader.read_content

    def swap(folder: Path) -> Any:
        bench.write(permissions=("read", "write", "network"))
        return read_content(folder)

    monkeypatch.setattr(pi.plugin_loader, "read_content", swap)
    with pytest.raises(pi.errors.CourseError) as caught:
        admit()
    assert caught.value.code == "DIGEST_MISMATCH"


def test_an_entry_swapped_for_a_link_is_noticed(
    pi: Any, bench: Bench, admit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that becomes a link after its path was checked is still not followed."""
    read_content = pi.plugin_loader.read_content

    def swap(folder: Path) -> Any:
        (bench.demo / "tool.py").rename(bench.root / "moved.py")
        (bench.demo / "tool.py").symlink_to(bench.root / "moved.py")
        return read_content(folder)

    monkeypatch.setattr(pi.plugin_loader, "read_content", swap)
    with pytest.raises(pi.errors.CourseError) as caught:
        admit()
    assert caught.value.code == "CONTENT_INVALID"


PATHS = st.from_regex(r"[a-c]{1,2}(/[a-c])?", fullmatch=True)
TREES = st.dictionaries(PATHS, st.binary(max_size=4), max_size=4)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(left=TREES, right=TREES, order=st.randoms())
def test_equal_digests_mean_equal_trees(
    pi: Any, left: dict[str, bytes], right: dict[str, bytes], order: random.Random
) -> None:
    """Two trees have one digest exactly when they are the same, in whatever order they come."""
    shuffled = list(left.items())
    order.shuffle(shuffled)
    digest = pi.plugin_content.tree_digest
    assert digest(left) == digest(dict(shuffled))
    assert (digest(left) == digest(right)) == (left == right)


def test_host_and_worker_have_one_digest(pi: Any) -> None:
    """The worker has its own copy of the rule, since it knows nothing but its lines."""
    for tree in ({}, {"a": b"1", "b/c.py": "\u4f60".encode()}, {"b": b"", "a": b"\0"}):
        assert pi.plugin_worker_main.digest(tree) == pi.plugin_content.tree_digest(tree)


def test_the_digest_is_the_one_that_is_documented(pi: Any) -> None:
    """Locks and signatures out there depend on it: a change is a new TREE_DOMAIN."""
    digest = pi.plugin_content.tree_digest({"plugin.json": b"{}", "tool.py": b"x = 1\n"})
    assert digest == "sha256:2324d083de673792beb0674e9663808522ddbb86c41794a8cbc60f472ccfc47f"


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"null", b'{"demo": null}', b'{"demo": {"version": "1.2.3"}}', b"{" * 50,
        b'{"demo": {"version": "1", "digest": "2", "runtimeApi": "3", "more": "4"}}',
        b'{"demo": {"version": 1, "digest": "2", "runtimeApi": "3"}}', b"{}" + b" " * 70_000,
    ],
)  # fmt: skip
def test_a_broken_lock_is_an_error(pi: Any, data: bytes) -> None:
    """Never an empty lock."""
    with pytest.raises(pi.errors.CourseError) as caught:
        pi.plugin_lock.parse_lock(data)
    assert caught.value.code == "INVALID_LOCK"


def test_a_lock_is_written_one_way(pi: Any) -> None:
    """The same lock is the same bytes, so that a change shows in review."""
    entries = {name: pi.plugin_lock.LockEntry("1.0.0", "sha256:0", "1.4.0") for name in "ba"}
    data = pi.plugin_lock.format_lock(entries)
    assert data == pi.plugin_lock.format_lock(dict(sorted(entries.items())))
    assert dict(pi.plugin_lock.parse_lock(data)) == entries
    assert dict(pi.plugin_lock.parse_lock(b"{}")) == {}
