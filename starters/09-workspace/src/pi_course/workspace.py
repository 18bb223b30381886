"""The folder an agent works in: files it may name, programs it may start, tools for both."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pi_course.tools import Tool

MAX_CHARS = 16_000
ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """`shown` whole lines out of the `total` lines of a text; `text` is those lines, unchanged."""

    text: str
    shown: int
    total: int


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended (negative: killed by that signal); the end of what it printed."""

    exit_code: int
    output: str


class Workspace:
    """Files and programs below one root; every request is a path in the sense of containment.

    All errors are CourseError; besides their own codes the methods have those of `contained`.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))

    def resolve(self, request: str, *, must_exist: bool = True) -> Path:
        """The real path of `request`, judged anew by `contained` at every call."""
        raise NotImplementedError("Lab 09.2 workspace and gate 尚未实现")

    def read_text(self, request: str) -> str:
        """The whole file as UTF-8, exactly: line endings and a byte order mark stay. NOT_TEXT."""
        raise NotImplementedError("Lab 09.2 workspace and gate 尚未实现")

    def write_text(self, request: str, content: str) -> None:
        """Nothing; the file is `content` in UTF-8, exactly, or on any error what it was before.

        Whoever has the old file open goes on reading the old one. Permission bits stay; missing
        folders are made. Codes: NOT_A_FILE, NOT_TEXT, WRITE_FAILED.
        """
        raise NotImplementedError("Lab 09.2 workspace and gate 尚未实现")

    def replace_once(self, request: str, old: str, new: str) -> None:
        """Nothing; `new` stands where `old` stood, and no other byte of the file has changed.

        In a file with CRLF endings a newline in `old` and `new` means CRLF. Codes: NO_MATCH (also
        for an empty `old`) and MANY_MATCHES (overlapping ones count), and those of the two above.
        """
        raise NotImplementedError("Lab 09.2 workspace and gate 尚未实现")

    def list_dir(self, request: str = ".") -> list[str]:
        """The names in a folder, sorted; those of folders end with a slash. NOT_A_FOLDER."""
        raise NotImplementedError("Lab 09.2 workspace and gate 尚未实现")

    async def run_program(self, argv: Sequence[str]) -> ProgramResult:
        """The end of the program argv[0], started in the root with the other items as arguments.

        No shell reads them. Its input is empty; of our environment it sees ENVIRONMENT alone. At
        the end, and when the waiting is cancelled, every process it left in its group is killed.
        Codes: INVALID_ARGV (no list of str, empty, NUL), NOT_STARTED.
        """
        raise NotImplementedError("Lab 09.2 workspace and gate 尚未实现")


def truncate_head(text: str, max_chars: int) -> Excerpt:
    """The first whole lines of `text` that have at most `max_chars` characters together.

    Only a newline ends a line, and it belongs to it. A first line that is too long leaves none.
    """
    raise NotImplementedError("Lab 09.2 workspace and gate 尚未实现")


def truncate_tail(text: str, max_chars: int) -> Excerpt:
    """The last whole lines of `text` that have at most `max_chars` characters together."""
    raise NotImplementedError("Lab 09.2 workspace and gate 尚未实现")


def core_tools(workspace: Workspace) -> tuple[Tool, ...]:
    """The tools read_file, list_dir (permission "read"), write_file, edit_file ("write") and
    run_program ("execute"), bound to `workspace`.

    Arguments: path and from_line (optional, from 1); path (optional); path and content; path,
    old and new; argv. Long texts are cut at a line and end with a note that says what is shown.
    """
    raise NotImplementedError("Lab 09.2 workspace and gate 尚未实现")
