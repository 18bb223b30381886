"""Lab 04.2: one legal history, written as two kinds of provider want it."""

import json

import pytest
from pi_course import history
from pi_course.errors import CourseError
from pi_course.messages import (
    AssistantMessage,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)


def _conversation():
    """Two parallel calls, a failed one among them, and a word from the user before it goes on."""
    calls = (ToolCall("c1", "grep", {"q": "水", "n": 1}), ToolCall("c2", "shot", {}))
    return [
        UserMessage((TextBlock("find"), TextBlock(""), TextBlock("it")), 1),
        AssistantMessage((ThinkingBlock("hm"), TextBlock("I look"), *calls), "tool_use", 2),
        ToolResultMessage("c1", "grep", (TextBlock("no such file"),), True, {"code": "X"}, 3),
        ToolResultMessage("c2", "shot", (ImageBlock("image/png", "aGk="),), False, None, 4),
        UserMessage((TextBlock("hurry"),), 5),
        AssistantMessage((ThinkingBlock("only a thought"),), "length", 6),
        AssistantMessage((TextBlock("done"),), "stop", 7),
    ]


def test_chat_writes_one_message_a_result_and_arguments_as_text():
    """In the chat dialect results have a role of their own and arguments are JSON text."""
    wire = history.to_provider(_conversation(), "chat")
    functions = [
        {"name": "grep", "arguments": '{"n":1,"q":"水"}'},
        {"name": "shot", "arguments": "{}"},
    ]
    calls = [
        {"id": "c1", "type": "function", "function": functions[0]},
        {"id": "c2", "type": "function", "function": functions[1]},
    ]
    assert wire == [
        {"role": "user", "content": "find\nit"},
        {"role": "assistant", "content": "I look", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "no such file"},
        {"role": "tool", "tool_call_id": "c2", "content": "[image image/png]"},
        {"role": "user", "content": "hurry"},
        {"role": "assistant", "content": "done"},
    ]
    empty = [AssistantMessage((ToolCall("c1", "grep", {}),), "tool_use", 1)]
    empty.append(ToolResultMessage("c1", "grep", (), False, None, 2))
    called, answered = history.to_provider(empty, "chat")
    assert called["content"] == "" and len(called["tool_calls"]) == 1
    assert answered == {"role": "tool", "tool_call_id": "c1", "content": ""}


def test_blocks_alternate_and_keep_the_text_beside_the_results():
    """In the block dialect results and the user's next words share one user message."""
    wire = history.to_provider(_conversation(), "blocks")
    assert [message["role"] for message in wire] == ["user", "assistant", "user", "assistant"]
    assert wire[0]["content"] == [{"type": "text", "text": "find"}, {"type": "text", "text": "it"}]
    assert wire[1]["content"] == [
        {"type": "text", "text": "I look"},
        {"type": "tool_use", "id": "c1", "name": "grep", "input": {"q": "水", "n": 1}},
        {"type": "tool_use", "id": "c2", "name": "shot", "input": {}},
    ]
    failed = [{"type": "text", "text": "no such file"}]
    picture = [{"type": "image", "media_type": "image/png", "data": "aGk="}]
    assert wire[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": failed},
        {"type": "tool_result", "tool_use_id": "c2", "is_error": False, "content": picture},
        {"type": "text", "text": "hurry"},
    ]
    assert wire[3]["content"] == [{"type": "text", "text": "done"}]
    json.dumps(wire)
    wire[1]["content"][1]["input"]["q"] = "changed"
    assert history.to_provider(_conversation(), "blocks")[1]["content"][1]["input"]["q"] == "水"


def test_an_illegal_history_and_an_unknown_dialect_are_refused():
    """The wire is no place to repair anything: what is not legal is not written."""
    for dialect in ["chat", "blocks"]:
        assert history.to_provider([], dialect) == []
        for illegal in [
            _conversation()[:3],
            _conversation()[2:],
            [AssistantMessage((TextBlock("I was cut"),), "aborted", 1)],
        ]:
            with pytest.raises(CourseError) as caught:
                history.to_provider(illegal, dialect)
            assert caught.value.code == "INVALID_HISTORY"
    with pytest.raises(CourseError) as caught:
        history.to_provider(_conversation(), "morse")
    assert caught.value.code == "UNKNOWN_DIALECT"
