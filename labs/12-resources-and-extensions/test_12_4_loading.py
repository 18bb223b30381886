"""Lab 12.4: nothing of an extension runs before it is trusted, nothing of half of one stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pi_course import resources
from pi_course.errors import CourseError
from pi_course.schema import ToolSpec
from pi_course.tools import Tool, ToolRegistry


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


def _raise(error: BaseException) -> None:
    raise error


def test_an_untrusted_source_is_never_imported() -> None:
    """Only the answer True leads to an import, and the import comes after the answer."""
    registry = ToolRegistry([_tool("read")])
    host = resources.create_extension_host(registry, hook_timeout=1, report=lambda found: None)
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

        return _load(host, None, trust=trust, import_module=import_module, **given)

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
        assert (load(answer).status, events) == ("skipped_untrusted", ["trust"])
    assert registry.names() == ("read",)

    assert (load(lambda: True).status, events) == ("active", ["trust", "import", "factory"])
    assert load(lambda: later(True), id="ext-2").id == "ext-2"
    assert events == ["trust", "import", "factory"]
    for source in sources:
        assert source.path == Path("extensions/ext.py")
        try:
            source.path = Path("elsewhere.py")
        except AttributeError:
            continue
        raise AssertionError("the source can be changed")

    for id, path in [("", Path("ext.py")), ("  ", Path("ext.py")), ("ext-3", Path())]:
        assert load(lambda: True, id=id, path=path) == "INVALID_SOURCE"
        assert events == []


def test_an_extension_appears_whole_or_not_at_all() -> None:
    """A factory that fails, or that collides, leaves tools and hooks exactly as they were."""
    builtin = _tool("read")
    registry = ToolRegistry([builtin])
    host = resources.create_extension_host(registry, hook_timeout=1, report=lambda found: None)
    heard: list[str] = []
    contexts: list[Any] = []
    seen_inside: list[tuple[str, ...]] = []

    def factory(*tools: str, then: BaseException | None = None) -> Callable[[Any], object]:
        async def build(context: Any) -> None:
            contexts.append(context)
            context.on("before_tool_call", lambda call: heard.append(call.name))
            for name in tools:
                context.register_tool(_tool(name))
            seen_inside.append(registry.names())
            if then is not None:
                raise then

        return build

    for broken, code in [
        (factory("first", then=RuntimeError("exploded")), "EXTENSION_FAILED"),
        (factory("first", then=SystemExit(0)), "EXTENSION_FAILED"),
        (factory("first", "read", "last"), "DUPLICATE_TOOL"),
        (factory("first", "first"), "DUPLICATE_TOOL"),
        ("no factory", "INVALID_EXTENSION"),
    ]:
        assert (_load(host, broken), registry.names()) == (code, ("read",))
        assert registry.get("read") is builtin

    assert _load(host, factory("zoom", "alter")).status == "active"
    assert set(seen_inside) == {("read",)}
    assert registry.names() == ("read", "zoom", "alter")
    assert _load(host, factory("third")) == "DUPLICATE_EXTENSION"
    for context in contexts:
        late: list[Callable[[], object]] = [
            partial(context.register_tool, _tool("late")),
            partial(context.on, "after_tool_result", heard.append),
        ]
        for register in late:
            try:
                register()
            except CourseError as error:
                assert error.code == "CONTEXT_CLOSED"
            else:
                raise AssertionError("an extension registers after it has been loaded")
    assert registry.names() == ("read", "zoom", "alter")
    assert heard == []
