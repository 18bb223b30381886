"""Lab 12.4: nothing of an extension runs before it is trusted, nothing of half of one stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pi_course import resources
from pi_course.bench import FakeClock
from pi_course.errors import CourseError
from pi_course.messages import ToolCall, ToolResultMessage, tool_result
from pi_course.schema import ToolSpec
from pi_course.signals import AbortSignal
from pi_course.tools import ExecContext, Tool, ToolRegistry


def _tool(name: str) -> Tool:
    async def execute(args: dict[str, Any], ctx: object) -> str:
        return name

    return Tool(ToolSpec(name, f"The tool {name}.", {"type": "object"}, "read"), execute)


def _load(
    host: Any, factory: object, *, id: str = "ext", trust: object = None, **given: Any
) -> Any:
    """What load_extension returns, or the code of the error that it raises."""
    source = resources.ExtensionSource(id, given.pop("path", Path("extensions/ext.py")))
    arguments = {
        "is_trusted": trust or (lambda source: True),
        "import_module": lambda source: SimpleNamespace(default=factory),
        "host": host,
    } | given
    try:
        return asyncio.run(resources.load_extension(source, **arguments))
    except CourseError as error:
        return error.code


def _status(loaded: Any) -> str:
    """The status of what _load gave, or the code that it is."""
    return loaded if isinstance(loaded, str) else str(loaded.status)


def _call(host: Any) -> None:
    """One call through the host; whether hooks are asked already is the business of lab 12.5."""

    async def core(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
        return tool_result(call, "done", at=1)

    ctx = ExecContext(FakeClock(1), AbortSignal())
    asyncio.run(host.wrap_executor(core)(ToolCall("call-1", "read", {}), ctx))


def _raise(error: BaseException) -> None:
    raise error


def test_an_untrusted_source_is_never_imported(tmp_path: Path) -> None:
    """Only the answer True leads to an import, and the import comes after the answer."""
    registry = ToolRegistry([_tool("read")])
    host = resources.create_extension_host(registry, hook_timeout=5, report=lambda found: None)
    events: list[str] = []
    sources: list[Any] = []

    def load(answer: Callable[[], object], **given: Any) -> Any:
        events.clear()

        def trust(source: Any) -> object:
            events.append("trust")
            sources.append(source)
            return answer()

        async def import_module(source: Any) -> object:
            events.append("import")
            sources.append(source)
            return SimpleNamespace(default=lambda context: events.append("factory"))

        return _load(
            given.pop("host", host), None, trust=trust, import_module=import_module, **given
        )

    async def later(answer: object) -> object:
        return answer

    for answer in (
        lambda: False,
        lambda: later(False),
        lambda: None,
        lambda: 1,
        lambda: "yes",
        lambda: later([True]),
        lambda: _raise(RuntimeError("no dialog to ask in")),
    ):
        assert (_status(load(answer)), events) == ("skipped_untrusted", ["trust"])
    assert registry.names() == ("read",)

    everything = ["trust", "import", "factory"]
    assert (_status(load(lambda: True)), events) == ("active", everything)
    assert (_status(load(lambda: later(True), id="ext-2")), events) == ("active", everything)
    for source in sources:
        assert source.path == Path("extensions/ext.py")
        try:
            source.path = Path("elsewhere.py")
        except AttributeError:
            continue
        raise AssertionError("the source can be changed")

    for id, path in [("", Path("ext.py")), ("  ", Path("ext.py")), ("ext-3", Path())]:
        assert (load(lambda: True, id=id, path=path), events) == ("INVALID_SOURCE", [])
    stranger = SimpleNamespace(wrap_executor=lambda core: core)
    assert (load(lambda: True, id="ext-3", host=stranger), events) == ("INVALID_HOST", [])

    code, other, link = (tmp_path / name for name in ("code.py", "other.py", "link.py"))
    code.write_bytes(b"harmless = 1")
    other.write_bytes(b"harmless = 1")
    link.symlink_to(code)

    def rewrite() -> bool:
        code.write_bytes(b"harmless = 0")
        return True

    def turn() -> bool:
        link.unlink()
        link.symlink_to(other)
        return True

    for swap, path in [(turn, link), (rewrite, code)]:
        assert (load(swap, id="ext-4", path=path), events) == ("SOURCE_CHANGED", ["trust"])
    assert (_status(load(lambda: True, id="ext-4", path=link)), events) == ("active", everything)


def test_an_extension_appears_whole_or_not_at_all() -> None:
    """A factory that fails, or that collides, leaves tools and hooks exactly as they were."""
    builtin = _tool("read")
    registry = ToolRegistry([builtin])
    host = resources.create_extension_host(registry, hook_timeout=5, report=lambda found: None)
    heard: list[str] = []
    contexts: list[Any] = []
    seen_inside: list[tuple[str, ...]] = []

    def factory(*tools: str, then: BaseException | None = None) -> Callable[[Any], object]:
        async def build(context: Any) -> None:
            contexts.append(context)
            context.on("before_tool_call", lambda call: heard.append(str(tools)))
            for name in tools:
                context.register_tool(_tool(name))
            seen_inside.append(registry.names())
            if then is not None:
                raise then

        return build

    async def hangs(given: Any) -> None:
        contexts.extend([given] if hasattr(given, "on") else [])
        await asyncio.sleep(0.3)

    for broken, code in [
        (factory("first", then=RuntimeError("exploded")), "EXTENSION_FAILED"),
        (factory("first", then=SystemExit(0)), "EXTENSION_FAILED"),
        (factory("first", "read", "last"), "DUPLICATE_TOOL"),
        (factory("first", "first"), "DUPLICATE_TOOL"),
        ("no factory", "INVALID_EXTENSION"),
    ]:
        assert (_status(_load(host, broken)), registry.names()) == (code, ("read",))
        assert registry.get("read") is builtin
    slow_import = _load(host, None, import_module=hangs, timeout=0.02)
    slow_factory = _load(host, hangs, timeout=0.02)
    assert [_status(slow_import), _status(slow_factory)] == ["EXTENSION_TIMEOUT"] * 2
    _call(host)
    assert heard == []

    refused: list[str] = []

    def careless(context: Any) -> None:
        for hook, listener in [("on_start", print), ("before_tool_call", "no function")]:
            try:
                context.on(hook, listener)
            except CourseError as error:
                refused.append(error.code)

    assert _status(_load(host, careless, id="careless")) == "active"
    assert refused == ["INVALID_HOOK", "INVALID_HOOK"]
    assert _status(_load(host, factory("zoom", "alter"))) == "active"
    assert set(seen_inside) == {("read",)}
    assert registry.names() == ("read", "zoom", "alter")
    assert _status(_load(host, factory("third"))) == "DUPLICATE_EXTENSION"
    for context in contexts:
        late: list[Callable[[], object]] = [
            partial(context.register_tool, _tool("late")),
            partial(context.on, "before_tool_call", lambda call: heard.append("late")),
        ]
        for register in late:
            try:
                register()
            except CourseError as error:
                assert error.code == "CONTEXT_CLOSED"
            else:
                raise AssertionError("an extension registers after it has been loaded")
    assert registry.names() == ("read", "zoom", "alter")
    _call(host)
    assert heard in ([], [str(("zoom", "alter"))])
