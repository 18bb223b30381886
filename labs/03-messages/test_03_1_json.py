"""Lab 03.1: the one JSON form of a message, and the strict door that reads it."""

import copy
import json
import random

import pytest
from pi_course import messages
from pi_course.errors import CourseError
from pi_course.values import canonical_json


def _refused(value):
    with pytest.raises(CourseError) as caught:
        messages.from_json(value)
    return caught.value.code


def _user(**changes):
    block = {"type": "text", "text": "hello"}
    return {"role": "user", "content": [block], "timestamp": 7, **changes}


def _call(**changes):
    call = {"type": "tool_call", "id": "call-1", "name": "read_file", "arguments": {"path": "a"}}
    return {**call, **changes}


def _assistant(*content, **changes):
    message = {"role": "assistant", "content": list(content), "stop": "tool_use"}
    return {**message, "timestamp": 8, "error": None, **changes}


def _result(**changes):
    message = {"role": "tool_result", "call_id": "call-1", "tool_name": "read_file"}
    rest = {"content": [], "is_error": False, "details": None, "timestamp": 9}
    return {**message, **rest, **changes}


def _random_json(rng, depth=3):
    kinds = [None, True, False, 0, 1, 1.5, "", "é", "水\n", "\u2028"]
    if depth == 0 or rng.random() < 0.4:
        return rng.choice(kinds)
    items = [_random_json(rng, depth - 1) for _ in range(rng.randrange(3))]
    return items if rng.random() < 0.5 else {f"k{i}": item for i, item in enumerate(items)}


def _random_message(rng):
    words = ["", " two ", "水", "a\u2028b", "\U0001f600"]
    said = [
        messages.TextBlock(rng.choice(words)),
        messages.ImageBlock("image/png", "aGk="),
    ]
    role, at = rng.choice(["user", "assistant", "tool_result"]), rng.randrange(10**13)
    if role == "user":
        return messages.UserMessage(tuple(rng.choices(said, k=rng.randrange(3))), at)
    if role == "tool_result":
        content = tuple(rng.choices(said, k=rng.randrange(3)))
        failed, details = rng.random() < 0.5, _random_json(rng)
        return messages.ToolResultMessage("c1", "grep", content, failed, details, at)
    calls = [messages.ToolCall(f"c{i}", "grep", {"q": _random_json(rng)}) for i in range(2)]
    content = [messages.ThinkingBlock(rng.choice(words)), said[0], *calls]
    rng.shuffle(content)
    error = rng.choice([None, "cut off"])
    stop = rng.choice(messages.STOPS)
    return messages.AssistantMessage(tuple(content[: rng.randrange(5)]), stop, at, error)


def test_every_message_survives_the_way_through_json():
    """A message written as JSON text and read back is the same message, to the last byte."""
    for seed in range(200):
        message = _random_message(random.Random(seed))
        text = json.dumps(messages.to_json(message))
        back = messages.from_json(json.loads(text))
        assert back == message, f"seed {seed}"
        again = canonical_json(messages.to_json(back))
        assert again == canonical_json(messages.to_json(message)), f"seed {seed}"


def test_one_form_only_no_other_role_no_missing_and_no_unknown_field():
    """A role, a block type or a set of fields that the protocol does not have is refused."""
    assert messages.from_json(_user()).role == "user"
    without_stop = _assistant()
    del without_stop["stop"]
    for wrong in [
        None,
        [],
        "hello",
        {},
        _user(role="system"),
        _user(role=["user"]),
        _user(name="Ann"),
        without_stop,
        _user(content="hello"),
        _user(content=["hello"]),
        _user(content=[{"type": "text", "text": "hello", "cache": True}]),
        _user(content=[{"type": "audio", "text": "hello"}]),
        _user(content=[{"type": "text"}]),
    ]:
        assert _refused(wrong) == "INVALID_MESSAGE", wrong


def test_true_is_no_timestamp_and_one_is_no_flag():
    """Every field has its kind and nothing is coerced: booleans and integers stay apart."""
    assert messages.from_json(_user(timestamp=0)).timestamp == 0
    for wrong in [True, 1.0, "7", None, -1]:
        assert _refused(_user(timestamp=wrong)) == "INVALID_MESSAGE", wrong
    for wrong in [
        _result(is_error=1),
        _result(call_id=7),
        _assistant(stop="finished"),
        _assistant(stop=None),
        _assistant(error=False),
        _user(content=[{"type": "text", "text": None}]),
        _user(content=[{"type": "image", "media_type": "image/png", "data": ""}]),
        _result(details=float("nan")),
    ]:
        assert _refused(wrong) == "INVALID_MESSAGE", wrong


def test_a_call_has_an_id_of_its_own_a_name_and_an_object():
    """Ids and names are not empty, arguments are an object, and one message repeats no id."""
    two = messages.from_json(_assistant(_call(), _call(id="call-2")))
    assert [block.id for block in two.content] == ["call-1", "call-2"]
    for wrong in [
        _assistant(_call(id="")),
        _assistant(_call(name="")),
        _assistant(_call(arguments=[1])),
        _assistant(_call(arguments='{"path": "a"}')),
        _assistant(_call(arguments=None)),
        _assistant(_call(), _call(name="grep")),
        _result(call_id=""),
        _result(tool_name=""),
    ]:
        assert _refused(wrong) == "INVALID_MESSAGE", wrong


def test_a_block_stands_only_in_a_role_that_may_say_it():
    """Calls and thinking belong to the assistant, images to the others; nothing is left out."""
    text, call = {"type": "text", "text": "x"}, _call()
    thinking = {"type": "thinking", "text": "hm"}
    image = {"type": "image", "media_type": "image/png", "data": "aGk="}
    said = messages.from_json(_assistant(thinking, text, call))
    assert [block.type for block in said.content] == ["thinking", "text", "tool_call"]
    shown = messages.from_json(_result(content=[image, text]))
    assert [block.type for block in shown.content] == ["image", "text"]
    for wrong in [
        _user(content=[text, call]),
        _user(content=[thinking]),
        _result(content=[call]),
        _result(content=[thinking, text]),
        _assistant(text, image),
    ]:
        assert _refused(wrong) == "INVALID_MESSAGE", wrong


def test_a_message_shares_nothing_with_its_json_and_never_changes():
    """Neither the JSON it came from, nor the JSON it gave, nor an assignment changes a message."""
    source = _assistant(_call(arguments={"lines": [1, 2]}))
    as_sent = copy.deepcopy(source)
    message = messages.from_json(source)
    source["content"][0]["arguments"]["lines"].append(3)
    assert messages.to_json(message) == as_sent
    messages.to_json(message)["content"][0]["arguments"]["lines"].append(3)
    messages.to_json(message)["content"].clear()
    assert messages.to_json(message) == as_sent
    with pytest.raises(TypeError):
        message.content[0].arguments["path"] = "b"
    with pytest.raises(AttributeError):
        message.stop = "stop"
    with pytest.raises(AttributeError):
        message.role = "user"


def test_an_instance_is_held_to_the_same_rules():
    """validate_message judges a message built by hand as strictly as its JSON form."""
    call = messages.ToolCall("call-1", "read_file", {})
    legal = messages.AssistantMessage((call,), "tool_use", 1)
    assert messages.validate_message(legal) == legal
    assert messages.validate_message(messages.to_json(legal)) == legal
    for wrong in [
        messages.UserMessage((messages.TextBlock("x"),), True),
        messages.UserMessage((call,), 1),
        messages.UserMessage(("x",), 1),
        messages.UserMessage("x", 1),
        messages.UserMessage(None, 1),
        messages.AssistantMessage((call, call), "tool_use", 1),
        messages.AssistantMessage((messages.ToolCall("c", "read_file", ["a"]),), "stop", 1),
        messages.ToolResultMessage("", "read_file", (), False, None, 1),
        call,
        object(),
    ]:
        with pytest.raises(CourseError) as caught:
            messages.validate_message(wrong)
        assert caught.value.code == "INVALID_MESSAGE", wrong
