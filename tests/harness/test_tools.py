"""The dispatcher: the string contract, ids, and which errors become results."""

from __future__ import annotations

from typing import Any

import pytest
from harness.messages import Block
from harness.tools import Tool, dispatch, specs
from hypothesis import given, settings
from hypothesis import strategies as st


def _echo(path: str) -> str:
    return f"<{path}>"


def _missing(path: str) -> str:
    raise FileNotFoundError(2, "No such file or directory", "/secret/place")


def _bad(path: str) -> str:
    raise ValueError("not this one")


def _broken(path: str) -> str:
    raise KeyError("bug")


TOOLS = {
    name: Tool(name, {"path": "a path"}, run)
    for name, run in {"echo": _echo, "missing": _missing, "bad": _bad, "broken": _broken}.items()
}


def _call(tool: str, arguments: object) -> Block:
    return {"type": "tool_use", "id": "id-7", "name": tool, "input": arguments}


def test_result_has_the_text_and_the_calls_id() -> None:
    """A call that works answers with the tool's text under its own id."""
    assert dispatch(_call("echo", {"path": "a"}), TOOLS) == {
        "type": "tool_result", "tool_use_id": "id-7", "content": "<a>", "is_error": False,
    }


@pytest.mark.parametrize(
    "arguments", [{}, {"path": 1}, {"path": None}, {"path": "a", "more": "b"}, {"name": "a"},
                  ["a"], "a", None, {"path": ["a"]}, {"path": True}],
)
def test_arguments_outside_the_contract_never_reach_the_tool(arguments: object) -> None:
    """Missing, more, or anything but a str is an is_error result that names the parameters."""
    result = dispatch(_call("broken", arguments), TOOLS)
    assert result["is_error"] is True
    assert "path" in result["content"]


def test_errors_of_a_tool_become_results_without_paths() -> None:
    """ValueError keeps its text; an OSError tells its reason and not the host's file name."""
    assert dispatch(_call("bad", {"path": "a"}), TOOLS)["content"] == "not this one"
    missing = dispatch(_call("missing", {"path": "a"}), TOOLS)
    assert (missing["is_error"], missing["tool_use_id"]) == (True, "id-7")
    assert "/secret" not in missing["content"]


def test_our_own_bug_is_not_swallowed() -> None:
    """An exception that is neither ValueError nor OSError leaves the dispatcher."""
    with pytest.raises(KeyError):
        dispatch(_call("broken", {"path": "a"}), TOOLS)


def test_unknown_tool_is_an_error_result() -> None:
    """A name that is not in the table is answered, not raised."""
    assert dispatch(_call("nothing", {}), TOOLS)["is_error"] is True


def test_specs_are_closed_schemas_of_strings() -> None:
    """Every parameter is a required string and no other is allowed."""
    assert specs({"echo": TOOLS["echo"]}) == [{
        "name": "echo",
        "description": "echo",
        "input_schema": {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "a path"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    }]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(arguments=JSON)
def test_any_arguments_are_answered_under_the_id(arguments: Any) -> None:
    """Whatever JSON a model sends, one result with the call's id comes back."""
    result = dispatch(_call("echo", arguments), TOOLS)
    fits = isinstance(arguments, dict) and list(arguments) == ["path"] and (
        type(arguments["path"]) is str)
    assert (result["tool_use_id"], result["is_error"]) == ("id-7", not fits)
