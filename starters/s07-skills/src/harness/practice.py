"""The lesson's run: python -m harness.practice --decision allow|deny --skill NAME --max-calls N."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.assembly import MAX_CALLS, run_with_skills
from harness.claude import connect
from harness.hooks import Hooks
from harness.loop import Outcome
from harness.script import is_parent, script
from harness.scripted import RecordingClient, Request, scripted

SHIPPED = Path(__file__).parent / "shipped"
MARKER = "program-ran"  # the shipped main.py writes it when it runs
QUESTION = "请按项目规范检查main.py与expected.txt：运行前取得允许，再核对实际结果。"
LIVE_MODEL = "claude-sonnet-5-5"


@dataclass(frozen=True, slots=True)
class Report:
    """One run and what it left behind."""

    outcome: Outcome
    requests: list[Request]
    program_ran: bool

    @property
    def parent(self) -> list[Request]:
        return [request for request in self.requests if is_parent(request)]

    @property
    def child(self) -> list[Request]:
        return [request for request in self.requests if not is_parent(request)]


def main(arguments: Sequence[str] | None = None) -> int:
    """0 and a report on the screen; 2 if `--live` has no key or no package."""
    options = _parser().parse_args(arguments)
    try:
        create = connect().messages.create if options.live else scripted(script(options.skill))
    except RuntimeError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    report = run_practice(
        create, decision=options.decision, max_calls=options.max_calls, model=options.model
    )
    sys.stdout.write(
        f"stop: {report.outcome.stop}\n"
        f"model calls: parent {len(report.parent)}, child {len(report.child)}\n"
        f"program ran: {'yes' if report.program_ran else 'no'}\n"
        f"answer: {report.outcome.answer or '(none)'}\n"
    )
    return 0


def run_practice(
    create: Callable[..., Any],
    *,
    decision: str = "deny",
    max_calls: int = MAX_CALLS,
    model: str = "scripted",
    skills_root: Path = SHIPPED / "skills",
    workspace: Path = SHIPPED / "workspace",
    hooks: Hooks | None = None,
) -> Report:
    """The report of one run in a fresh copy of the workspace. Only decision "allow" permits."""
    client = RecordingClient(create)
    with tempfile.TemporaryDirectory(prefix="practice-") as folder:
        copy = Path(folder, "workspace")
        shutil.copytree(workspace, copy)
        outcome = run_with_skills(
            QUESTION,
            client=client,
            model=model,
            skills_root=skills_root,
            workspace=copy,
            approve=lambda call: decision == "allow",
            hooks=hooks or Hooks(),
            max_calls=max_calls,
        )
        return Report(outcome, client.requests, (copy / MARKER).exists())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="practice", description="Check a program by a skill.")
    parser.add_argument("--decision", choices=["allow", "deny"], default="deny",
                        help="the user's answer when the program asks to run (default: deny)")
    parser.add_argument("--skill", default="output-check", metavar="NAME",
                        help="the skill that the scripted model loads")
    parser.add_argument("--max-calls", type=int, default=MAX_CALLS, metavar="N",
                        help=f"model calls of the parent (default: {MAX_CALLS})")
    parser.add_argument("--live", action="store_true",
                        help="ask the real API; needs the anthropic package and its key")
    parser.add_argument("--model", default=LIVE_MODEL, help="the model for --live")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
