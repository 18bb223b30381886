"""Grade one submission: the probes give the verdict, the public tests give feedback."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from course.answers import ALONE, TOGETHER, Answers
from course.box import NONE, Box
from course.compiled import COMPILED
from course.errors import Unavailable
from course.exam import Exam
from course.feedback import LEAST_S, Feedback, run_public
from course.grades import Count, Grade, LabGrade, Status
from course.outline import Lab
from course.probes import Probe, ProbeSet, agreed, ask, asked
from course.results import FirstRed, LabResult, Outcome, RunResult
from course.submission import Submission

FOR_PROBES = 0.6  # of the time of a submission; what they leave is for the public tests
LONGEST_MESSAGE = 4_000  # characters of the first red's message
MOST_NOTES, LONGEST_NOTE = 8, 200
WHY = {"late": " (no answer in time)", "silent": " (no answer)", "raised": " (it raised)",
       "long": " (too long an answer)", "contradictory": " (two answers)",
       "unasked": " (not asked: others of this lab were late)"}
NO_WALLS = "graded without a sandbox: this verdict is not to be trusted"
BY_PUBLIC = "this chapter has no hidden probes: its verdicts are not proof against forgery"


def grade(
    box: Box, exam: Exam, submission: Submission, name: str, *, side_by_side: bool = False
) -> Grade:
    """The verdict on one submission. Unavailable where there can be none.

    `side_by_side`: there are processors to spare, so feedback need not wait for the verdict.
    """
    started = time.monotonic()
    files = {**exam.given, **submission.files}

    def public(seconds: float) -> Feedback:
        return run_public(box, {**files, **exam.tests, COMPILED: exam.ready_tests}, exam.chapter,
                          seconds, exam.lang)

    meanwhile = Meanwhile(lambda: public(exam.budget_s)) if side_by_side and exam.probes else None
    answers = _examined(box, exam, files, exam.probes) if exam.probes else None
    if meanwhile:
        feedback = meanwhile.result()
    elif answers and answers.late and not answers.imported:
        feedback = public(0.0)  # it would only hang again
    else:
        feedback = public(exam.budget_s - (answers.duration_s if answers else 0.0))
    if answers is None and not feedback.started:
        raise Unavailable("the public tests could not be run")
    judged = _judged(box, exam, submission, name, answers, feedback)
    return replace(judged, duration_s=time.monotonic() - started)


class Meanwhile:
    """A call on its way in a thread of its own, which an interrupt of the process does not wait
    for."""

    def __init__(self, call: Callable[[], Feedback]) -> None:
        self._outcome: queue.SimpleQueue[Feedback | Exception] = queue.SimpleQueue()
        threading.Thread(target=self._run, args=(call,), daemon=True).start()

    def result(self) -> Feedback:
        """What the call returned, or raise what it raised."""
        outcome = self._outcome.get()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _run(self, call: Callable[[], Feedback]) -> None:
        try:
            self._outcome.put(call())
        except Exception as failure:
            self._outcome.put(failure)


def _examined(
    box: Box, exam: Exam, files: Mapping[str, bytes], probes: ProbeSet
) -> Answers:
    """The answers to all probes. Several are asked in one process, which is quick; those that do
    not agree are asked again, each in a process of its own, and only that counts for them."""
    budget = exam.budget_s * FOR_PROBES
    question = asked(exam.chapter, probes, exam.salts, budget, group=TOGETHER)
    files = {**files, COMPILED: exam.ready_probes}
    answers = ask(box, files, question)
    left = budget - answers.duration_s
    doubtful = [probe.name for probe in probes.probes
                if not agreed(probe, exam.reference, answers)]
    if not doubtful or not answers.imported or left < LEAST_S:
        return answers
    labs = {name: question.labs[name] for name in doubtful}
    again = replace(question, labs=labs, group=ALONE, budget_s=left)
    return answers.but(doubtful, ask(box, files, again))


def without_verdict(exam: Exam, name: str, status: Status, cause: str) -> Grade:
    """The grade of a submission that was refused, or that could not be graded."""
    labs = tuple(
        LabGrade(lab.id, lab.title.in_language(exam.lang), False, lab.points,
                 Count(0, lab.count), Count(0, len(_probes_of(exam, lab))))
        for lab in exam.chapter.labs
    )
    return Grade(name, status, labs, cause)


def _judged(
    box: Box, exam: Exam, submission: Submission, name: str, answers: Answers | None,
    feedback: Feedback,
) -> Grade:
    public = feedback.result
    labs = tuple(_lab_grade(exam, lab, answers, public.lab(lab.id)) for lab in exam.chapter.labs)
    notes = [*submission.notes, *public.notes]
    notes += [] if feedback.ran else [feedback.why_not]
    notes = [note[:LONGEST_NOTE] for note in notes[:MOST_NOTES]]
    notes += [NO_WALLS] if box.name == NONE else []
    notes += [] if answers else [BY_PUBLIC]
    late = answers.late if answers else feedback.late or _is_late(public)
    status = Status.TIMEOUT if late else Status.FAILED
    passed = all(lab.passed for lab in labs)
    return Grade(
        name, Status.PASSED if passed else status, labs,
        "" if passed else _cause(exam, labs, answers, feedback),
        _shortened(public.first_red) if feedback.ran else None, tuple(notes),
    )


def _lab_grade(exam: Exam, lab: Lab, answers: Answers | None, public: LabResult) -> LabGrade:
    title = lab.title.in_language(exam.lang)
    count = Count(public.passed, lab.count)
    if answers is None:
        return LabGrade(lab.id, title, public.green, lab.points, count, Count(0, 0))
    probes = _probes_of(exam, lab)
    wrong = [probe for probe in probes if not agreed(probe, exam.reference, answers)]
    disagreed = tuple(probe.title + _why(probe, answers) for probe in wrong)
    return LabGrade(lab.id, title, bool(probes) and not wrong, lab.points, count,
                    Count(len(probes) - len(wrong), len(probes)), disagreed)


def _probes_of(exam: Exam, lab: Lab) -> tuple[Probe, ...]:
    return exam.probes.of(lab.id) if exam.probes else ()


def _why(probe: Probe, answers: Answers) -> str:
    problems = [problem for (name, _), problem in answers.problems.items() if name == probe.name]
    return WHY.get(problems[0], "") if problems else ""


def _cause(
    exam: Exam, labs: Sequence[LabGrade], answers: Answers | None, feedback: Feedback
) -> str:
    """Why it did not pass, in one sentence for the student."""
    if error := feedback.result.build.error:
        where = f" ({error.file}:{error.line})" if error.file else ""
        return f"{error.type}: {error.first_line[:300]}{where}"
    if answers and answers.cause:
        return answers.cause
    red = [lab for lab in labs if not lab.passed]
    ids = ", ".join(lab.id for lab in red)
    if answers is None:
        return f"red in public: {ids}"
    late = any(problem == "late" for problem in answers.problems.values())
    ended = "; not every scenario came to an end" if late else ""
    if all(lab.public.good == lab.public.total for lab in red):
        return f"green in public, but hidden scenarios do not agree: {ids}{ended}"
    return f"hidden scenarios do not agree: {ids}{ended}"


def _is_late(public: RunResult) -> bool:
    return any(case.outcome is Outcome.TIMEOUT for lab in public.labs for case in lab.cases)


def _shortened(red: FirstRed | None) -> FirstRed | None:
    if red is None or len(red.error.message) <= LONGEST_MESSAGE:
        return red
    left = len(red.error.message) - LONGEST_MESSAGE
    message = f"{red.error.message[:LONGEST_MESSAGE]}… [{left:,} more characters]"
    return replace(red, error=replace(red.error, message=message))
