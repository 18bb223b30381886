"""The transfer exercise of chapter 12: one small agent's day, with your own resources.py.

    python transfer.py

A project and a user both have template:review and skill:review. The project comes first. Only its
skill is activated. An extension on disk, trusted by the digest of its file, forbids to read .env.
Every step is shown with what was expected; the exit status is 1 if one of them was not so.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent / "src"))

from pi_course import resources
from pi_course.bench import FakeClock
from pi_course.context import build_context
from pi_course.messages import ToolCall, ToolResultMessage, text_of, to_json
from pi_course.sessions import Entry
from pi_course.signals import AbortSignal
from pi_course.tools import ExecContext, ToolRegistry, create_executor
from pi_course.workspace import Workspace, core_tools

GUARD = """\
from pathlib import PurePosixPath

from pi_course.resources import Allow, Deny

chain.append("import")


def default(context):
    def gate(call):
        secret = PurePosixPath(str(call.arguments.get("path", ""))).name == ".env"
        chain.append(f"before {'deny' if secret else 'allow'} {call.arguments['path']}")
        return Deny("secrets are not for models") if secret else Allow()

    async def observe(result):
        chain.append(f"after {result.tool_name} {'error' if result.is_error else 'ok'}")

    context.on("before_tool_call", gate)
    context.on("after_tool_result", observe)
    chain.append("factory")
"""


class Observations:
    """What was seen, next to what was expected."""

    def __init__(self) -> None:
        self.failed = 0

    def see(self, what: str, found: object, expected: object) -> None:
        """Write one line, and two more if they differ."""
        same = found == expected
        self.failed += not same
        sys.stdout.write(f"{'ok    ' if same else 'FAILED'}  {what}\n")
        if not same:
            sys.stdout.write(f"          expected {expected!r}\n          found    {found!r}\n")


def skill(owner: str) -> str:
    """The SKILL.md of one owner."""
    return f"---\nname: review\ndescription: How the {owner} reviews\n---\nBody of the {owner}.\n"


def lay_out(folder: Path) -> tuple[Path, Path]:
    """A project and a user root on disk."""
    files = {
        "project/AGENTS.md": "Say what you ran.",
        "project/prompts/review.md": "Review {{file}} for {{owner}}, the project's way.",
        "project/skills/review/SKILL.md": skill("project"),
        "project/skills/review/references/checklist.md": "1. Run the tests.\n",
        "project/extensions/guard.py": GUARD,
        "project/README.md": "Hello.\n",
        "project/.env": "TOKEN=secret\n",
        "user/prompts/review.md": "Review {{file}} the user's way.",
        "user/skills/review/SKILL.md": skill("user"),
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return folder / "project", folder / "user"


def importer(chain: list[str]) -> Callable[[resources.ExtensionSource], object]:
    """import_module for files: a name of its own, and no trace in sys.modules on a failure."""

    def import_module(source: resources.ExtensionSource) -> object:
        name = f"extension_{hashlib.sha256(source.id.encode()).hexdigest()[:12]}"
        spec = importlib.util.spec_from_file_location(name, source.path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{source.path} is no Python file")
        module = importlib.util.module_from_spec(spec)
        vars(module)["chain"] = chain
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module

    return import_module


def data_path(seen: Observations, project: Path, user: Path) -> None:
    """Roots → catalogue → activation → one message and one system prompt."""
    catalog = resources.discover_resources([project, user])
    identities = [f"{item.kind}:{item.name}" for item in catalog.resources]
    expected = ["instructions:AGENTS", "skill:review", "template:review"]
    seen.see("catalogue: one of each identity", identities, expected)
    winners = {item.root_order for item in catalog.resources}
    seen.see("catalogue winner: the project, for the template too", winners, {0})
    shadowed = [found.kind for found in catalog.diagnostics]
    seen.see("the user's two losers are told", shadowed, ["shadowed", "shadowed"])

    asked = ["references/checklist.md"]
    review = resources.activate_skill(catalog, "review", resources=asked)
    seen.see("activate project skill", review.body, "Body of the project.\n")
    requests = [file.request for file in review.files]
    seen.see("with its checklist and nothing else", requests, asked)

    template = catalog.templates[0]
    message = resources.render_template(template, {"file": "README.md", "owner": "Ann"}, at=1)
    rendered = "Review README.md for Ann, the project's way."
    seen.see("template: one user message", (message.role, text_of(message)), ("user", rendered))

    prompt = resources.format_resource_context(catalog, [review])
    needles = ("How the project reviews", "Body of the project", "Run the tests", "the user")
    seen.see("prompt", [needle in prompt for needle in needles], [True, True, True, False])
    path = [Entry("entry-1", None, "message", to_json(message), 1)]
    projection = build_context(path, max_tokens=10_000, system_prompt=prompt)
    seen.see("build_context: the prompt unchanged", projection.system_prompt == prompt, True)


async def execution_path(seen: Observations, project: Path) -> None:
    """Source → trust → import → factory → commit → before, core, after."""
    chain: list[str] = []
    trusted: set[str] = set()
    reports: list[Any] = []
    guard = resources.ExtensionSource("guard", project / "extensions/guard.py")

    def is_trusted(source: resources.ExtensionSource) -> bool:
        chain.append("trust")
        return hashlib.sha256(source.path.read_bytes()).hexdigest() in trusted

    registry = ToolRegistry(core_tools(Workspace(project)))
    host = resources.create_extension_host(registry, hook_timeout=2, report=reports.append)
    run_tool = create_executor(registry)

    async def core(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
        chain.append(f"core {call.name}")
        return await run_tool(call, ctx)

    async def load() -> str:
        done = await resources.load_extension(
            guard, is_trusted=is_trusted, import_module=importer(chain), host=host
        )
        return done.status

    async def read(call_id: str, path: str) -> ToolResultMessage:
        call = ToolCall(call_id, "read_file", {"path": path})
        return await host.wrap_executor(core)(call, ExecContext(FakeClock(), AbortSignal()))

    status = await load()
    seen.see("nobody trusts it yet", (status, chain), ("skipped_untrusted", ["trust"]))

    chain.clear()
    trusted.add(hashlib.sha256(guard.path.read_bytes()).hexdigest())
    status = await load()
    seen.see("trust → import → factory", chain, ["trust", "import", "factory"])
    seen.see("commit", status, "active")

    chain.clear()
    result = await read("call-1", "README.md")
    expected = ["before allow README.md", "core read_file", "after read_file ok"]
    seen.see("README call: before allow → core → after", chain, expected)
    seen.see("README call: the core's own result", text_of(result), "Hello.\n")

    chain.clear()
    result = await read("call-2", ".env")
    seen.see(".env call: before deny, no core", chain, ["before deny .env"])
    paired = (result.call_id, result.tool_name, result.is_error)
    seen.see(".env call: a paired error result", paired, ("call-2", "read_file", True))
    seen.see(".env call: the secret stays", "TOKEN" in text_of(result), False)
    seen.see("no extension was out of order", reports, [])


def main() -> int:
    """0 if everything was as expected, else 1."""
    seen = Observations()
    with TemporaryDirectory() as folder:
        try:
            project, user = lay_out(Path(folder).resolve())
            data_path(seen, project, user)
            asyncio.run(execution_path(seen, project))
        except Exception:
            seen.failed += 1
            sys.stdout.write(f"FAILED  {traceback.format_exc(limit=-1)}")
    sys.stdout.write("the chain holds\n" if not seen.failed else "the chain is broken\n")
    return 1 if seen.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
