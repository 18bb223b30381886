"""What a plugin is: every byte of its folder, read once, under one digest.

A manifest that was read and a file that is read again later are two things. From here on a plugin
is the bytes in a Content, and nobody goes back to the folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

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
    raise NotImplementedError("Lab 32.3 content digest 尚未实现")


def tree_digest(files: Mapping[str, bytes]) -> str:
    """Return the one digest of these files (relative path with `/` → bytes): "sha256:<hex>".

    SHA-256 of TREE_DOMAIN and then, in the order of the UTF-8 paths, of each path and its bytes,
    both preceded by their length in bytes as 8 bytes, big end first. So no two different trees
    are written the same way, whatever stands in them and in whatever order they are given.
    """
    raise NotImplementedError("Lab 32.3 content digest 尚未实现")


def check_entries(tools: Iterable[ToolDeclaration], content: Content) -> None:
    """Return nothing when every entry is in `content` and has the sha256 its tool declares.

    CourseError ENTRY_ESCAPE for an entry that is no file of the content, DIGEST_MISMATCH for one
    with other bytes; a tool without sha256 declares nothing, the tree digest still covers it.
    """
    raise NotImplementedError("Lab 32.3 content digest 尚未实现")
