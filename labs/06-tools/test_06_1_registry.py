"""Lab 06.1: the registry. What is listed, and what never gets on the list."""

from dataclasses import replace

import pytest
from pi_course import tools
from pi_course.errors import CourseError
from pi_course.schema import ToolSpec


async def _nothing(args, ctx):
    return ""


def _tool(name, execute=_nothing, schema=None):
    spec = ToolSpec(name, "a tool", {"type": "object"} if schema is None else schema, "read")
    return tools.Tool(spec, execute)


def _refusal(action, *args):
    with pytest.raises(CourseError) as caught:
        action(*args)
    return caught.value.code


def test_tools_are_listed_in_the_order_of_registration():
    """names, specs and get show the tools of this registry as they were registered."""
    zip_, add, map_ = _tool("zip"), _tool("add"), _tool("map")
    registry = tools.ToolRegistry([zip_, add])
    names, specs = registry.names(), registry.specs()
    registry.register(map_)

    assert registry.names() == ("zip", "add", "map")
    assert registry.specs() == (zip_.spec, add.spec, map_.spec)
    assert registry.get("add") is add
    assert registry.get("Add") is None
    assert (names, specs) == (("zip", "add"), (zip_.spec, add.spec)), "a list that was given out"
    assert tools.ToolRegistry().names() == (), "another registry"


def test_a_taken_name_is_refused_and_its_tool_stays():
    """A second tool of the same name is DUPLICATE_TOOL and changes nothing."""
    first, second = _tool("read"), _tool("read")
    second = replace(second, spec=replace(second.spec, description="another"))
    registry = tools.ToolRegistry([first])

    assert _refusal(registry.register, second) == "DUPLICATE_TOOL"
    assert registry.get("read") is first
    assert registry.names() == ("read",)


def test_a_group_is_registered_whole_or_not_at_all():
    """One bad tool in register_all leaves the registry as it was, wherever it stands."""
    registry = tools.ToolRegistry([_tool("old")])
    groups = [
        [_tool("a"), _tool("old"), _tool("b")],
        [_tool("a"), _tool("b"), _tool("a")],
        [_tool("a"), _tool("b"), _tool("no name")],
    ]
    codes = [_refusal(registry.register_all, group) for group in groups]

    assert codes == ["DUPLICATE_TOOL", "DUPLICATE_TOOL", "INVALID_TOOL"]
    assert registry.names() == ("old",)
    assert _refusal(tools.ToolRegistry, groups[1]) == "DUPLICATE_TOOL", "in the constructor too"
    registry.register_all(_tool(name) for name in ("b", "a"))
    assert registry.names() == ("old", "b", "a")


def test_what_is_no_sound_tool_is_refused():
    """A registry takes only tools with a usable name, a sound schema and something to call."""
    registry = tools.ToolRegistry()
    unsound = [
        "read",
        _tool("read").spec,
        _tool("read", execute=None),
        _tool("read", schema={"type": "array"}),
        _tool("read", schema={"type": "object", "$ref": "https://example.org/schema"}),
        *(_tool(name) for name in ("", "two words", "a.b", "1st", "读", "read\n", "x" * 65)),
    ]
    for tool in unsound:
        assert _refusal(registry.register, tool) == "INVALID_TOOL", tool
    assert registry.names() == ()
    registry.register(_tool("x" * 64))
    assert registry.names() == ("x" * 64,)
