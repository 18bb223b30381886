"""An autograder for Gradescope as one zip file: the kit, the chapter, and two scripts.

Gradescope unpacks it to /autograder/source, runs setup.sh once and run_autograder for each
submission (its "Autograder Specifications").
"""

from __future__ import annotations

import io
import shlex
import zipfile
from importlib import metadata
from pathlib import Path

import course as kit
from course.errors import Unavailable, UsageProblem
from course.manifest import Course
from course.render.gradescope import crashed
from course.snapshot import File, Tree, check_lock, checkpoint, read_tree, replace_file

SCRIPTS = Path(__file__).resolve().parent / "render" / "templates"
MADE = (1980, 1, 1, 0, 0, 0)  # the same course and kit make the same bytes


def write(course: Course, chapter_id: str, path: Path) -> None:
    """Write the zip file for this chapter, whole or not at all."""
    if not path.parent.is_dir():
        raise UsageProblem(f"{path.parent} is no folder", f"mkdir -p {path.parent}")
    replace_file(path, packed(autograder(course, chapter_id)))


def autograder(course: Course, chapter_id: str) -> Tree:
    """Every file of the autograder. CourseBroken where the chapter's layers do not fold."""
    chapter = course.chapter(chapter_id)
    check_lock(course, chapter_id, checkpoint(course, chapter_id))
    run = (SCRIPTS / "run_autograder.sh").read_text("utf-8").replace(
        "@CHAPTER@", shlex.quote(chapter.id))
    return {
        "setup.sh": File((SCRIPTS / "setup_autograder.sh").read_bytes(), executable=True),
        "run_autograder": File(run.encode(), executable=True),
        "crashed.json": File(crashed(chapter)),
        "requirements.txt": File(
            "".join(f"{need}\n" for need in (*requirements(), *chapter.packages)).encode()),
        **_below("kit/course", read_tree(Path(kit.__file__).resolve().parent)),
        **_below("root", _course_files(course, chapter_id)),
    }


def requirements() -> list[str]:
    """What the kit itself needs, without its extras."""
    try:
        needs = metadata.requires("course-kit") or []
    except metadata.PackageNotFoundError:
        raise Unavailable("the kit is not installed here, so what it needs is not known",
                          "python -m pip install -e .") from None
    return sorted(need for need in needs if "extra ==" not in need)


def packed(tree: Tree) -> bytes:
    """The tree as a zip file; the same tree makes the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(tree):
            info = zipfile.ZipInfo(path, MADE)
            info.create_system = 3  # Unix, so that the permissions below are read
            info.external_attr = (0o100755 if tree[path].executable else 0o100644) << 16
            archive.writestr(info, tree[path].data, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _course_files(course: Course, chapter_id: str) -> Tree:
    """The part of the course that grading this chapter reads: its line of layers, and no other."""
    root = course.root
    tree = {"labs/course.toml": File((root / "labs" / "course.toml").read_bytes()),
            "checkpoints/checkpoints.lock": File(
                (root / "checkpoints" / "checkpoints.lock").read_bytes())}
    for track in course.tracks:  # an empty folder stands for a base that this line does not use
        if track.base:
            tree[f"checkpoints/{track.base}/.base"] = File(b"")
    base = course.base_of(chapter_id)
    del tree[f"checkpoints/{base}/.base"]
    tree |= _below(f"checkpoints/{base}", read_tree(root / "checkpoints" / base))
    for name in course.line_to(chapter_id):
        for part in ("labs", "solutions"):
            tree |= _below(f"{part}/{name}", read_tree(root / part / name))
    return tree


def _below(folder: str, tree: Tree) -> dict[str, File]:
    return {f"{folder}/{path}": file for path, file in tree.items()}
