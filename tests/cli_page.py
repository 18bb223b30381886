"""`make docs`: docs/cli.md from the commands' own help. `--check` compares instead."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from course.cli import cli

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
HEAD = "<!-- Made by `make docs` from `course --help`; not edited by hand. -->\n\n# Commands\n"


def page() -> str:
    """The whole page."""
    parts = [HEAD, _fence(cli, "course")]
    for name in sorted(cli.commands):
        parts += [f"\n## course {name}\n", _fence(cli.commands[name], f"course {name}")]
    return "\n".join(parts)


def _fence(command: click.Command, name: str) -> str:
    context = click.Context(command, info_name=name, max_content_width=90, terminal_width=90)
    return f"```text\n{command.get_help(context)}\n```"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(PAGE.read_text("utf-8") != page() and "docs/cli.md is stale: make docs")
    PAGE.write_text(page(), "utf-8")
