"""What a plugin is: every byte of its folder, read once, under one digest.

A manifest that was read and a file that is read again later are two things. From here on a plugin
is the bytes in a Content, and nobody goes back to the folder.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import NoReturn

from pi_course.containment import lexical
from pi_course.errors import CourseError
from pi_course.plugin_folder import read_plain_file
from pi_course.plugin_manifest import ToolDeclaration

SIGNATURE_FILE = "plugin.sig"
"""The only file that is no part of the digest: it is made from the digest."""

TREE_DOMAIN = b"pi-course plugin tree 1\0"
FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
TEXT_SUFFIXES = frozenset({"", ".json", ".md", ".py", ".sig", ".txt"})


@dataclass(frozen=True, slots=True)
class ContentLimits:
    """How large a plugin may be: files, bytes of one, bytes of all, folders inside each other."""

    files: int = 200
    file_bytes: int = 262_144
    total_bytes: int = 1_048_576
    depth: int = 8


@dataclass(frozen=True, slots=True)
class Content:
    """A plugin's files by relative path with `/`, their digest, and its signature if it has one.

    files refuses every change, holds no signature, and belongs to nobody else.
    """

    files: Mapping[str, bytes] = field(repr=False)
    digest: str
    signature: bytes | None = field(repr=False, default=None)


def read_content(folder: Path, limits: ContentLimits = ContentLimits()) -> Content:
    """Return all bytes of the plugin in `folder`, each file read once, as read_plain_file does.

    A plugin is text in plain files and folders. Refused anywhere, also where no tool needs it:
    links of both kinds and special files; names that do not match FILE_NAME, that lexical
    refuses, or that differ from another only in case; `__pycache__`, and suffixes that are not
    in TEXT_SUFFIXES (so no bytecode and no native library); files that are not UTF-8 or hold a
    NUL; anything beyond `limits`. CourseError CONTENT_INVALID, with the relative path.
    """
    try:
        files = _read_all(folder, limits)
    except OSError:
        raise CourseError("CONTENT_INVALID", "the folder changes or cannot be read") from None
    signature = files.pop(SIGNATURE_FILE, None)
    return Content(MappingProxyType(files), tree_digest(files), signature)


def tree_digest(files: Mapping[str, bytes]) -> str:
    """Return the one digest of these files (relative path with `/` → bytes): "sha256:<hex>".

    SHA-256 of TREE_DOMAIN and then, in the order of the UTF-8 paths, of each path and its bytes,
    both preceded by their length in bytes as 8 bytes, big end first. So no two different trees
    are written the same way, whatever stands in them and in whatever order they are given.
    """
    digest = hashlib.sha256(TREE_DOMAIN)
    for path, data in sorted((path.encode(), data) for path, data in files.items()):
        for part in (path, data):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return f"sha256:{digest.hexdigest()}"


def check_entries(tools: Iterable[ToolDeclaration], content: Content) -> None:
    """Return nothing when every entry is in `content` and has the sha256 its tool declares.

    CourseError ENTRY_ESCAPE for an entry that is no file of the content, DIGEST_MISMATCH for one
    with other bytes; a tool without sha256 declares nothing, the tree digest still covers it.
    """
    for index, tool in enumerate(tools):
        data = content.files.get(tool.entry)
        if data is None:
            raise CourseError("ENTRY_ESCAPE", f"tools[{index}].entry: no file of the plugin")
        if tool.sha256 not in (None, hashlib.sha256(data).hexdigest()):
            raise CourseError("DIGEST_MISMATCH", f"tools[{index}].sha256: not that of the entry")


def _read_all(folder: Path, limits: ContentLimits) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    total = 0
    for path in _walk(folder, PurePosixPath(), limits.depth):
        data = _read_text_file(folder, path, limits)
        total += len(data)
        if len(files) == limits.files or total > limits.total_bytes:
            _refuse(path, "the plugin is too large")
        files[str(path)] = data
    return files


def _walk(folder: Path, inside: PurePosixPath, depth: int) -> Iterator[PurePosixPath]:
    """Every file below `inside`, in one order on every disk; links and doubtful names stop it."""
    seen: set[str] = set()
    for name in sorted(entry.name for entry in (folder / inside).iterdir()):
        path = inside / name
        _check_name(folder, path, name)
        if name.lower() in seen:
            _refuse(path, "differs from another name only in case")
        seen.add(name.lower())
        mode = (folder / path).lstat().st_mode
        if not stat.S_ISDIR(mode):
            yield path
        elif depth == 0:
            _refuse(path, "lies too deep")
        else:
            yield from _walk(folder, path, depth - 1)


def _check_name(folder: Path, path: PurePosixPath, name: str) -> None:
    if not FILE_NAME.fullmatch(name) or name.lower() == "__pycache__":
        _refuse(path, "is no name for a file of a plugin")
    try:
        lexical(folder, str(path))
    except CourseError:
        _refuse(path, "means another file on another system")


def _read_text_file(folder: Path, path: PurePosixPath, limits: ContentLimits) -> bytes:
    if path.suffix.lower() not in TEXT_SUFFIXES:
        _refuse(path, "is not of a kind that plugins are made of")
    try:
        data = read_plain_file(folder / path, limits.file_bytes)
    except CourseError as error:
        _refuse(path, error.code)
    try:
        is_text = "\0" not in data.decode("utf-8")
    except UnicodeDecodeError:
        is_text = False
    if not is_text:
        _refuse(path, "is not text")
    return data


def _refuse(path: PurePosixPath, why: str) -> NoReturn:
    raise CourseError("CONTENT_INVALID", f"{ascii(str(path))[:200]}: {why}")
