"""Plausible bugs, each put on one public function of pi_course.messages."""

from __future__ import annotations

import copy
import dataclasses
from functools import wraps


def nulls_left_out(to_json):
    """Write only the fields that hold something."""

    @wraps(to_json)
    def faulty(message):
        return {name: value for name, value in to_json(message).items() if value is not None}

    return faulty


def text_stripped(from_json):
    """Trim the text of every block while reading it."""

    @wraps(from_json)
    def faulty(value):
        value = copy.deepcopy(value)
        for block in _blocks(value):
            if isinstance(block.get("text"), str):
                block["text"] = block["text"].strip()
        return from_json(value)

    return faulty


def unknown_fields_ignored(from_json):
    """Take the fields one knows and forget the others."""
    known = {"role", "content", "timestamp", "stop", "error"}
    known |= {"call_id", "tool_name", "is_error", "details"}

    @wraps(from_json)
    def faulty(value):
        if isinstance(value, dict):
            value = {name: item for name, item in value.items() if name in known}
        return from_json(value)

    return faulty


def true_counts_as_one(from_json):
    """Test the timestamp with isinstance(value, int), which True passes."""

    @wraps(from_json)
    def faulty(value):
        if isinstance(value, dict) and isinstance(value.get("timestamp"), bool):
            value = {**value, "timestamp": int(value["timestamp"])}
        return from_json(value)

    return faulty


def ids_made_up(from_json):
    """Give a call without an id some id, as lenient readers do."""

    @wraps(from_json)
    def faulty(value):
        value = copy.deepcopy(value)
        for number, block in enumerate(_blocks(value)):
            if block.get("type") == "tool_call":
                block["id"] = block.get("id") or f"made-up-{number}"
        return from_json(value)

    return faulty


def equal_ids_merged(from_json):
    """Keep the calls in a dict by id: of two with one id the last wins."""

    @wraps(from_json)
    def faulty(value):
        value = copy.deepcopy(value)
        blocks = _blocks(value)
        last = {block["id"]: block for block in blocks if "id" in block}
        if len(last) < len([block for block in blocks if "id" in block]):
            value["content"] = list(last.values())
        return from_json(value)

    return faulty


def foreign_blocks_dropped(from_json):
    """Leave out, without a word, the blocks that a role may not say."""

    @wraps(from_json)
    def faulty(value):
        if isinstance(value, dict) and value.get("role") != "assistant":
            foreign = ("tool_call", "thinking")
            value = copy.deepcopy(value)
            for block in _blocks(value):
                if block.get("type") in foreign:
                    value["content"].remove(block)
        return from_json(value)

    return faulty


def arguments_shared(from_json):
    """Keep the caller's own dict as the arguments of a call."""

    @wraps(from_json)
    def faulty(value):
        message = from_json(value)
        for block, source in zip(message.content, _blocks(value), strict=False):
            if block.type == "tool_call" and isinstance(source["arguments"], dict):
                object.__setattr__(block, "arguments", source["arguments"])
        return message

    return faulty


def instances_trusted(validate_message):
    """Believe that whatever is a message already must be a legal one."""

    @wraps(validate_message)
    def faulty(value):
        if dataclasses.is_dataclass(value) and hasattr(value, "role"):
            return value
        return validate_message(value)

    return faulty


def string_taken_apart(user):
    """Treat a string as the iterable that it is: one block a character."""

    @wraps(user)
    def faulty(content, *, at):
        from pi_course.messages import TextBlock

        if isinstance(content, str):
            content = [TextBlock(character) for character in content]
        return user(content, at=at)

    return faulty


def maker_unchecked(assistant):
    """Build the dataclass and let the rules be somebody else's."""

    @wraps(assistant)
    def faulty(content, *, stop="stop", at, error=None):
        from pi_course.messages import AssistantMessage, TextBlock

        blocks = (TextBlock(content),) if isinstance(content, str) else tuple(content)
        return AssistantMessage(blocks, stop, at, error)

    return faulty


def error_unpaired(tool_result):
    """Answer a failure in the name of a tool called "error"."""

    @wraps(tool_result)
    def faulty(call, blocks, *, is_error=False, **rest):
        answer = tool_result(call, blocks, is_error=is_error, **rest)
        return dataclasses.replace(answer, tool_name="error") if is_error else answer

    return faulty


def thinking_told(text_of):
    """Join every block that has a text, thinking too."""

    @wraps(text_of)
    def faulty(message):
        return "\n".join(block.text for block in message.content if hasattr(block, "text"))

    return faulty


def first_call_only(calls_of):
    """Expect one call a message and see no other."""

    @wraps(calls_of)
    def faulty(message):
        return calls_of(message)[:1]

    return faulty


def abort_forgotten(assistant_from_draft):
    """Store every draft as if it had come to its end."""

    @wraps(assistant_from_draft)
    def faulty(draft, *, at):
        message = assistant_from_draft(draft, at=at)
        return dataclasses.replace(message, stop="stop", error=None)

    return faulty


def model_mistakes_raised(assistant_from_draft):
    """Let a model's bad call end the whole run with an exception."""

    @wraps(assistant_from_draft)
    def faulty(draft, *, at):
        from pi_course.errors import CourseError

        message = assistant_from_draft(draft, at=at)
        if message.stop == "error" and draft.stop != "error":
            raise CourseError("INVALID_MESSAGE", message.error or "")
        return message

    return faulty


def _blocks(value):
    """The blocks of a JSON message, where it has any."""
    content = value.get("content") if isinstance(value, dict) else None
    return [block for block in content if isinstance(block, dict)] if content else []
