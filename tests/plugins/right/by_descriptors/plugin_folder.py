"""Where a plugin lies: folders are descriptors, and each path is opened step by step."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import ExitStack
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


_STEP = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def load_plugin(
    root: Path, name: str, *, parse: Callable[[bytes], Manifest] = parse_manifest
) -> Plugin:
    """Every step is opened below the one before, so nothing on the way can be a link."""
    if type(name) is not str or not PLUGIN_NAME.fullmatch(name) or len(name) > MAX_NAME:
        raise CourseError("INVALID_NAME", "no plugin name")
    with ExitStack() as opened:
        try:
            top = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
            opened.callback(os.close, top)
            if stat.S_ISLNK(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
                raise CourseError("ENTRY_ESCAPE", "the folder of the plugin is a link")
            folder = os.open(name, _STEP | os.O_DIRECTORY, dir_fd=top)
        except OSError:
            raise CourseError("MANIFEST_NOT_FOUND", "no such folder") from None
        opened.callback(os.close, folder)
        try:
            data = _read(MANIFEST_FILE, MAX_BYTES, folder)
        except CourseError as error:
            codes = {"TOO_LARGE": "INVALID_SCHEMA", "NOT_PLAIN": "MANIFEST_NOT_FOUND"}
            raise CourseError(codes[error.code], error.message) from None
        manifest = parse(data)
        if manifest.name != name:
            raise CourseError("INVALID_NAME", "name: another one than the folder")
        for index, tool in enumerate(manifest.tools):
            try:
                _look(folder, tool.entry)
            except (OSError, ValueError, CourseError):
                where = f"tools[{index}].entry"
                raise CourseError("ENTRY_ESCAPE", f"{where}: no file of the plugin") from None
    digest = hashlib.sha256(data).hexdigest()
    return Plugin(manifest, digest, contained(root, name))


def read_plain_file(path: Path, most: int) -> bytes:
    """As _read, from where the process stands."""
    return _read(path, most, None)


def _read(path: str | Path, most: int, folder: int | None) -> bytes:
    name = Path(path).name
    try:
        with os.fdopen(os.open(path, _STEP, dir_fd=folder), "rb", buffering=0) as file:
            _judge(os.fstat(file.fileno()))
            pieces = [file.read(most + 1) or b""]
            while pieces[-1] and sum(map(len, pieces)) <= most:
                pieces.append(file.read(most + 1 - sum(map(len, pieces))) or b"")
    except OSError:
        raise CourseError("NOT_PLAIN", f"{name}: cannot be read") from None
    data = b"".join(pieces)
    if len(data) > most:
        raise CourseError("TOO_LARGE", f"{name}: too large")
    return data


def _judge(found: os.stat_result) -> None:
    if stat.S_IFMT(found.st_mode) != stat.S_IFREG or found.st_nlink != 1:
        raise CourseError("NOT_PLAIN", "no plain file")


def _look(folder: int, entry: str) -> None:
    *above, last = entry.split("/")
    with ExitStack() as opened:
        for part in above:
            if part in ("", ".", ".."):
                raise ValueError(part)
            folder = os.open(part, _STEP | os.O_DIRECTORY, dir_fd=folder)
            opened.callback(os.close, folder)
        file = os.open(last, _STEP, dir_fd=folder)
        opened.callback(os.close, file)
        _judge(os.fstat(file))
