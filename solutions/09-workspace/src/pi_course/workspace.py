"""The folder an agent works in: files it may name, programs it may start, tools for both."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import uuid4

from pi_course.containment import contained
from pi_course.errors import CourseError
from pi_course.schema import Permission, ToolSpec
from pi_course.tools import ExecContext, Tool, ToolOutput

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
        return contained(self.root, request, must_exist=must_exist)

    def read_text(self, request: str) -> str:
        """The whole file as UTF-8, exactly: line endings and a byte order mark stay. NOT_TEXT."""
        try:
            return self._file(request).read_bytes().decode()
        except UnicodeDecodeError as error:
            raise CourseError("NOT_TEXT", f"not UTF-8: {request!r}") from error

    def write_text(self, request: str, content: str) -> None:
        """Nothing; the file is `content` in UTF-8, exactly, or on any error what it was before.

        Whoever has the old file open goes on reading the old one. Permission bits stay; missing
        folders are made. Codes: NOT_A_FILE, NOT_TEXT, WRITE_FAILED.
        """
        path = self._file(request, must_exist=False)
        try:
            _replace(path, content.encode())
        except UnicodeEncodeError as error:
            raise CourseError("NOT_TEXT", f"not Unicode: {request!r}") from error
        except OSError as error:
            raise CourseError("WRITE_FAILED", f"cannot write {request!r}") from error

    def replace_once(self, request: str, old: str, new: str) -> None:
        """Nothing; `new` stands where `old` stood, and no other byte of the file has changed.

        In a file with CRLF endings a newline in `old` and `new` means CRLF. Codes: NO_MATCH (also
        for an empty `old`) and MANY_MATCHES (overlapping ones count), and those of the two above.
        """
        content = self.read_text(request)
        if "\r\n" in content:
            old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
        start = content.find(old)
        if start < 0 or not old:
            raise CourseError("NO_MATCH", f"the text to replace is not in {request!r}")
        if content.find(old, start + 1) >= 0:
            raise CourseError("MANY_MATCHES", f"the text to replace is not unique in {request!r}")
        self.write_text(request, content[:start] + new + content[start + len(old) :])

    def list_dir(self, request: str = ".") -> list[str]:
        """The names in a folder, sorted; those of folders end with a slash. NOT_A_FOLDER."""
        folder = self.resolve(request)
        if not folder.is_dir():
            raise CourseError("NOT_A_FOLDER", f"no folder: {request!r}")
        names = [child.name + "/" * child.is_dir() for child in folder.iterdir()]
        return sorted(os.fsencode(name).decode(errors="replace") for name in names)

    async def run_program(self, argv: Sequence[str]) -> ProgramResult:
        """The end of the program argv[0], started in the root with the other items as arguments.

        No shell reads them. Its input is empty; of our environment it sees ENVIRONMENT alone. At
        the end, and when the waiting is cancelled, every process it left in its group is killed.
        Codes: INVALID_ARGV (no list of str, empty, NUL), NOT_STARTED.
        """
        if isinstance(argv, str) or not argv or not all(_is_argument(item) for item in argv):
            raise CourseError("INVALID_ARGV", "a program and its arguments, as a list of texts")
        with tempfile.TemporaryFile() as output:
            try:
                process = await asyncio.create_subprocess_exec(
                    *argv,
                    cwd=self.root,
                    env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=asyncio.subprocess.STDOUT,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                raise CourseError("NOT_STARTED", f"cannot start {argv[0]!r}") from error
            try:
                exit_code = await process.wait()
            finally:
                _kill_group(process)
                await process.wait()
            output.seek(max(0, output.seek(0, os.SEEK_END) - 4 * MAX_CHARS))
            return ProgramResult(exit_code, output.read().decode(errors="replace"))

    def _file(self, request: str, *, must_exist: bool = True) -> Path:
        path = self.resolve(request, must_exist=must_exist)
        if path.exists() and not path.is_file():
            raise CourseError("NOT_A_FILE", f"not a regular file: {request!r}")
        return path


def truncate_head(text: str, max_chars: int) -> Excerpt:
    """The first whole lines of `text` that have at most `max_chars` characters together.

    Only a newline ends a line, and it belongs to it. A first line that is too long leaves none.
    """
    lines = _lines(text)
    shown = _fitting(lines, max_chars)
    return Excerpt("".join(lines[:shown]), shown, len(lines))


def truncate_tail(text: str, max_chars: int) -> Excerpt:
    """The last whole lines of `text` that have at most `max_chars` characters together."""
    lines = _lines(text)
    shown = _fitting(reversed(lines), max_chars)
    return Excerpt("".join(lines[len(lines) - shown :]), shown, len(lines))


def core_tools(workspace: Workspace) -> tuple[Tool, ...]:
    """The tools read_file, list_dir (permission "read"), write_file, edit_file ("write") and
    run_program ("execute"), bound to `workspace`.

    Arguments: path and from_line (optional, from 1); path (optional); path and content; path,
    old and new; argv. Long texts are cut at a line and end with a note that says what is shown.
    """

    async def read_file(args: dict[str, Any], ctx: ExecContext) -> str:
        first = args.get("from_line", 1)
        lines = _lines(workspace.read_text(args["path"]))
        part = truncate_head("".join(lines[first - 1 :]), MAX_CHARS)
        last = first - 1 + part.shown
        return part.text + _note(last != len(lines), f"lines {first} to {last} of {len(lines)}")

    async def list_dir(args: dict[str, Any], ctx: ExecContext) -> str:
        names = workspace.list_dir(args.get("path", "."))
        part = truncate_head("".join(f"{name}\n" for name in names), MAX_CHARS)
        return part.text + _note(part.shown < part.total, f"{part.shown} of {part.total} names")

    async def write_file(args: dict[str, Any], ctx: ExecContext) -> str:
        workspace.write_text(args["path"], args["content"])
        return f"wrote {args['path']}"

    async def edit_file(args: dict[str, Any], ctx: ExecContext) -> str:
        workspace.replace_once(args["path"], args["old"], args["new"])
        return f"edited {args['path']}"

    async def run_program(args: dict[str, Any], ctx: ExecContext) -> ToolOutput:
        ended = await workspace.run_program(args["argv"])
        part = truncate_tail(ended.output, MAX_CHARS)
        note = _note(part.shown < part.total, f"the last {part.shown} lines")
        said = f"{part.text}{note}\n[exit code {ended.exit_code}]"
        return ToolOutput(said, ended.exit_code != 0, {"exit_code": ended.exit_code})

    path = {"path": _TEXT}
    return (
        Tool(_spec("read_file", "read", "Read a text file.", path, from_line=_LINE), read_file),
        Tool(_spec("list_dir", "read", "List a folder.", {}, **path), list_dir),
        Tool(_spec("write_file", "write", "Write a file.", path | {"content": _TEXT}), write_file),
        Tool(
            _spec("edit_file", "write", "Replace a text that occurs exactly once in a file.",
                  path | {"old": _TEXT, "new": _TEXT}),
            edit_file,
        ),
        Tool(
            _spec("run_program", "execute", "Run a program, without a shell.", {"argv": _ARGV}),
            run_program,
        ),
    )


_TEXT = {"type": "string"}
_LINE = {"type": "integer", "minimum": 1}
_ARGV = {"type": "array", "items": _TEXT, "minItems": 1}


def _spec(
    name: str, permission: Permission, description: str, required: dict[str, Any], **optional: Any
) -> ToolSpec:
    properties = required | optional
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema["required"] = list(required)
    return ToolSpec(name, description, schema, permission)


def _note(is_needed: bool, what: str) -> str:
    return f"\n[shown: {what}]" if is_needed else ""


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _fitting(lines: Iterable[str], limit: int) -> int:
    return sum(length <= limit for length in accumulate(map(len, lines)))


def _is_argument(item: object) -> bool:
    return isinstance(item, str) and "\0" not in item


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{uuid4().hex}.tmp")
    try:
        with draft.open("xb") as file:
            if path.exists():
                shutil.copymode(path, draft)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _kill_group(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
