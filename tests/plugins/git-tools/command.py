"""One git command that reads the workspace and changes nothing in it."""

from __future__ import annotations

import os
import shutil
import subprocess

# What a repository's own configuration could make git run while it only looks.
HARMLESS = ("--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


def git(workspace: str, scratch: str, *words: str) -> str:
    """Return what `git WORDS` prints in the workspace; an error of git is an error here."""
    program = shutil.which("git", path=os.defpath)
    if program is None:
        raise FileNotFoundError("git")
    environment = {
        "GIT_CEILING_DIRECTORIES": os.path.dirname(workspace),  # noqa: PTH120
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": scratch,
        "LC_ALL": "C",
    }
    done = subprocess.run(
        [program, *HARMLESS, *words],
        cwd=workspace,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=4,
    )
    return done.stdout.decode("utf-8", "replace")
