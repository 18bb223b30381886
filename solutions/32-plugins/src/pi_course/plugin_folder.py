"""Where a plugin lies on this disk: the folder, its manifest, and files that are only files."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pi_course.containment import contained
from pi_course.errors import CourseError
from pi_course.plugin_json import MAX_BYTES
from pi_course.plugin_manifest import MAX_NAME, PLUGIN_NAME, Manifest, parse_manifest

MANIFEST_FILE = "plugin.json"


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin folder whose manifest and entry paths are in order; its code is still unread."""

    manifest: Manifest
    manifest_sha256: str
    folder: Path = field(repr=False)


def load_plugin(
    root: Path, name: str, *, parse: Callable[[bytes], Manifest] = parse_manifest
) -> Plugin:
    """Return the plugin `name` in the folder `root`: manifest and paths checked, no code touched.

    `name` is judged before it becomes a path; `parse` turns the bytes of plugin.json into a
    Manifest, and that must carry the same name. Each entry must lie inside the plugin folder
    when every link is followed, be reached without any link at all, and be a file that
    read_plain_file reads. `root` itself may be a link.

    Codes of CourseError, beside those of `parse`; no message holds an absolute path:
    INVALID_NAME        `name` is no plugin name (PLUGIN_NAME, MAX_NAME), or not the manifest's
    MANIFEST_NOT_FOUND  no such folder, or in it no plugin.json that read_plain_file reads
    INVALID_SCHEMA      plugin.json has more than MAX_BYTES bytes (they are not all read)
    ENTRY_ESCAPE        the plugin folder is a link or lies outside `root`; an entry is missing,
                        outside, behind a link, or no plain file
    """
    if not isinstance(name, str) or not PLUGIN_NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise CourseError("INVALID_NAME", "a plugin is named by words of a-z and 0-9 joined by -")
    folder = _folder(root, name)
    data = _manifest_bytes(folder)
    manifest = parse(data)
    if manifest.name != name:
        raise CourseError("INVALID_NAME", "name: is not the name of the plugin's folder")
    for index, tool in enumerate(manifest.tools):
        if not _is_plain_inside(folder, tool.entry):
            raise CourseError("ENTRY_ESCAPE", f"tools[{index}].entry: no plain file of the plugin")
    return Plugin(manifest, hashlib.sha256(data).hexdigest(), folder)


def read_plain_file(path: Path, most: int) -> bytes:
    """Return the bytes of a file that is only a file: regular, with one name, not behind a link.

    What is opened is what is judged, so nothing can be swapped in between, and opening never
    waits (a FIFO would). CourseError NOT_PLAIN for a link, a folder, a FIFO, a device, a second
    hard link, and what is missing or cannot be read; TOO_LARGE for more than `most` bytes, of
    which no more than `most` + 1 are read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
                raise CourseError("NOT_PLAIN", f"{path.name}: no regular file with one name")
            data = file.read(most + 1)
    except OSError:
        raise CourseError("NOT_PLAIN", f"{path.name}: cannot be read as a plain file") from None
    if len(data) > most:
        raise CourseError("TOO_LARGE", f"{path.name}: more than {most} bytes")
    return data


def _folder(root: Path, name: str) -> Path:
    try:
        folder = contained(root, name)
    except CourseError as error:
        code = "MANIFEST_NOT_FOUND" if error.code == "NOT_FOUND" else "ENTRY_ESCAPE"
        raise CourseError(code, f"{name}: no plugin folder of that name") from None
    if (root / name).is_symlink():
        raise CourseError("ENTRY_ESCAPE", f"{name}: the plugin folder is a link")
    return folder


def _manifest_bytes(folder: Path) -> bytes:
    try:
        return read_plain_file(folder / MANIFEST_FILE, MAX_BYTES)
    except CourseError as error:
        code = "INVALID_SCHEMA" if error.code == "TOO_LARGE" else "MANIFEST_NOT_FOUND"
        raise CourseError(code, error.message) from None


def _is_plain_inside(folder: Path, entry: str) -> bool:
    """Whether `entry` is inside in truth, every step on the way is no link, the last a file."""
    parts = entry.split("/")
    steps = [folder.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
    try:
        found = contained(folder, entry).lstat()
    except (CourseError, OSError):
        return False
    return (
        not any(step.is_symlink() for step in steps)
        and stat.S_ISREG(found.st_mode)
        and found.st_nlink == 1
    )
