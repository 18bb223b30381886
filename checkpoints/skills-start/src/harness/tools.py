"""The tool table and the dispatcher: a name and strings in, one answered call out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.messages import Block, tool_result


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the model sees it, and the function that does it.

    Every parameter is a required string; `parameters` maps its name to what it means. `run` takes
    them by keyword, returns text, and raises ValueError or OSError for what the model got wrong.
    """

    description: str
    parameters: Mapping[str, str]
    run: Callable[..., str]


Tools = Mapping[str, Tool]


def specs(tools: Tools) -> list[Block]:
    """The table as the Messages API wants it, in the table's order."""
    return [
        {
            "name": name,
            "description": tool.description,
            "input_schema": {
                "type": "object",
                "properties": {
                    key: {"type": "string", "description": meaning}
                    for key, meaning in tool.parameters.items()
                },
                "required": list(tool.parameters),
                "additionalProperties": False,
            },
        }
        for name, tool in tools.items()
    ]


def dispatch(call: Block, tools: Tools) -> Block:
    """The `tool_result` for this call, under the call's own id.

    An unknown tool, arguments outside the contract, and a ValueError or OSError of the tool become
    `is_error` results, which the model can read. Any other exception is our bug and stays one.
    """
    try:
        tool = tools.get(call["name"])
        if tool is None:
            raise ValueError("未知工具。")
        return tool_result(call, tool.run(**_strings(call["input"], tool.parameters)))
    except (ValueError, OSError) as error:
        return tool_result(call, _reason(error), is_error=True)


def _strings(arguments: object, parameters: Mapping[str, str]) -> dict[str, str]:
    if (
        not isinstance(arguments, dict)
        or arguments.keys() != parameters.keys()
        or any(type(value) is not str for value in arguments.values())
    ):
        raise ValueError(f"参数需恰好是这些字符串：{', '.join(parameters) or '（无）'}。")
    return arguments


def _reason(error: Exception) -> str:
    """What went wrong, without the host's paths: str() of an OSError names the file."""
    return (isinstance(error, OSError) and error.strerror) or str(error)
