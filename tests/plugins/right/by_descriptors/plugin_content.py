"""What a plugin is: a list first, then one judgement after the other over the list."""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType

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


class _Refused(Exception):
    """A path, and what is wrong there."""


def read_content(folder: Path, limits: ContentLimits = ContentLimits()) -> Content:
    """List everything first, judge the whole list, read last."""
    try:
        paths = _listed(folder, limits)
        for path in paths:
            _judge(folder, path)
        _no_twins(paths)
        files = _read(folder, paths, limits)
    except _Refused as refused:
        raise CourseError("CONTENT_INVALID", f"{ascii(str(refused))[1:200]}") from None
    except OSError as error:
        raise CourseError("CONTENT_INVALID", type(error).__name__) from None
    kept = {path: data for path, data in files.items() if path != SIGNATURE_FILE}
    return Content(MappingProxyType(kept), tree_digest(kept), files.get(SIGNATURE_FILE))


def _listed(folder: Path, limits: ContentLimits) -> list[str]:
    """Files and folders, relative; folders end in a slash; links are files here."""
    found: list[str] = []
    pending = [("", 0)]
    while pending:
        inside, depth = pending.pop()
        with os.scandir(folder / inside) as entries:
            for entry in entries:
                path = inside + entry.name
                if not entry.is_dir(follow_symlinks=False):
                    found.append(path)
                elif depth + 1 >= limits.depth:  # the plugin's own folder counts
                    raise _Refused(f"{path}: too deep")
                else:
                    found.append(f"{path}/")
                    pending.append((f"{path}/", depth + 1))
    return sorted(found)


def _judge(folder: Path, path: str) -> None:
    name = path.rstrip("/").rpartition("/")[2]
    if FILE_NAME.fullmatch(name) is None or name == "__pycache__":
        raise _Refused(f"{path}: no name")
    try:
        lexical(folder, path.rstrip("/"))
    except CourseError:
        raise _Refused(f"{path}: another file elsewhere") from None
    if not path.endswith("/") and PurePosixPath(name).suffix not in TEXT_SUFFIXES:
        raise _Refused(f"{path}: no text")


def _no_twins(paths: list[str]) -> None:
    for lowered, count in Counter(path.rstrip("/").lower() for path in paths).items():
        if count > 1:
            raise _Refused(f"{lowered}: more than once")


def _read(folder: Path, paths: list[str], limits: ContentLimits) -> dict[str, bytes]:
    files = [path for path in paths if not path.endswith("/")]
    if len(files) > limits.files:
        raise _Refused(f"{files[limits.files]}: too many")
    read: dict[str, bytes] = {}
    for path in files:
        try:
            data = read_plain_file(folder / path, limits.file_bytes)
        except CourseError as error:
            raise _Refused(f"{path}: {error.code}") from None
        try:
            text = data.decode()
        except ValueError:
            raise _Refused(f"{path}: no text") from None
        if "\0" in text:
            raise _Refused(f"{path}: a NUL")
        read[path] = data
        if sum(map(len, read.values())) > limits.total_bytes:
            raise _Refused(f"{path}: too much")
    return read


def tree_digest(files: Mapping[str, bytes]) -> str:
    """All the bytes in one piece, then hashed."""
    names = sorted(files, key=str.encode)
    parts = [part for name in names for part in (name.encode(), bytes(files[name]))]
    framed = (struct.pack(">Q", len(part)) + part for part in parts)
    return "sha256:" + hashlib.sha256(TREE_DOMAIN + b"".join(framed)).hexdigest()


def check_entries(tools: Iterable[ToolDeclaration], content: Content) -> None:
    """The hashes of the entries against those that are declared."""
    for tool in tools:
        if tool.entry not in content.files:
            raise CourseError("ENTRY_ESCAPE", f"{tool.name}: no such file in the plugin")
        found = hashlib.sha256(content.files[tool.entry]).hexdigest()
        if tool.sha256 is not None and tool.sha256 != found:
            raise CourseError("DIGEST_MISMATCH", f"{tool.name}: another file is meant")
