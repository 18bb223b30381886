"""Chapter 03: one JSON form, there and back, and nothing that is not of that form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from pi_course.messages import Message, from_json, to_json, validate_message
from pi_course.values import canonical_json, parse_json

from tests.pi.arbitrary import assistants, examples, json_values, messages, outcome


def objects(form: Any) -> Iterator[dict[str, Any]]:
    """The objects whose fields are fixed: the message and its blocks, not what a host put there."""
    yield form
    yield from form["content"]


@examples(120)
@given(messages)
def test_a_message_is_what_its_json_form_says(message: Message) -> None:
    """There and back, through plain values and through bytes, it is the same message."""
    form = to_json(message)
    assert from_json(form) == message == validate_message(message)
    assert from_json(parse_json(canonical_json(form).decode())) == message
    assert to_json(from_json(form)) == form == json.loads(json.dumps(form))
    assert canonical_json(to_json(from_json(form))) == canonical_json(form)


@examples(100)
@given(messages)
def test_a_message_shares_nothing_with_its_json_form(message: Message) -> None:
    """Whoever ruins the form, given or got, ruins no message."""
    form = to_json(message)
    kept, made = deepcopy(form), from_json(form)
    for block in form["content"]:
        block.get("arguments", {}).clear()
        block.clear()
    for item in form.values():
        if isinstance(item, (dict, list)):
            item.clear()
    assert to_json(message) == to_json(made) == kept


@examples(100)
@given(messages, st.integers(0, 9), st.sampled_from(["extra", "", "Text", "payload"]), json_values)
def test_a_field_too_many_or_too_few_is_refused_wherever_it_is(
    message: Message, number: int, name: str, value: Any
) -> None:
    """Every message and block has exactly its fields: one more, or one less, is INVALID_MESSAGE."""
    form = to_json(message)
    parts = list(objects(form))
    part = parts[number % len(parts)]
    whole = dict(part)
    part[name] = value
    assert outcome(lambda: from_json(form)) == "INVALID_MESSAGE"
    for missing in whole:
        part.clear()
        part |= {key: item for key, item in whole.items() if key != missing}
        assert outcome(lambda: from_json(form)) == "INVALID_MESSAGE", missing


@examples(120)
@given(messages, st.integers(0, 9), st.integers(0, 9),
       json_values | st.sampled_from([True, 0, 1.0, "", "x"]))
def test_another_value_makes_another_legal_message_or_none(
    message: Message, number: int, which: int, value: Any
) -> None:
    """Any value in any field: INVALID_MESSAGE, or a message whose form has that very value."""
    form = to_json(message)
    parts = list(objects(form))
    part = parts[number % len(parts)]
    part[list(part)[which % len(part)]] = value
    found = outcome(lambda: from_json(form))
    if found != "INVALID_MESSAGE":
        assert canonical_json(to_json(found)) == canonical_json(form)  # type: ignore[arg-type]
        fields = [pair for one in objects(form) for pair in one.items()]
        assert all(is_lawful(name, item) for name, item in fields)


def is_lawful(name: str, item: Any) -> bool:
    """Whether a field of that name may have this value, by its class's text, written once more."""
    if name == "timestamp":
        return type(item) is int and item >= 0
    if name == "is_error":
        return item is True or item is False
    if name == "error":
        return item is None or type(item) is str
    if name in ("details", "content", "arguments"):
        return name == "details" or type(item) is (list if name == "content" else dict)
    return type(item) is str and (item != "" or name == "text")


@examples(60)
@given(assistants, st.integers(0, 9))
def test_two_calls_of_one_message_never_have_one_id(message: Message, number: int) -> None:
    """A call that stands twice, or its id on another call, makes the message illegal."""
    form = to_json(message)
    calls = [block for block in form["content"] if block["type"] == "tool_call"]
    assume(calls)
    form["content"].insert(number % len(form["content"]), calls[0] | {"name": "other"})
    assert outcome(lambda: from_json(form)) == "INVALID_MESSAGE"


@examples(100)
@given(json_values)
def test_any_json_is_a_message_or_one_code(value: Any) -> None:
    """Nothing but INVALID_MESSAGE comes out of JSON that is no message."""
    for item in (value, {"role": value}, {"role": "user", "content": value, "timestamp": 1}):
        found = outcome(lambda item=item: from_json(item))
        assert found == "INVALID_MESSAGE" or to_json(found) == item  # type: ignore[arg-type]
