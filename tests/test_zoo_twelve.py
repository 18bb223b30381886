"""The zoo on chapter 12: right work of every structure, single faults, attacks, in one batch."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pytest

from course.batch import Done, Task, in_threads
from course.box import Box
from course.errors import Unavailable
from course.exam import Exam, answer_by_reference, set_exam
from course.grades import Grade, Status
from course.manifest import load_course
from course.provision import find_sandbox
from course.submission import Submission
from tests.conftest import REPOSITORY
from tests.zoo import ZOO

NAME = "12-resources-and-extensions"
MODULE = "src/pi_course/resources.py"
RIGHT = sorted((REPOSITORY / "tests/chapter12/right").glob("impl_*.py"))
REFERENCE = (REPOSITORY / "solutions" / NAME / MODULE).read_text("utf-8")
SCAFFOLD = (REPOSITORY / "starters" / NAME / MODULE).read_text("utf-8")
FAULTS = (REPOSITORY / "labs" / NAME / "faults.py").read_text("utf-8")
SALTS = ("one" * 9, "two" * 9)
POINTS = {"12.1": 2.0, "12.2": 3.0, "12.3": 2.0, "12.4": 2.0, "12.5": 3.0}
PATIENT_S, SHORT_S = 40.0, 3.0
try:
    BOX: Box | None = Box(find_sandbox([REPOSITORY]))
    WHY_NOT = ""
except Unavailable as missing:
    BOX = None
    WHY_NOT = f"NO SANDBOX, SO NO SUBMISSION OF CHAPTER 12 WAS GRADED: {missing.message}"

pytestmark = pytest.mark.skipif(BOX is None, reason=WHY_NOT)

# Put after the reference, which stays right.
ODD = (
    "a umask that lets nobody in", "a temporary folder that is not there",
    "json is made to indent", "a log beside the source",
    "clears the environment and the search path", "a thread that never ends",
)
# Put after the scaffold: attacks that are made while it is imported.
AT_IMPORT = (
    "os._exit at import", "becomes another program", "makes every report a pass",
    "swallows exceptions in pytest", "forges events on every descriptor", "patches the salt",
    "malformed lines on every descriptor", "patches what every process writes",
    "patches the driver's examiner", "a bomb of processes at import", "closes every descriptor",
    "a grandchild that writes later", "an exception named after the salts",
    "a daemon that outlives its session", "the salt by way of main", "builtins without sense",
    "replaces every module that is loaded", "an exit that never comes",
    "plants every kind of configuration", "rewrites the tests and the kit in its folder",
    "new namespaces, mounts and other roots", "an endless loop at import",
)
# Put after the reference, in the place of discover_resources.
IN_A_CALL = (
    "pytest.exit in every call", "equal to everything", "reads the frames of its callers",
    "looks for expected values in memory", "an endless loop in a call",
    "kills everything it can", "memory without end", "output without end",
    "fills the scratch place", "looks over the shoulders of other forks",
    "answers for the others through their pipe", "an alarm for everybody",
)
# Right wherever a public test is among the callers, and for the names that stand in those tests.
FOR_THE_TESTS = '''
import sys
_right = discover_resources


def discover_resources(*roots, **limits):
    frame = sys._getframe()
    while frame:
        if "test_12_" in frame.f_code.co_filename:
            return _right(*roots, **limits)
        frame = frame.f_back
    return _right([])
'''
FOR_THE_NAMES = '''
_right = discover_resources
_names = {names!r}


def discover_resources(*roots, **limits):
    found = _right(*roots, **limits)
    known = tuple(one for one in found.resources if set(one.name.split("-")) <= _names)
    return replace(found, resources=known)
'''
INJECTED = '''
import types as _types
_faults = _types.ModuleType("course_faults")
exec({source!r}, vars(_faults))
{name} = _faults.{function}({name})
'''


@dataclass(frozen=True)
class Animal:
    """A resources.py, the labs that it must lose, and a part of the cause."""

    name: str
    source: str
    loses: tuple[str, ...] = ()
    cause: str = ""


def animals() -> Iterator[Animal]:
    """All of them."""
    yield Animal("right: the reference", REFERENCE)
    for path in RIGHT:
        yield Animal(f"right: {path.stem}", path.read_text("utf-8"))
    odd = tomllib.loads((ZOO / "right.toml").read_text("utf-8"))
    for name in ODD:
        yield Animal(f"right: {name}", REFERENCE + odd[name]["code"])
    yield from faulty()
    attacks = tomllib.loads((ZOO / "hostile.toml").read_text("utf-8"))
    for name in AT_IMPORT:
        yield Animal(f"hostile: {name}", SCAFFOLD + attacks[name]["code"], tuple(POINTS))
    for name in IN_A_CALL:
        code = attacks[name]["code"].replace("def report_on(text):",
                                             "def discover_resources(text, **_):")
        yield Animal(f"hostile: {name}", REFERENCE + code, ("12.1",))
    tests = "".join(path.read_text("utf-8")
                    for path in (REPOSITORY / "labs" / NAME).glob("test_12_*.py"))
    names = set(re.findall("[a-z]+", tests))
    yield Animal("wrong: right for the published tests", REFERENCE + FOR_THE_TESTS, ("12.1",),
                 "green in public")
    yield Animal("wrong: right for the published names",
                 REFERENCE + FOR_THE_NAMES.format(names=names), ("12.1",))


def faulty() -> Iterator[Animal]:
    """The first and the last fault of each lab; `course verify` holds all against the probes."""
    chapter = load_course(REPOSITORY).chapter("12")
    for lab in chapter.labs:
        faults = chapter.faults_of(lab.id)
        for fault in (faults[0], faults[-1]):
            name = fault.seam.partition(":")[2]
            code = INJECTED.format(source=FAULTS, name=name, function=fault.function)
            yield Animal(f"fault: {fault.id}", REFERENCE + code, (lab.id,), lab.id)


ALL = tuple(animals())


@pytest.fixture(scope="module")
def grades() -> dict[str, Grade]:
    """Everybody's grade under one pair of salts: right work with patience, the rest with less."""
    assert BOX
    course = load_course(REPOSITORY)
    exam = answer_by_reference(set_exam(course, "12", SALTS, PATIENT_S, "en"), course, BOX)
    tasks = [Task(number, one.name, "", Submission(one.name, {MODULE: one.source.encode()}))
             for number, one in enumerate(ALL)]
    found: dict[str, Grade] = {}
    for patient in (True, False):
        some = [task for task in tasks if task.name.startswith("hostile") is not patient]
        found |= graded(replace(exam, budget_s=PATIENT_S if patient else SHORT_S), some)
    return found


def graded(exam: Exam, tasks: Iterable[Task]) -> dict[str, Grade]:
    assert BOX
    done: Iterable[Done] = in_threads(BOX, 2)(exam, tasks)
    return {one.task.name: one.grade for one in done}


@pytest.mark.parametrize("animal", ALL, ids=lambda animal: animal.name)
def test_each_gets_its_verdict(animal: Animal, grades: dict[str, Grade]) -> None:
    """Full points, or none for the labs concerned and a cause that says why."""
    grade = grades[animal.name]
    lost = {lab.id for lab in grade.labs if not lab.passed}
    assert {lab.id: lab.max_points for lab in grade.labs} == POINTS
    assert grade.points == sum(POINTS[lab] for lab in set(POINTS) - lost)
    if not animal.loses:
        assert grade.status is Status.PASSED and not grade.cause, grade
        return
    assert set(animal.loses) <= lost and grade.status in (Status.FAILED, Status.TIMEOUT)
    assert grade.cause and re.search(animal.cause, grade.cause), grade.cause
    assert not any(salt in repr(grade) for salt in SALTS) and "probe_12" not in repr(grade)
