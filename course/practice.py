"""Make, open, restore and reset a practice folder. It stands alone: no course checkout needed."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from course import __version__
from course.blank import blank_bodies
from course.errors import PracticeBroken, UsageProblem
from course.manifest import Course
from course.outline import Chapter, Lab, Text, Track, module_path
from course.scratch import remove_tree
from course.signatures import Signatures, public_signatures
from course.snapshot import (
    File,
    check_lock,
    checkpoint_before,
    overlay,
    read_tree,
    replace_file,
    write_tree,
)

FORMAT = 1
KIT = ".course"
RECORD = f"{KIT}/practice.json"


class Manifest(msgspec.Struct, frozen=True):
    """practice.json: what was generated. `files` holds the sha256 of each kit-owned file."""

    format: int
    kit: str
    lang: str
    chapter: str
    course_title: str
    chapters: tuple[Chapter, ...]
    files: dict[str, str]
    signatures: dict[str, Signatures]
    first_red: dict[str, Any] | None = None


class Practice(msgspec.Struct, frozen=True):
    """An open practice folder."""

    folder: Path
    manifest: Manifest

    @property
    def chapter(self) -> Chapter:
        """The chapter being practised: the last one."""
        return self.manifest.chapters[-1]

    def lab(self, lab_id: str) -> Lab:
        return self.chapter_of(lab_id).lab(lab_id)

    def chapter_of(self, lab_id: str) -> Chapter:
        for chapter in self.manifest.chapters:
            if any(lab.id == lab_id for lab in chapter.labs):
                return chapter
        known = ", ".join(lab.id for lab in self.chapter.labs)
        raise UsageProblem(f"{lab_id!r} is no lab, chapter or fault of this practice (chapter "
                           f"{self.chapter.id} has the labs {known})", "course list")

    def outline(self) -> Course:
        """The course as far as this practice knows it: the chapters through its own."""
        chapters = self.manifest.chapters
        title = Text(self.manifest.course_title, self.manifest.course_title)
        tracks = tuple(
            Track(track, Text(track, track), tuple(c.name for c in chapters if c.track == track))
            for track in dict.fromkeys(chapter.track for chapter in chapters))
        return Course(self.folder, title, tracks)

    def faults_file(self, chapter: Chapter) -> Path:
        return self.folder / KIT / "labs" / chapter.name / "faults.py"


def tree_of(course: Course, chapter: Chapter) -> dict[str, File]:
    """The code a practice starts from: the checkpoint before, with the scaffold over it."""
    below = checkpoint_before(course, chapter.id)
    if earlier := course.line_to(chapter.id)[:-1]:
        check_lock(course, earlier[-1], below)
    return overlay(below, read_tree(course.root / "starters" / chapter.name))


def make(
    course: Course,
    chapter: Chapter,
    target: Path,
    *,
    lang: str,
    prove: Callable[[Practice], dict[str, Any] | None],
) -> Practice:
    """A new practice folder at `target`, made beside it and renamed into place when `prove` is
    content with it (it returns the first red as found). Nothing is left behind otherwise."""
    _check_target(course, target)
    tree = tree_of(course, chapter)
    earlier = course.line_to(chapter.id)[:-1]
    chapters = (*(course.chapter(name) for name in earlier), chapter)
    tree |= _kit_files(course, chapters) | _texts(course, chapter, tree, lang)
    target = target.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{time.monotonic_ns()}.tmp")
    try:
        try:
            temporary.mkdir(parents=True)
            write_tree(tree, temporary)
        except OSError as error:
            raise UsageProblem(f"{target} cannot be written: {error.strerror or error}",
                               "choose a folder that you may write to") from None
        manifest = Manifest(FORMAT, __version__, lang, chapter.id, course.title.in_language(lang),
                            chapters, _digests(tree), _signatures(chapter, tree))
        practice = Practice(temporary, manifest)
        _write_manifest(practice)
        manifest = msgspec.structs.replace(manifest, first_red=prove(practice))
        _write_manifest(Practice(temporary, manifest))
        if target.is_dir():
            target.rmdir()
        temporary.rename(target)
    finally:
        if temporary.exists():
            remove_tree(temporary)
    return Practice(target, manifest)


def open_practice(start: Path) -> Practice:
    """The practice folder at `start` or above it."""
    start = Path(os.path.abspath(start))  # noqa: PTH100 - keep the path as the learner knows it
    for folder in (start, *start.parents):
        record = folder / RECORD
        if record.is_file():
            return Practice(folder.resolve(), _read_manifest(record))
    raise PracticeBroken(f"no practice folder at {start} or above it",
                         "course practice CHAPTER DIR   (then cd DIR)")


def check_tests(practice: Practice, labs: tuple[Lab, ...]) -> None:
    """Refuse to run test files that are not as they were generated."""
    changed = [path for path in changed_files(practice) if path in {lab.file for lab in labs}]
    if changed:
        gone = [path for path in changed if not (practice.folder / path).is_file()]
        what = "is missing" if changed[0] in gone else "is not as it was generated"
        more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        raise PracticeBroken(f"{changed[0]} {what}{more}; results of it would prove nothing",
                             "course restore")


def changed_files(practice: Practice) -> list[str]:
    """Kit-owned files that are missing or changed, in path order."""
    return [path for path, digest in sorted(practice.manifest.files.items())
            if _file_digest(practice.folder / path) != digest]


def restore(practice: Practice) -> list[str]:
    """Put changed or deleted kit-owned files back; the paths that were. Learner files stay."""
    changed = changed_files(practice)
    for path in changed:
        pristine = practice.folder / KIT / "pristine" / path
        if path.startswith(f"{KIT}/") or _file_digest(pristine) != practice.manifest.files[path]:
            raise PracticeBroken(f"{path} cannot be put back: its copy in {KIT}/ was changed too",
                                 f"course practice {practice.chapter.id} NEW-DIR")
    for path in changed:
        target = practice.folder / path
        if target.is_dir() and not target.is_symlink():
            raise PracticeBroken(f"{path} is a folder now; move it away", "course restore")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        replace_file(target, (practice.folder / KIT / "pristine" / path).read_bytes())
    return changed


def reset(practice: Practice, lab: Lab) -> list[tuple[Path, Path]]:
    """Blank one lab's holes again in the learner's files; (file, its backup) for each."""
    if not lab.holes:
        raise UsageProblem(f"lab {lab.id} deepens an earlier lab and has no scaffold of its own",
                           f"course reset {', '.join(lab.needs) or lab.id}")
    by_module: dict[str, dict[str, str]] = {}
    for hole in lab.holes:
        module, _, name = hole.partition(":")
        by_module.setdefault(module, {})[name] = lab.first_red
    done = []
    for module, holes in by_module.items():
        path = practice.folder / module_path(module)
        try:
            blanked = blank_bodies(path.read_text("utf-8-sig"), holes, module_path(module))
        except (OSError, SyntaxError, ValueError) as error:
            raise PracticeBroken(f"{module_path(module)} cannot be reset: {error}") from None
        done.append((path, _backup(path), blanked))
    for path, _, blanked in done:
        replace_file(path, blanked.encode())
    return [(path, backup) for path, backup, _ in done]


def _backup(path: Path) -> Path:
    backup = path.with_name(f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}.bak")
    shutil.copy2(path, backup)
    return backup


def _check_target(course: Course, target: Path) -> None:
    real = target.resolve()
    if real.is_relative_to(course.root.resolve()):
        raise UsageProblem(f"{target} lies inside the course; a practice folder stands outside",
                           f"course practice CHAPTER ../{target.name or 'desk'}")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise UsageProblem(f"{target} exists and is not a folder", "choose another name")
    try:
        if target.is_dir() and any(target.iterdir()):
            raise UsageProblem(f"{target} exists and is not empty; nothing in it was touched",
                               "choose another name")
    except OSError as error:
        raise UsageProblem(f"{target} cannot be read: {error.strerror}") from None


def _kit_files(course: Course, chapters: tuple[Chapter, ...]) -> dict[str, File]:
    """Tests where the learner runs them, and pristine copies of all that the kit owns."""
    files: dict[str, File] = {}
    for chapter in chapters:
        labs = course.root / "labs" / chapter.name
        for lab in chapter.labs:
            data = (labs / lab.tests).read_bytes()
            files[lab.file] = files[f"{KIT}/pristine/{lab.file}"] = File(data)
        if (labs / "faults.py").is_file():
            files[f"{KIT}/labs/{chapter.name}/faults.py"] = File((labs / "faults.py").read_bytes())
    for extra in chapters[-1].extras:
        data = (course.root / "labs" / chapters[-1].name / extra).read_bytes()
        files[extra] = files[f"{KIT}/pristine/{extra}"] = File(data)
    return files


def _texts(
    course: Course, chapter: Chapter, tree: Mapping[str, File], lang: str
) -> dict[str, File]:
    from course.render.pages import practice_pages  # jinja2 is only needed here

    pages = practice_pages(course, chapter, lang)
    chapter_text = "README.zh.md" if lang == "zh" else "README.md"
    text = (course.root / "labs" / chapter.name / chapter_text)
    if text.is_file():
        pages["CHAPTER.md"] = text.read_text("utf-8")
    return {path: File(page.encode()) for path, page in pages.items() if path not in tree}


def _digests(tree: Mapping[str, File]) -> dict[str, str]:
    """The files that `restore` looks after: tests, extras and what stands in .course/."""
    owned = {path.removeprefix(f"{KIT}/pristine/") for path in tree
             if path.startswith(f"{KIT}/pristine/")}
    owned |= {path for path in tree if path.startswith(f"{KIT}/")}
    return {path: hashlib.sha256(tree[path].data).hexdigest() for path in sorted(owned)}


def _file_digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _signatures(chapter: Chapter, tree: Mapping[str, File]) -> dict[str, Signatures]:
    """What a build compares: the public signatures of the scaffold."""
    found = {module: tree.get(module_path(module)) for module in chapter.api}
    return {module: public_signatures(file.data.decode()) for module, file in found.items() if file}


def _write_manifest(practice: Practice) -> None:
    data = msgspec.json.format(msgspec.json.encode(practice.manifest), indent=1)
    replace_file(practice.folder / RECORD, data + b"\n")


def _read_manifest(record: Path) -> Manifest:
    try:
        manifest = msgspec.json.decode(record.read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise PracticeBroken(f"{record} cannot be read: {error}",
                             "course practice CHAPTER NEW-DIR   (then copy your src/ over)"
                             ) from None
    if manifest.format != FORMAT:
        raise PracticeBroken(f"{record} has format {manifest.format}; this kit reads {FORMAT}",
                             "install the kit version that made it: " + manifest.kit)
    return manifest
