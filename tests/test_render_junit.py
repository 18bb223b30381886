"""JUnit: read back by junitparser and by libxml2, whatever the grades hold."""

from __future__ import annotations

import junitparser
from hypothesis import given
from lxml import etree

from course.grades import Batch, Grade, Status
from course.render.junit import junit, xml
from course.render.wording import items
from tests.arbitrary import batches, everything_hostile, ordinary, quickly, whole

ELEMENTS = {"testsuites": 0, "testsuite": 1, "properties": 2, "property": 3, "testcase": 2,
            "failure": 3, "error": 3, "system-out": 3}
ATTRIBUTES = {
    "testsuites": {"name"}, "properties": set(), "property": {"name", "value"}, "system-out": set(),
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testcase": {"classname", "name"}, "failure": {"type", "message"}, "error": {"type", "message"},
}


def suites_of(batch: Batch) -> list[junitparser.TestSuite]:
    return list(junitparser.JUnitXml.fromstring(whole(junit(batch))))


@quickly
@given(batches())
def test_every_submission_is_a_suite_with_its_own_words(batch: Batch) -> None:
    """Names, titles and reasons come back as they were, with control characters made visible."""
    suites = suites_of(batch)
    assert [suite.name or "" for suite in suites] == [xml(grade.name) for grade in batch.grades]
    for suite, grade in zip(suites, batch.grades, strict=True):
        found, cases = list(items(batch, grade)), list(suite)
        assert [case.name for case in cases] == [xml(item.name) for item in found]
        for case, item in zip(cases, found, strict=True):
            said = case.result[0].text if case.result else case.system_out
            assert said == xml(item.text)


@quickly
@given(batches())
def test_a_suite_is_green_where_the_submission_passed_and_only_there(batch: Batch) -> None:
    """Counts agree with cases; only a passed submission has neither failures nor errors."""
    for suite, grade in zip(suites_of(batch), batch.grades, strict=True):
        red = [case for case in suite if case.result]
        assert suite.tests == len(list(suite)) and suite.failures + suite.errors == len(red)
        assert (not red) == all_passed(grade)


def all_passed(grade: Grade) -> bool:
    return grade.status is Status.PASSED and all(lab.passed for lab in grade.labs)


@quickly
@given(batches())
def test_nothing_is_injected(batch: Batch) -> None:
    """A parser that forgives nothing finds known elements in their places, and no others."""
    strict = etree.XMLParser(recover=False, resolve_entities=False)
    root = etree.fromstring(whole(junit(batch)), strict)
    for element in root.iter():
        assert ELEMENTS[element.tag] == len(list(element.iterancestors()))
        assert set(element.attrib) == ATTRIBUTES[element.tag]
    assert len(root) == len(batch.grades)


def test_every_hostile_text_at_once() -> None:
    """None of them, in any field, breaks the document."""
    batch = everything_hostile()
    assert len(suites_of(batch)) == len(batch.grades)


def test_what_a_class_looks_like() -> None:
    """Points and verdict as properties, the reason in the failure."""
    amy, ben = suites_of(ordinary())
    properties = {entry.name: entry.value for entry in ben.properties()}  # type: ignore[no-untyped-call]
    assert (amy.failures, ben.failures, ben.errors) == (0, 1, 0)
    assert properties["points"] == "2" and properties["verdict_by"] == "probes"
    text = list(ben)[1].result[0].text
    assert "does not agree: lines keep their order" in text and "src/tally/report.py:12" in text
