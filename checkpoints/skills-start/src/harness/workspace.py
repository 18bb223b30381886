"""What the tools may do to the user's folder: read a text file, run a Python program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MAX_FILE_BYTES = 65_536
RUN_SECONDS = 10


def read_file(workspace: Path, path: str) -> str:
    """The file's text. Outside the workspace, too long or not UTF-8 is a ValueError."""
    with _inside(workspace, path).open("rb") as stream:
        raw = stream.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        raise ValueError(f"文件超过{MAX_FILE_BYTES}字节。")
    try:
        return raw.decode("utf-8")
    except UnicodeError as error:
        raise ValueError("文件必须是UTF-8。") from error


def run_python(workspace: Path, path: str) -> str:
    """Run the program in a child process and report its exit code and its whole output."""
    program = _inside(workspace, path)
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-X", "utf8", str(program)],
            cwd=workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=RUN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"程序超过{RUN_SECONDS}秒，已停止。") from error
    return run_report(done.returncode, _text(done.stdout), _text(done.stderr))


def run_report(exit_code: int, stdout: str, stderr: str) -> str:
    """The form in which a finished run is told."""
    return f"exit_code: {exit_code}\nstdout:\n{stdout}\nstderr:\n{stderr}"


def _inside(workspace: Path, path: str) -> Path:
    target = (workspace / path).resolve()
    if not target.is_relative_to(workspace.resolve()):
        raise ValueError("路径越过工作区。")
    if not target.is_file():
        raise ValueError("没有这个普通文件。")
    return target


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="backslashreplace").replace("\r\n", "\n")
