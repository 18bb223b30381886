"""JUnit XML in the xunit2 family, as Jenkins and GitLab read it: one suite a submission.

Written with the standard library: the schema is small, and the one hard part (characters that XML
does not have) is what libraries for it leave to their callers.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from course.grades import Batch, Grade, Status
from course.render.plain import plain
from course.render.wording import NO_VERDICT, Item, items, number, remarks


def junit(batch: Batch) -> Iterator[bytes]:
    """One document, a suite a part; one without failures and errors is a submission that passed."""
    root = ET.Element("testsuites", name=xml(f"{batch.chapter} {batch.title}"))
    end = f"</{root.tag}>"
    opened = ET.tostring(root, "unicode", short_empty_elements=False).removesuffix(end)
    yield f"<?xml version='1.0' encoding='utf-8'?>\n{opened}\n".encode()
    for grade in batch.grades:
        suite = _suite(batch, grade)
        ET.indent(suite, level=1)
        yield f"  {ET.tostring(suite, 'unicode')}\n".encode()
    yield f"{end}\n".encode()


def xml(text: str) -> str:
    """The text in characters that XML has; markup in it is escaped by the writer."""
    return plain(text)


def _suite(batch: Batch, grade: Grade) -> ET.Element:
    found = list(items(batch, grade))
    errors = sum(item.status in NO_VERDICT for item in found)
    red = sum(item.status is not Status.PASSED for item in found)
    suite = ET.Element(
        "testsuite", name=xml(grade.name), tests=str(len(found)), failures=str(red - errors),
        errors=str(errors), skipped="0", time=f"{grade.duration_s:.3f}",
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _facts(batch, grade):
        ET.SubElement(properties, "property", name=name, value=xml(value))
    for item in found:
        suite.append(_case(batch, item))
    return suite


def _facts(batch: Batch, grade: Grade) -> list[tuple[str, str]]:
    facts = [
        ("status", str(grade.status)), ("cause", grade.cause), ("points", number(grade.points)),
        ("max_points", number(grade.max_points)), ("chapter", batch.chapter),
        ("verdict_by", batch.verdict_by), ("sandbox", batch.sandbox),
        ("course_digest", batch.course_digest),
    ]
    return facts + [("note", note) for note in (*remarks(batch), *grade.notes)]


def _case(batch: Batch, item: Item) -> ET.Element:
    case = ET.Element("testcase", classname=xml(f"chapter {batch.chapter}"), name=xml(item.name))
    if item.status is Status.PASSED:
        ET.SubElement(case, "system-out").text = xml(item.text)
        return case
    tag = "error" if item.status in NO_VERDICT else "failure"
    message = f"{item.status}, {number(item.points)} of {number(item.max_points)} points"
    red = ET.SubElement(case, tag, type=str(item.status), message=message)
    red.text = xml(item.text)
    return case
