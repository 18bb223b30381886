"""Docs are executed: commands in README work, generated pages are current, files are named."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from course.cli import cli
from tests.cli_page import PAGE, page
from tests.conftest import REPOSITORY

PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md",
         *sorted((REPOSITORY / "docs").rglob("*.md"))]


def commands_in(path: Path) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("course ")]


def test_the_page_of_commands_is_current() -> None:
    """docs/cli.md is what --help says: make docs."""
    assert PAGE.read_text("utf-8") == page()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_in_the_docs_can_be_parsed(path: Path) -> None:
    """Name, arguments and options of each `course …` line exist."""
    for line in commands_in(path):
        words = shlex.split(line.replace("NN", "12"))[1:]
        context = click.Context(cli)
        name, command, rest = cli.resolve_command(context, words)
        assert name and command, line
        command.make_context(name, list(rest), resilient_parsing=False)


def test_links_in_the_docs_lead_somewhere() -> None:
    """Every relative link names a file of the repository."""
    for path in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", path.read_text("utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_make_without_a_word_shows_the_targets() -> None:
    """`make help` is the default."""
    done = subprocess.run(["make", "--no-print-directory"], cwd=REPOSITORY, capture_output=True,
                          text=True, check=True)
    for target in ("demo", "test", "check", "verify", "bench"):
        assert re.search(rf"^{target} ", done.stdout, re.MULTILINE)


def test_the_module_and_the_script_are_one_command() -> None:
    """`python -m course --version`."""
    done = subprocess.run([sys.executable, "-m", "course", "--version"], cwd=REPOSITORY,
                          capture_output=True, text=True, check=True)
    assert re.fullmatch(r"course, version \d+\.\d+\.\d+\n", done.stdout)
