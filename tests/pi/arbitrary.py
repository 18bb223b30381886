"""Values of the course to throw at it: JSON, messages, histories, and a law they are held to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from pi_course.errors import CourseError
from pi_course.messages import (
    AssistantMessage,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    calls_of,
)

T = TypeVar("T")


def examples(number: int) -> settings:
    """So many examples, and no limit on time on a busy machine."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=number, deadline=None, suppress_health_check=slow)


HOSTILE = ["", "\0", "\r\n", "\n\n",
           "\u2028", "\x0b", "\x85", "\ufeff", "你好", "\U0001f642", '"', "\\"]  # fmt: skip
texts = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)

# Few names, so that calls and results often meet, and often wrongly.
call_ids = st.sampled_from(["a", "b", "c", "电话"])
tool_names = st.sampled_from(["read", "write"])
times = st.integers(0, 9)
text_blocks = st.builds(TextBlock, texts)
plain_blocks = text_blocks | st.builds(ImageBlock, st.just("image/png"), st.just("QUJD"))
calls = st.builds(ToolCall, call_ids, tool_names, json_objects)
said_blocks = st.one_of(text_blocks, st.builds(ThinkingBlock, texts), calls)
users = st.builds(UserMessage, st.lists(plain_blocks, max_size=2).map(tuple), times)


def _key(block: object) -> object:
    return block.id if isinstance(block, ToolCall) else id(block)


assistants = st.builds(
    AssistantMessage,
    st.lists(said_blocks, max_size=4, unique_by=_key).map(tuple),
    st.sampled_from(["stop", "tool_use", "tool_use", "length", "error", "aborted"]),
    times,
    st.none() | texts,
)
results = st.builds(
    ToolResultMessage,
    call_ids,
    tool_names,
    st.lists(plain_blocks, max_size=2).map(tuple),
    st.booleans(),
    st.none() | st.just({"code": "MISSING_RESULT"}) | json_values,
    times,
)
messages = st.one_of(users, assistants, results)
histories = st.lists(st.one_of(users, assistants, results, results), max_size=10)


def is_legal(history: Iterable[Message]) -> bool:
    """Whether each call is followed at once by its one result, in call order, and nothing else is.

    Written apart from pi_course.history, on purpose: a line of calls that wait, and that is all.
    """
    waiting: list[ToolCall] = []
    for message in history:
        if isinstance(message, ToolResultMessage):
            call = waiting.pop(0) if waiting else None
            if call is None or (call.id, call.name) != (message.call_id, message.tool_name):
                return False
        elif waiting or getattr(message, "stop", "") in ("error", "aborted"):
            return False
        waiting += calls_of(message)
    return not waiting


def outcome(run: Any) -> object:
    """What a function returned, or the code of the CourseError it raised."""
    try:
        return run()
    except CourseError as error:
        return error.code


def run_async(work: Awaitable[T]) -> T:
    """What a coroutine returns; one that hangs fails instead."""


    async def limited() -> T:
        return await asyncio.wait_for(work, 20)

    return asyncio.run(limited())


def cut_into_two(data: bytes) -> Iterator[list[bytes]]:
    """The data in two pieces, in every possible way, and in pieces of one byte."""
    for place in range(len(data) + 1):
        yield [data[:place], data[place:]]
    yield [data[i : i + 1] for i in range(len(data))]


def cut_at(data: bytes, places: Sequence[int]) -> list[bytes]:
    """The data in pieces, cut at these places; empty ones are among them."""
    ends = sorted(place % (len(data) + 1) for place in places)
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]
