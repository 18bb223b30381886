"""course.toml and chapter.toml: what is read, and what is refused by file and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from course.errors import CourseBroken, UsageProblem
from course.manifest import Course, cases_in, load_course
from course.outline import Chapter, Fault, Lab, Track
from tests.conftest import REPOSITORY

CHAPTER = "labs/02-report/chapter.toml"


def test_chapters_are_read_in_order_with_their_cases(tiny: Course) -> None:
    """Ids come from folder names; cases stand in file order; points default to the count."""
    assert [chapter.id for chapter in tiny.chapters()] == ["01", "02"]
    chapter = tiny.chapter("02")
    assert chapter.lab("02.1").cases == ("test_frequent_words_come_first",
                                         "test_a_text_without_words_is_refused")
    assert [lab.points for lab in chapter.labs] == [2.0, 3.0, 1.0]
    assert tiny.line_to("02") == ("01-counter", "02-report")


def test_ids_are_texts(tmp_path: Path, own_tiny: Path) -> None:
    """12.10 is not 12.1: an id written as a number is refused."""
    _replace(own_tiny / CHAPTER, 'id = "02.1"', "id = 2.1")
    with pytest.raises(CourseBroken, match=r"str.*id"):
        load_course(own_tiny).chapter("02")


BROKEN = {
    "unknown key": ('count = 2', 'count = 2\ncuont = 2', "cuont"),
    "cases by hand": ('count = 2', 'count = 2\ncases = []', "cases"),
    **{f"points {value}": ("count = 2", f"count = 2\npoints = {value}", "points = ")
       for value in ("nan", "inf", "-1", "1e9")},
    "wrong count": ("count = 2", "count = 3", "count = 3"),
    "unknown hole": ("tally.report:Report.top", "tally.report:Report.tpo", "Report.tpo"),
    "hole in no module": ("tally.report:Report.top", "tally.repotr:Report.top", "repotr"),
    "missing test file": ("test_02_1_top.py", "test_02_1_tpo.py", "test_02_1_tpo.py"),
    "unknown need": ('needs = ["02.1"]', 'needs = ["02.9"]', "02.9"),
    "need of a later lab": ('needs = ["02.1"]', 'needs = ["02.3"]', "02.3"),
    "repeated lab": ('id = "02.2"', 'id = "02.1"', "twice"),
    "repeated fault": ('id = "empty-report"', 'id = "alphabet-only"', "twice"),
    "fault of no lab": ('lab = "02.2"', 'lab = "02.8"', "02.8"),
    "killer of no lab": ('killed_by = ["test_each_word_has_a_line"]', 'killed_by = ["test_x"]',
                         "test_x"),
    "no killer": ('killed_by = ["test_each_word_has_a_line"]', "killed_by = []", "killed_by"),
    "unknown observation": ("{ test_each_word_has_a_line = {", "{ test_nothing = {",
                            "test_nothing"),
    "empty hint": ('en = "Use top."', 'en = " "', "hints"),
    "no hint": ('hints = [{ en = "Use top.", zh = "用 top。" }]', "hints = []", "hints"),
    "empty title": ('zh = "报告"', 'zh = ""', "title"),
    "empty first red": ('first_red = "Lab 02.1 top words 尚未实现"', 'first_red = ""', "first_red"),
    "unknown before": ('before = "deaf-listeners"', 'before = "deaf"', "deaf"),
    "neither holes nor before": ('before = "deaf-listeners"\n', "", "before"),
    "limit without end": ("points = 3", "timeout_s = 9999.0", "9999"),
    "no TOML": ("[[lab]]", "[[lab", "cannot be read"),
    "wrong type": ("count = 2", 'count = "two"', "count"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_manifest_names_the_file_and_what_is_wrong(name: str, own_tiny: Path) -> None:
    """Each mistake is an error of the course that says where and what."""
    old, new, said = BROKEN[name]
    _replace(own_tiny / CHAPTER, old, new)
    with pytest.raises(CourseBroken) as caught:
        load_course(own_tiny).chapter("02")
    assert CHAPTER in caught.value.message and said in caught.value.message
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(("old", "new"), [
    ('base = "start"', 'base = "nowhere"'),
    ('base = "start"', ""),
    ('base = "start"', 'base = "start"\nafter = "01"'),
    ('base = "start"', 'after = "09"'),
    ('"01-counter", "02-report"', '"01-counter", "01-counter"'),
    ('"01-counter", "02-report"', '"01-counter", "01-report"'),
    ('id = "tally"', 'id = "tally"\ncolour = 1'),
])
def test_a_broken_course_file_is_refused(old: str, new: str, own_tiny: Path) -> None:
    """Tracks need one base and chapters that are there once."""
    _replace(own_tiny / "labs/course.toml", old, new)
    with pytest.raises(CourseBroken, match=r"course\.toml"):
        load_course(own_tiny)


def test_an_unknown_chapter_is_a_usage_problem(tiny: Course) -> None:
    """It says which chapters there are."""
    with pytest.raises(UsageProblem, match="01, 02") as caught:
        tiny.chapter("07")
    assert caught.value.exit_code == 2


def test_a_track_can_go_on_after_a_chapter_of_another(own_tiny: Path) -> None:
    """Its line starts with the other track's chapters and base."""
    path = own_tiny / "labs/course.toml"
    text = path.read_text("utf-8").replace(', "02-report"', "")
    path.write_text(text + '[[track]]\nid = "more"\ntitle = { en = "m", zh = "m" }\n'
                    'after = "01"\nchapters = ["02-report"]\n', "utf-8")
    course = load_course(own_tiny)
    assert course.line_to("02") == ("01-counter", "02-report")
    assert course.base_of("02") == "start"


def test_tests_in_classes_have_their_node_ids() -> None:
    """TestY.test_z is named as pytest names it; helpers are no tests."""
    source = ("def test_a(): ...\ndef _helper(): ...\n"
              "class TestY:\n    def test_z(self): ...\n    def other(self): ...\n")
    assert cases_in(source) == ("test_a", "TestY::test_z")


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


@pytest.mark.parametrize("part", [Chapter, Lab, Fault, Track])
def test_the_page_of_manifests_names_every_key(part: type) -> None:
    """docs/course.md knows them all; what is read from elsewhere is no key."""
    read_elsewhere = {"name", "track", "labs", "faults", "replays", "cases"}
    page = (REPOSITORY / "docs" / "course.md").read_text("utf-8")
    keys = set(part.__struct_fields__) - read_elsewhere  # type: ignore[attr-defined]
    assert {key for key in keys if f"`{key}`" not in page} == set()
