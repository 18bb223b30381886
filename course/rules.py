"""What a manifest must keep to. Each check raises CourseBroken naming the file and the key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from course.errors import CourseBroken
from course.outline import Chapter, Fault, Lab, Text, Track, chapter_id_of, module_path

_ANY_DEFINITION = re.compile(
    r"^(?=(?: {4})?(?:async )?(class|def) )( {4})?(?:async )?(?:class|def) (\w+)", re.MULTILINE
)
MOST_POINTS = 1_000_000.0


def check_course(root: Path, title: Text, tracks: Sequence[Track], path: Path) -> None:
    """The tracks of the course.toml at `path`: what they name exists, once."""
    names = [name for track in tracks for name in track.chapters]
    _unique(path, "track.id", (track.id for track in tracks))
    _unique(path, "chapter", names)
    _unique(path, "chapter id", map(chapter_id_of, names))
    seen: set[str] = set()
    for track in tracks:
        if bool(track.base) == bool(track.after):
            raise CourseBroken(f"{path}: track {track.id} needs exactly one of base and after")
        if track.after and track.after not in seen:
            raise CourseBroken(f"{path}: track.after {track.after!r} is no chapter above it")
        if track.base and not (root / "checkpoints" / track.base).is_dir():
            raise CourseBroken(f"{path}: track.base {track.base!r} is no folder in checkpoints/")
        if not track.chapters:
            raise CourseBroken(f"{path}: track {track.id} has no chapters")
        seen |= {chapter_id_of(name) for name in track.chapters} | set(track.chapters)
    _texts(path, [("title", title), *(("track.title", t.title) for t in tracks)])


def check_chapter(chapter: Chapter, path: Path) -> None:
    """A chapter read from the chapter.toml at `path`, with the cases of its test files."""
    _unique(path, "lab.id", (lab.id for lab in chapter.labs))
    _unique(path, "lab.tests", (lab.tests for lab in chapter.labs))
    _unique(path, "fault.id", (fault.id for fault in chapter.faults))
    _unique(path, "hole", (hole for lab in chapter.labs for hole in lab.holes))
    _texts(path, [("title", chapter.title)])
    if not chapter.labs or not chapter.submit or not chapter.api:
        raise CourseBroken(f"{path}: lab, submit and api must not be empty")
    for lab in chapter.labs:
        _check_lab(chapter, lab, path)
    for fault in chapter.faults:
        _check_fault(chapter, fault, path)


def _check_lab(chapter: Chapter, lab: Lab, path: Path) -> None:
    where = f"{path}: lab {lab.id}"
    ids = [other.id for other in chapter.labs]
    if lab.count != len(lab.cases) or lab.count < 1:
        raise CourseBroken(f"{where}: count = {lab.count}, but {lab.tests} has {len(lab.cases)}")
    if unknown := set(lab.needs) - set(ids[: ids.index(lab.id)]):
        raise CourseBroken(f"{where}: needs names {sorted(unknown)}, no earlier lab")
    if unknown := set(lab.observes) - set(lab.cases):
        raise CourseBroken(f"{where}: observes names {sorted(unknown)}, not in {lab.tests}")
    if not lab.first_red.strip() or not lab.hints:
        raise CourseBroken(f"{where}: first_red and hints must not be empty")
    if not 0 < lab.timeout_s <= 120:
        raise CourseBroken(f"{where}: timeout_s = {lab.timeout_s}, allowed is above 0 to 120")
    if not 0 < lab.points <= MOST_POINTS:
        raise CourseBroken(f"{where}: points = {lab.points}, allowed is above 0 to "
                           f"{MOST_POINTS:,.0f}")
    if bool(lab.holes) == bool(lab.before):
        raise CourseBroken(f"{where}: needs holes, or (with holes = []) before = a fault's id")
    if lab.before and lab.before not in {fault.id for fault in chapter.faults_of(lab.id)}:
        raise CourseBroken(f"{where}: before = {lab.before!r} is no fault of this lab")
    _texts(path, [(f"lab {lab.id} title", lab.title), *((f"lab {lab.id} hints", hint)
                                                        for hint in lab.hints)])


def _check_fault(chapter: Chapter, fault: Fault, path: Path) -> None:
    where = f"{path}: fault {fault.id}"
    labs = {lab.id: lab for lab in chapter.labs}
    if fault.lab not in labs:
        raise CourseBroken(f"{where}: lab = {fault.lab!r} is no lab of this chapter")
    if not fault.killed_by or set(fault.killed_by) - set(labs[fault.lab].cases):
        raise CourseBroken(f"{where}: killed_by {list(fault.killed_by)} must name tests of "
                           f"{labs[fault.lab].tests}")
    module, _, name = fault.seam.partition(":")
    if not module or not name:
        raise CourseBroken(f"{where}: seam = {fault.seam!r} is not module:name")
    _texts(path, [(f"fault {fault.id} breaks", fault.breaks)])


def check_holes(chapter: Chapter, solution: Path, path: Path) -> None:
    """Every hole of the chapter is defined in its solution."""
    if not solution.is_dir():
        return  # inside a practice folder the manifest travels without its solution
    defined: dict[str, set[str]] = {}
    for hole in chapter.holes:
        module, _, name = hole.partition(":")
        if module not in defined:
            defined[module] = _definitions(solution / module_path(module))
        if name not in defined[module]:
            raise CourseBroken(f"{path}: hole {hole!r} is not defined in "
                               f"{solution / module_path(module)}")


def _definitions(path: Path) -> set[str]:
    """`f` and `C.f` for each function and method, found by lines; `blank` reads it exactly."""
    source = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
    names: set[str] = set()
    owner = ""
    for kind, inner, name in _ANY_DEFINITION.findall(source):
        if kind == "class":
            owner = name if not inner else owner
        else:
            names.add(f"{owner}.{name}" if inner else name)
    return names


def _unique(path: Path, key: str, values: Iterable[str]) -> None:
    repeated = [value for value, times in Counter(values).items() if times > 1]
    if repeated:
        raise CourseBroken(f"{path}: {key} {repeated[0]!r} stands twice")


def _texts(path: Path, texts: Iterable[tuple[str, Text]]) -> None:
    for key, text in texts:
        if not text.en.strip() or not text.zh.strip():
            raise CourseBroken(f"{path}: {key} must have both en and zh")
