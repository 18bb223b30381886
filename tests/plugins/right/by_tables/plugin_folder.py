"""Where a plugin lies: a path is right when its real path is the same text."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

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
    """Name, folder, bytes, manifest, entries: each step has its own refusal."""
    if not (isinstance(name, str) and len(name) <= MAX_NAME and PLUGIN_NAME.fullmatch(name)):
        raise CourseError("INVALID_NAME", "no plugin name")
    home = os.path.realpath(root)
    place = f"{home.rstrip(os.sep)}{os.sep}{name}"
    if Path(place).is_symlink():
        raise CourseError("ENTRY_ESCAPE", "the folder of the plugin is a link")
    try:
        data = read_plain_file(Path(place, MANIFEST_FILE), MAX_BYTES)
    except CourseError as error:
        if error.code == "TOO_LARGE":
            raise CourseError("INVALID_SCHEMA", "plugin.json is too large") from None
        raise CourseError("MANIFEST_NOT_FOUND", "no plugin.json") from None
    manifest = parse(data)
    if manifest.name != name:
        raise CourseError("INVALID_NAME", "name: not that of the folder")
    bad = [n for n, tool in enumerate(manifest.tools) if not _is_inside(place, tool.entry)]
    if bad:
        raise CourseError("ENTRY_ESCAPE", f"tools[{bad[0]}].entry: no plain file of the plugin")
    return Plugin(manifest, hashlib.sha256(data).hexdigest(), Path(place))


def _is_inside(place: str, entry: str) -> bool:
    path = os.path.normpath(f"{place}{os.sep}{entry}")
    if os.path.realpath(path) != path or not path.startswith(place + os.sep):
        return False
    try:
        found = Path(path).lstat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1


def read_plain_file(path: Path, most: int) -> bytes:
    """Open without waiting, judge the descriptor, read by pieces."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        raise CourseError("NOT_PLAIN", f"{path.name}: cannot be opened") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise CourseError("NOT_PLAIN", f"{path.name}: more than a file")
        data = b""
        while len(data) <= most and (piece := os.read(descriptor, most + 1 - len(data))):
            data += piece
    except OSError:
        raise CourseError("NOT_PLAIN", f"{path.name}: cannot be read") from None
    finally:
        os.close(descriptor)
    if len(data) > most:
        raise CourseError("TOO_LARGE", f"{path.name}: too large")
    return data
