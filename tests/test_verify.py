"""The proof of a course: it holds for the tiny course, and each planted defect is found by file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from course.leaks import find_leaks
from course.manifest import load_course
from course.practice import make
from course.strays import find_strays
from course.verify import Report, prove
from tests.conftest import TINY, type_course

STARTER = "starters/02-report/src/tally/report.py"
MANIFEST = "labs/02-report/chapter.toml"
FAULTS = "labs/02-report/faults.py"
TOP = '        raise NotImplementedError("Lab 02.1 top words 尚未实现")\n'
ANSWER = ("        ranked = sorted(self.words, key=lambda word: (-self.words[word], word))\n"
          "        return ranked[:most]\n")


def proof(root: Path, chapter: str | None = "02", repeat: int = 1) -> Report:
    return prove(load_course(root), chapter, repeat=repeat, jobs=2, progress=lambda _: None)


def strays(root: Path) -> list[str]:
    course = load_course(root)
    return find_strays(course, list(course.chapters()))


def said(report: Report) -> str:
    return "\n".join(defect.message for defect in report.defects)


def test_the_tiny_course_holds() -> None:
    """Every chapter, repeated in shuffled order."""
    report = proof(TINY, None, repeat=2)
    assert report.holds and said(report) == "" and report.jobs > 20
    assert [line.split(":")[0] for line in report.proved] == ["01-counter", "02-report"]


def test_it_exits_0_and_says_what_it_did(tmp_path: Path) -> None:
    """As typed: progress on stderr, the result on stdout."""
    typed = type_course("--root", TINY, "verify", "01", "--json", cwd=tmp_path)
    assert typed.status == 0 and typed.json["holds"] and "verify: " in typed.err


PLANTED = {
    "an answer left in a starter": (STARTER, TOP, ANSWER, STARTER),
    "a lab already green": (
        "labs/02-report/test_02_2_lines.py", 'assert report.report_on("b a b").lines() ==',
        'assert True or report.report_on("b a b").lines() ==', "test_02_2_lines.py"),
    "a wrong first red": (MANIFEST, 'first_red = "Lab 02.2 report lines 尚未实现"',
                          'first_red = "Lab 02.2 other lines 尚未实现"', "Lab 02.2 other lines"),
    "a wrong count": (MANIFEST, "count = 2", "count = 3", MANIFEST),
    "a fault that nothing kills": (
        FAULTS, "return [line.split()[0] for line in lines(self)]", "return lines(self)",
        "survived"),
    "a fault that the wrong test kills": (
        MANIFEST, 'killed_by = ["test_frequent_words_come_first"]',
        'killed_by = ["test_a_text_without_words_is_refused"]', "wrong_killer"),
    "a fault that is never reached": (
        MANIFEST, 'seam = "tally.report:Report.lines"\nbreaks = { en = "a line',
        'seam = "textwrap:dedent"\nbreaks = { en = "a line', "not_reached"),
    "a fault without a function": (FAULTS, "def no_numbers", "def some_numbers", "no_numbers"),
    "a seam that is not there": (
        MANIFEST, 'seam = "tally.report:report_on"', 'seam = "tally.report:report_no"',
        "inconclusive"),
    "a changed early layer without a new lock": (
        "solutions/01-counter/src/tally/counter.py", "Hyphens", "Dashes", "01-counter"),
    "a text that is empty": ("labs/02-report/README.zh.md", None, "", "README.zh.md"),
    "a command that does not work": (
        "labs/02-report/README.md", "course test 02.1", "course test 02.7", "course test 02.7"),
    "a command that ends in another way": (
        "labs/02-report/README.md", "course test 02.1", "course test 02.1  # exit 1",
        "exits 0, not 1"),
    "a stale starter": (STARTER, "Reports about counted words.", "Reports.", STARTER),
    "a later test that an early change breaks": (
        "solutions/01-counter/src/tally/counter.py", "_WORD.findall(text.lower())",
        "reversed(_WORD.findall(text.upper()))", "test_02_2_lines"),
    "a need that is not declared": (MANIFEST, 'needs = ["02.1"]\npoints', "points",
                                    "does not need lab 02.1"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_defect_is_found_and_named(name: str, own_tiny: Path) -> None:
    """Exit code 1 and the file or text at fault."""
    path, old, new, named = PLANTED[name]
    target = own_tiny / path
    text = target.read_text("utf-8")
    assert old is None or old in text
    target.write_text(new if old is None else text.replace(old, new, 1), "utf-8")
    report = proof(own_tiny)
    assert not report.holds and named in said(report)


@pytest.mark.parametrize("path", [
    "labs/02-report/notes.txt", "labs/02-report/test_02_9_more.py", "labs/stray.md",
    "solutions/02-report/src/tally/more.py", "starters/02-report/src/tally/more.py",
    "starters/03-old/src/x.py", "labs/02-report/hidden/other.py", "checkpoints/other/x.py",
])
def test_a_file_that_no_manifest_explains_is_named(path: str, own_tiny: Path) -> None:
    """In labs, solutions, starters and checkpoints."""
    (own_tiny / path).parent.mkdir(parents=True, exist_ok=True)
    (own_tiny / path).write_text("x = 1\n")
    assert strays(own_tiny) == [f"{path} is explained by no manifest"]


def test_a_missing_starter_is_named(own_tiny: Path) -> None:
    """The manifest asks for it in vain."""
    (own_tiny / STARTER).unlink()
    assert strays(own_tiny) == [f"{STARTER} is missing"]


@pytest.mark.parametrize("what", [b"_line", b"ranked", b"no words here", b"compare twice"])
@pytest.mark.parametrize("path", ["src/tally/report.py", ".git/objects/ab/cd", "x.cpython-311.pyc"])
def test_a_part_of_the_answer_anywhere_in_the_folder_is_a_leak(
    what: bytes, path: str, own_tiny: Path, tmp_path: Path
) -> None:
    """A private name, a local name, a text or a comment of the solution, in any file."""
    solution = own_tiny / "solutions/02-report/src/tally/report.py"
    source = solution.read_text("utf-8").replace('"no words"', '"no words here"')
    solution.write_text(source.replace(
        "        return ranked", "        # compare twice\n        return ranked"), "utf-8")
    course = load_course(own_tiny)
    chapter = course.chapter("02")
    desk = make(course, chapter, tmp_path / "desk", lang="en", prove=lambda _: None)
    assert find_leaks(course, chapter, desk.folder) == []
    (desk.folder / path).parent.mkdir(parents=True, exist_ok=True)
    with (desk.folder / path).open("ab") as file:
        file.write(b"\n# " + what + b"\n")
    leaks = find_leaks(course, chapter, desk.folder)
    assert len(leaks) == 1 and path in leaks[0]


def test_an_unreadable_chapter_does_not_hide_the_others(own_tiny: Path) -> None:
    """Its manifest's error is one defect; the other chapter is proved all the same."""
    (own_tiny / "labs/01-counter/chapter.toml").write_text("[[")
    report = proof(own_tiny, None)
    assert any(defect.chapter == "01-counter" for defect in report.defects)


def test_starters_check_and_write(own_tiny: Path) -> None:
    """--check exits 1 on a stale one and names it; --write mends it."""
    starter = own_tiny / STARTER
    starter.write_text("stale")
    checked = type_course("--root", own_tiny, "starters", "--check", cwd=own_tiny)
    assert checked.status == 1 and STARTER in checked.out
    assert type_course("--root", own_tiny, "starters", "--write", cwd=own_tiny).status == 0
    assert starter.read_text("utf-8") == (TINY / STARTER).read_text("utf-8")
    shutil.rmtree(own_tiny / "starters")
    assert type_course("--root", own_tiny, "starters", "--write", cwd=own_tiny).status == 0
    assert type_course("--root", own_tiny, "starters", "--check", cwd=own_tiny).status == 0
