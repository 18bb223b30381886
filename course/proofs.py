"""The proofs about one chapter, each a job that returns sentences about what does not hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from course import practice, starters, texts
from course.blank import blank_bodies
from course.checkpoints import with_tests
from course.children import Children
from course.compiled import compile_tree, packed
from course.faults import inject
from course.labs import run_labs
from course.leaks import find_leaks
from course.manifest import Course
from course.outline import Chapter, Lab, module_path
from course.packages import require
from course.results import RunResult, Verdict
from course.runner import Injection
from course.snapshot import File, Tree, check_lock, checkpoint, read_tree, write_tree
from course.start import not_as_declared, prove_start

Problems = list[str]


@dataclass(frozen=True)
class Job:
    """One proof about one chapter."""

    chapter: str
    proof: str
    run: Callable[[], Problems]


@dataclass(frozen=True)
class Stage:
    """A chapter with the folders that its proofs run in, and who killed which fault."""

    course: Course
    chapter: Chapter
    line: tuple[Chapter, ...]
    solved: Path
    scratch: Path
    tree: Tree
    children: Children
    killers: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def faults_file(self) -> Path:
        return self.course.root / "labs" / self.chapter.name / "faults.py"

    @property
    def commands(self) -> dict[str, str]:
        """Every command line of the chapter's texts, with the text it stands in."""
        return texts.commands(self.course, self.chapter)

    @property
    def manifest(self) -> str:
        return f"labs/{self.chapter.name}/chapter.toml"


def set_up(course: Course, chapter: Chapter, scratch: Path, children: Children) -> Stage:
    """The chapter's stage in a new folder `scratch`: its checkpoint with all tests of its line.

    CourseError where the layers do not fold, Unavailable where a package is missing.
    """
    line = tuple(course.chapter(name) for name in course.line_to(chapter.id))
    require(line)
    tree = checkpoint(course, chapter.id)
    solved = scratch / "solved"
    solved.mkdir(parents=True)
    write_tree(with_tests(course, line, tree), solved)
    children.know(solved, _compiled(with_tests(course, (chapter,), tree), solved))
    return Stage(course, chapter, line, solved, scratch, tree, children)


def _compiled(files: Tree, solved: Path) -> Path:
    """A table of the files' code, which every fault of the chapter runs."""
    table = solved.with_name("compiled.bin")
    code = compile_tree({path: file.data for path, file in files.items()}, str(solved.resolve()))
    table.write_bytes(packed(code))
    return table


def proofs_of(
    stage: Stage, repeat: int, run_later: frozenset[str] = frozenset()
) -> Iterator[Job]:
    """The chapter's proofs; command lines of its texts that are run in a later chapter, whose
    practice holds this one too, need not be run here."""
    name, chapter = stage.chapter.name, stage.chapter
    yield Job(name, "commands in the texts", lambda: _commands(stage, run_later))
    yield Job(name, "lock", lambda: _lock(stage))
    yield Job(name, "starters", lambda: _starters(stage))
    yield Job(name, "texts", lambda: texts.empty_texts(stage.course, chapter))
    yield Job(name, "start", lambda: _start(stage))
    yield Job(name, "solution", lambda: _green(stage, None))
    for seed in range(1, repeat):
        yield Job(name, f"solution, shuffled with seed {seed}", lambda s=seed: _green(stage, s))  # type: ignore[misc]
    for lab in chapter.labs:
        yield Job(name, f"lab {lab.id} alone", lambda one=lab: _alone(stage, one))  # type: ignore[misc]
    for fault in chapter.faults:
        yield Job(name, f"fault {fault.id}", lambda one=fault.id: _killed(stage, one))  # type: ignore[misc]
    if (stage.course.root / "labs" / name / "hidden").is_dir():
        from course.probe_proof import probe_proof  # needs what only grading has to load

        if proof := probe_proof(stage.course, chapter, stage.tree):
            yield from (Job(name, what, prove) for what, prove in proof.proofs())


def _lock(stage: Stage) -> Problems:
    check_lock(stage.course, stage.chapter.id, stage.tree)
    return []


def _starters(stage: Stage) -> Problems:
    course, chapter = stage.course, stage.chapter
    stale = [f"{path} is not made from the solution: course starters --write {chapter.id}"
             for path in starters.differences(course, chapter)]
    return [*stale, *starters.wrong_reds(course, chapter)]


def _start(stage: Stage) -> Problems:
    """The practice as a learner gets it: it starts as declared and holds no answer."""
    desk = stage.scratch / "desk"
    practice.make(stage.course, stage.chapter, desk, lang="en",
                  prove=lambda made: prove_start(made, stage.children))
    return [*_every_lab_red(stage, desk), *find_leaks(stage.course, stage.chapter, desk)]


def _every_lab_red(stage: Stage, desk: Path) -> Problems:
    """In the untouched practice every case says its lab's first red, or that of a lab it needs."""
    problems = []
    reds = {lab.id: lab.first_red for lab in stage.chapter.labs}
    for judged in run_labs(
        desk, stage.line, stage.chapter.labs, children=stage.children).labs:
        lab = stage.chapter.lab(judged.id)
        declared = {lab.first_red, *(reds[need] for need in _needed(stage.chapter, lab))}
        for case in judged.cases:
            said = case.error.first_line if case.error else str(case.outcome)
            if said not in declared:
                problems.append(f"{stage.manifest}: lab {lab.id} declares first_red "
                                f"{lab.first_red!r}, but at the start {case.id} says {said!r}")
    return problems


def _green(stage: Stage, seed: int | None) -> Problems:
    """Every lab of every chapter up to this one is green on this chapter's checkpoint."""
    labs = [lab for chapter in stage.line for lab in chapter.labs]
    return _reds(run_labs(stage.solved, stage.line, labs, shuffle=seed,
                          children=stage.children))


def _alone(stage: Stage, lab: Lab) -> Problems:
    """With only this lab open it is 0 of its count; labs that do not need it stay green."""
    needing = _needing(stage.chapter, lab)
    others = [one for one in stage.chapter.labs if one.id not in needing]
    folder, injection = stage.solved, None
    if lab.holes:
        folder = stage.scratch / f"lab-{lab.id}"
        folder.mkdir()
        write_tree(with_tests(stage.course, (stage.chapter,), _open(stage, lab)), folder)
    else:
        before = next(fault for fault in stage.chapter.faults if fault.id == lab.before)
        injection = Injection(stage.faults_file, before.function, before.seam)
    seen = run_labs(folder, stage.line, [lab, *others], fault=injection,
                    children=stage.children)
    wrong = not_as_declared(lab, seen.labs[0])
    return ([wrong] if wrong else []) + _reds(
        replace(seen, labs=seen.labs[1:]), f" although it does not need lab {lab.id}")


def _open(stage: Stage, lab: Lab) -> Tree:
    tree = dict(stage.tree)
    for hole in lab.holes:
        module, _, name = hole.partition(":")
        path = module_path(module)
        source = blank_bodies(tree[path].data.decode(), {name: lab.first_red}, path)
        tree[path] = File(source.encode(), tree[path].executable)
    return tree


def _needing(chapter: Chapter, lab: Lab) -> set[str]:
    """The lab and every lab that needs it, directly or through others."""
    found = {lab.id}
    for other in chapter.labs:
        if found & set(other.needs):
            found.add(other.id)
    return found


def _needed(chapter: Chapter, lab: Lab) -> set[str]:
    """Every lab that this one needs, directly or through others."""
    found = set(lab.needs)
    for other in reversed(chapter.labs):
        if other.id in found:
            found |= set(other.needs)
    return found


def _killed(stage: Stage, fault_id: str) -> Problems:
    fault = next(one for one in stage.chapter.faults if one.id == fault_id)
    lab = stage.chapter.lab(fault.lab)
    result = inject(stage.solved, stage.chapter, lab, fault, stage.faults_file,
                    children=stage.children)
    if not result.source:
        return [f"labs/{stage.chapter.name}/faults.py has no function {fault.function}"]
    stage.killers[fault_id] = result.killers
    if result.verdict is Verdict.KILLED:
        return []
    said = result.message.splitlines()[0] if result.message else ""
    return [f"labs/{stage.chapter.name}/faults.py: fault {fault_id} is {result.verdict}, "
            f"must be killed by {' or '.join(fault.killed_by)}: {said}"]


def idle_tests(stage: Stage) -> Problems:
    """Public tests that kill no fault of their lab."""
    busy = {name for names in stage.killers.values() for name in names}
    return [f"{lab.file}::{case} kills no fault: add one that it kills"
            for lab in stage.chapter.labs for case in lab.cases
            if case not in busy] if stage.chapter.faults else [
                f"chapter {stage.chapter.id} has no faults"]


def _commands(stage: Stage, run_later: frozenset[str]) -> Problems:
    desk = stage.scratch / "done"
    made = practice.make(stage.course, stage.chapter, desk, lang="en",
                         prove=lambda new: prove_start(new, stage.children))
    write_tree({path: file for path, file in read_tree(
        stage.course.root / "solutions" / stage.chapter.name).items()}, made.folder)
    problems = (texts.try_command(line, where, made.folder)
                for line, where in stage.commands.items() if line not in run_later)
    return [problem for problem in problems if problem]


def _reds(result: RunResult, more: str = "") -> Problems:
    problems = []
    for lab in result.labs:
        if case := lab.first_red:
            said = f"{case.error.type}: {case.error.first_line}" if case.error else ""
            problems.append(f"{case.id} is {case.outcome}{more}: {said}")
    return problems
