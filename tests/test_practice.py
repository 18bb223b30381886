"""Practice folders: made whole or not at all, standing alone, put back, reset."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from course.errors import CourseError, PracticeBroken, UsageProblem
from course.manifest import Course, load_course
from course.practice import Practice, changed_files, make, open_practice, reset, restore
from course.snapshot import checkpoint_before, read_tree
from course.start import prove_start
from tests.conftest import REPOSITORY, TINY, type_course


def test_only_the_scaffold_differs_from_the_checkpoint(desk: Practice, tiny: Course) -> None:
    """The code is the checkpoint before the chapter plus the blanked file; bits survive."""
    found = read_tree(desk.folder)
    for path, file in checkpoint_before(tiny, "02").items():
        assert found[path] == file
    new = {path for path in found if path.startswith("src/")} - set(checkpoint_before(tiny, "02"))
    assert new == {"src/tally/report.py"}
    assert os.access(desk.folder / "run.sh", os.X_OK)
    assert (desk.folder / "src/tally/empty.txt").read_bytes() == b""


def test_the_folder_stands_alone(tmp_path: Path, own_tiny: Path) -> None:
    """It works after the course is gone and after it was itself moved."""
    assert type_course("--root", own_tiny, "practice", "02", "desk", cwd=tmp_path).status == 0
    shutil.rmtree(own_tiny)
    (tmp_path / "desk").rename(tmp_path / "moved")
    there = tmp_path / "moved"
    assert type_course("test", "--json", cwd=there).json["total"] == 4
    assert type_course("list", cwd=there).status == 0
    assert type_course("hint", "02.1", cwd=there / "src/tally").status == 0
    assert type_course("build", cwd=there).status == 0


def test_plain_pytest_shows_the_same_reds(desk: Practice) -> None:
    """`python -m pytest` in the folder needs no setting."""
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
                          cwd=desk.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.count("Lab 02.1 top words 尚未实现") >= 2


def test_the_first_red_is_found_and_kept(tiny: Course, tmp_path: Path) -> None:
    """practice.json holds what was really seen."""
    made = make(tiny, tiny.chapter("02"), tmp_path / "d", lang="zh", prove=prove_start)
    red = open_practice(made.folder).manifest.first_red
    assert red and red["lab"] == "02.1" and red["total"] == 2
    assert red["error"]["message"] == "Lab 02.1 top words 尚未实现"


@pytest.mark.parametrize("name", ["two words", "练习 目录", "-dash", "é", "a'b\"c", "$HOME"])
def test_odd_folder_names_are_fine(name: str, tiny: Course, tmp_path: Path) -> None:
    """Spaces, quotes, dashes and any alphabet."""
    made = make(tiny, tiny.chapter("02"), tmp_path / name, lang="en", prove=prove_start)
    typed = type_course("test", "02.1", "--json", cwd=made.folder)
    assert (typed.status, typed.json["total"]) == (1, 2)


def test_an_existing_target_is_refused_and_untouched(tiny: Course, tmp_path: Path) -> None:
    """A folder with anything in it, a file and a link are left as they are."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("work")
    (tmp_path / "file").write_text("work")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    before = sorted(tmp_path.rglob("*"))
    for name in ("full", "file", "link"):
        typed = type_course("--root", TINY, "practice", "02", tmp_path / name, cwd=tmp_path)
        assert typed.status == 2 and name in typed.err and "Traceback" not in typed.err
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "full" / "mine").read_text() == "work"


def test_an_empty_target_is_used(tiny: Course, tmp_path: Path) -> None:
    """An empty folder that is already there is filled."""
    (tmp_path / "empty").mkdir()
    made = make(tiny, tiny.chapter("01"), tmp_path / "empty", lang="en", prove=prove_start)
    assert (made.folder / "README.md").is_file()


def test_a_target_inside_the_course_is_refused(own_tiny: Path, tmp_path: Path) -> None:
    """Through a link too."""
    (tmp_path / "link").symlink_to(own_tiny)
    before = sorted(own_tiny.rglob("*"))
    for target in (own_tiny / "desk", tmp_path / "link" / "desk", own_tiny / "labs" / "x"):
        assert type_course("--root", own_tiny, "practice", "02", target, cwd=tmp_path).status == 2
    assert sorted(own_tiny.rglob("*")) == before


def test_a_parent_that_cannot_be_written_is_a_clear_error(tiny: Course, tmp_path: Path) -> None:
    """A read-only parent (or a file in the way) is named; nothing is left."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageProblem, match="desk"):
        make(tiny, tiny.chapter("02"), tmp_path / "file" / "desk", lang="en",
             prove=lambda _: None)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_failed_start_leaves_nothing(own_tiny: Path, tmp_path: Path) -> None:
    """A scaffold that is red for another reason is refused, and no folder is made."""
    path = own_tiny / "starters/02-report/src/tally/report.py"
    path.write_text(path.read_text("utf-8").replace("Lab 02.1 top", "Lab 02.1 pot"), "utf-8")
    target = tmp_path / "out" / "desk"
    target.parent.mkdir()
    typed = type_course("--root", own_tiny, "practice", "02", target, "--json", cwd=tmp_path)
    assert typed.status == 3 and list(target.parent.iterdir()) == []
    assert "02.1 pot" in typed.json["error"]["message"] and typed.json["error"]["next"]


def test_a_wrong_lock_stops_practice(own_tiny: Path, tmp_path: Path) -> None:
    """A layer that was changed without a new lock makes no practice."""
    path = own_tiny / "solutions/01-counter/src/tally/counter.py"
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    typed = type_course("--root", own_tiny, "practice", "02", tmp_path / "desk", cwd=tmp_path)
    assert typed.status == 3 and "01-counter" in typed.err and "--lock" in typed.err
    assert not (tmp_path / "desk").exists()


def test_ctrl_c_while_making_leaves_nothing(tmp_path: Path) -> None:
    """Interrupted at any moment, no folder and no scratch is left."""
    for delay in (0.15, 0.3, 0.45, 0.6):
        out, scratch = tmp_path / f"out{delay}", tmp_path / f"scratch{delay}"
        out.mkdir()
        scratch.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-m", "course", "--root", str(TINY), "practice", "02",
             str(out / "desk")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(scratch)})
        try:
            process.wait(delay)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        left = [path.name for path in out.iterdir()]
        assert left in ([], ["desk"]) and (left or process.returncode == 130)
        if left:  # whole: it had been renamed into place
            assert changed_files(open_practice(out / "desk")) == []
        assert list(scratch.iterdir()) == []


def test_deleted_and_edited_tests_are_refused_and_put_back(desk: Practice) -> None:
    """Running them is refused with exit code 3; restore names both and brings the bytes back."""
    top, lines = desk.folder / "tests/test_02_1_top.py", desk.folder / "tests/test_02_2_lines.py"
    kept = top.read_bytes()
    top.write_bytes(kept.replace(b"assert", b"assert True or"))
    lines.unlink()
    mine = desk.folder / "src/tally/report.py"
    mine.write_text("# my work\n")
    for lab, said in (("02.1", "not as it was"), ("02.2", "missing")):
        typed = type_course("test", lab, "--json", cwd=desk.folder)
        assert typed.status == 3 and said in typed.json["error"]["message"]
        assert typed.json["error"]["next"] == "course restore"
    typed = type_course("restore", cwd=desk.folder)
    assert typed.out.splitlines() == ["restored tests/test_02_1_top.py",
                                      "restored tests/test_02_2_lines.py"]
    assert top.read_bytes() == kept and changed_files(desk) == []
    assert mine.read_text() == "# my work\n"
    assert type_course("restore", cwd=desk.folder).out == "nothing was changed\n"


def test_restore_refuses_when_its_copies_were_changed_too(desk: Practice) -> None:
    """It never puts back something that was not generated."""
    for path in ("tests/test_02_1_top.py", ".course/pristine/tests/test_02_1_top.py"):
        (desk.folder / path).write_text("def test_mine(): pass")
    with pytest.raises(PracticeBroken, match="test_02_1_top"):
        restore(desk)


def test_reset_takes_one_lab_out_again_and_keeps_a_backup(
    desk: Practice, solve: Callable[[Practice], Practice]
) -> None:
    """Only that lab's functions are blank; the rest of the learner's file stays."""
    solve(desk)
    path = desk.folder / "src/tally/report.py"
    before = path.read_text("utf-8")
    done = reset(desk, desk.lab("02.2"))
    assert [backup.read_text("utf-8") for _, backup in done] == [before]
    result = type_course("test", "--json", cwd=desk.folder).json
    assert [lab["passed"] for lab in result["labs"]] == [2, 0, 0]
    assert "_line" in path.read_text("utf-8")


def test_a_folder_that_is_no_practice_says_how_to_make_one(tmp_path: Path) -> None:
    """Exit code 3, the folder and the next command."""
    typed = type_course("test", cwd=tmp_path)
    assert typed.status == 3 and str(tmp_path) in typed.err and "course practice" in typed.err


@pytest.mark.parametrize("data", [b"", b"{", b'{"format": 1}', b"\xff\xfe", b"[]"])
def test_a_damaged_practice_json_is_a_clear_error(data: bytes, desk: Practice) -> None:
    """Exit code 3, never a traceback."""
    (desk.folder / ".course/practice.json").write_bytes(data)
    typed = type_course("test", cwd=desk.folder)
    assert typed.status == 3 and "practice.json" in typed.err and "Traceback" not in typed.err


def test_every_course_error_has_an_exit_code_and_a_document() -> None:
    """Scripts read kind, message and next."""
    for kind in (CourseError, UsageProblem, PracticeBroken):
        problem = kind("what was found", "what to type")
        assert problem.exit_code in (2, 3, 4)
        assert problem.to_json() == {"error": {"kind": problem.kind, "message": "what was found",
                                               "next": "what to type"}}


def test_a_course_is_found_by_walking_up(own_tiny: Path) -> None:
    """From any folder inside it."""
    typed = type_course("list", "--json", cwd=own_tiny / "labs/01-counter")
    assert [c["id"] for c in typed.json["tracks"][0]["chapters"]] == ["01", "02"]
    assert load_course(own_tiny).title.en == "A tiny course"
