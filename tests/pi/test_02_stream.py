"""Chapter 02: streams cut between events and inside bytes, and a call is whole or is not there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pi_course.messages import assistant_from_draft, to_json
from pi_course.signals import AbortSignal
from pi_course.stream import (
    AssistantDraft,
    DraftCall,
    DraftText,
    StreamEvent,
    collect,
    decode_events,
)

from tests.pi.arbitrary import cut_at, cut_into_two, examples, run_async

SCRIPT = (
    StreamEvent("start"),
    StreamEvent("text_delta", 0, "我看"),
    StreamEvent("text_delta", 0, "看\u2028\n"),
    StreamEvent("toolcall_start", 1, id="call-1", name="read"),
    StreamEvent("toolcall_delta", 1, '{"path": "a.txt", "li'),
    StreamEvent("toolcall_start", 2, id="call-2", name="now"),
    StreamEvent("toolcall_delta", 1, 'nes": [1, 20]}'),
    StreamEvent("text_delta", 3, "ok \U0001f642"),
    StreamEvent("done", stop="tool_use"),
)
WHOLE = AssistantDraft(
    (
        DraftText("我看看\u2028\n"),
        DraftCall("call-1", "read", {"path": "a.txt", "lines": (1, 20)}),
        DraftCall("call-2", "now", {}),
        DraftText("ok \U0001f642"),
    ),
    "tool_use",
)


async def replay(
    events: Iterable[StreamEvent], then: Exception | AbortSignal | None = None
) -> AsyncIterator[StreamEvent]:
    """The events, and then nothing more, an error, or a wait that only the signal ends."""
    for event in events:
        yield event
    if isinstance(then, AbortSignal):
        then.abort("enough")
        await AbortSignal().wait()
    if isinstance(then, Exception):
        raise then


def as_sent(events: Iterable[StreamEvent], ending: str = "\n") -> bytes:
    """The events as a provider sends them, one server-sent event each."""
    lines = [json.dumps(asdict(event), ensure_ascii=False) for event in events]
    return "".join(f"data: {line}{ending}{ending}" for line in lines).encode()


async def drafts_of(streams: Iterable[Sequence[bytes]]) -> list[AssistantDraft]:
    """What each of these streams of chunks amounts to."""
    return [await collect(replay(decode_events(chunks))) for chunks in streams]


def texts_in(draft: AssistantDraft) -> list[str]:
    return [block.text for block in draft.blocks if isinstance(block, DraftText)]


def texts_after(events: Iterable[StreamEvent]) -> list[str]:
    """The text blocks that the events say, added up here a second time."""
    said: dict[int, str] = {}
    for event in events:
        if event.type == "text_delta":
            said[event.index] = said.get(event.index, "") + event.text
    return [text for _, text in sorted(said.items())]


@pytest.mark.parametrize("number", range(len(SCRIPT) + 1))
def test_a_stream_cut_at_any_event_keeps_the_text_and_no_call(number: int) -> None:
    """Ended, broken or aborted after any event: the text so far, one ending, and no call."""

    async def run() -> None:
        for kind, stop in ((None, "error"), (OSError("gone"), "error"), (AbortSignal(), "aborted")):
            signal = kind if isinstance(kind, AbortSignal) else None
            draft = await collect(replay(SCRIPT[:number], kind), signal=signal)
            if number == len(SCRIPT):
                assert draft == WHOLE
            else:
                assert draft.stop == stop
                assert draft.error
                assert texts_in(draft) == texts_after(SCRIPT[:number])
                assert len(draft.blocks) == len(texts_in(draft))
            assert assistant_from_draft(draft, at=1).stop == draft.stop

    run_async(run())


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_chunks_cut_at_every_byte_make_the_same_message(ending: str) -> None:
    """Two pieces, cut at each byte in turn, and pieces of one byte: the message is the same."""
    data = as_sent(SCRIPT, ending)
    for draft in run_async(drafts_of(cut_into_two(data))):
        assert draft == WHOLE
        assert to_json(assistant_from_draft(draft, at=1)) == to_json(
            assistant_from_draft(WHOLE, at=1)
        )


def test_a_stream_lost_at_any_byte_never_makes_a_call() -> None:
    """Until the last event is whole there is no call; the text is that of the events so far."""
    data = as_sent(SCRIPT)
    ends = [len(as_sent(SCRIPT[:number])) for number in range(1, len(SCRIPT) + 1)]
    drafts = run_async(drafts_of([data[:place]] for place in range(len(data) + 1)))
    for place, draft in enumerate(drafts):
        if place == len(data):
            assert draft == WHOLE
            continue
        whole = sum(end <= place for end in ends)
        assert draft.stop == "error", place
        assert list(draft.blocks) == [DraftText(t) for t in texts_after(SCRIPT[:whole])], place


ARGUMENTS = '{"path": "文.txt", "n": [1, {"deep": null}]}'


@pytest.mark.parametrize("stop", ["stop", "tool_use", "length"])
def test_arguments_cut_at_any_character_are_no_arguments(stop: str) -> None:
    """A done after half the arguments makes no call, and takes the whole ones beside it along."""

    def script(arguments: str) -> list[StreamEvent]:
        return [
            StreamEvent("text_delta", 0, "x"),
            StreamEvent("toolcall_start", 1, id="good", name="read"),
            StreamEvent("toolcall_delta", 1, "{}"),
            StreamEvent("toolcall_start", 2, id="cut", name="read"),
            StreamEvent("toolcall_delta", 2, arguments),
            StreamEvent("done", stop=stop),
        ]

    async def run() -> None:
        for end in range(len(ARGUMENTS) + 1):
            draft = await collect(replay(script(ARGUMENTS[:end])))
            if end == len(ARGUMENTS) or (end == 0 and stop != "length"):
                assert (draft.stop, len(draft.blocks), draft.error) == (stop, 3, None)
            else:
                assert draft.blocks == (DraftText("x"),), ARGUMENTS[:end]
                assert draft.stop == ("length" if stop == "length" else "error")
                assert draft.error

    run_async(run())


argument_pieces = st.sampled_from(["", "{", "}", "{}", '{"a":', "1", '"', "null", "[]", "{}{}"])
events = st.one_of(
    st.builds(StreamEvent, st.just("start")),
    st.builds(StreamEvent, st.just("text_delta"), st.integers(0, 1), st.sampled_from(["", "你"])),
    st.builds(
        StreamEvent,
        st.just("toolcall_start"),
        st.integers(1, 3),
        id=st.sampled_from(["", "a", "b"]),
        name=st.sampled_from(["read", "read", ""]),
    ),
    st.builds(StreamEvent, st.just("toolcall_delta"), st.integers(1, 3), argument_pieces),
)
endings = st.builds(
    StreamEvent, st.sampled_from(["done", "done", "error"]),
    stop=st.sampled_from(["stop", "tool_use", "length", "sure"]),
    message=st.sampled_from(["", "m"]),
)  # fmt: skip
scripts = st.tuples(st.lists(events, max_size=8), endings).map(lambda s: (*s[0], s[1]))


@examples(120)
@given(scripts, st.lists(st.integers(0, 999), max_size=5), st.integers(0, 999))
def test_any_script_ends_in_one_draft_with_all_its_calls_or_none(
    script: tuple[StreamEvent, ...], places: list[int], lost: int
) -> None:
    """Rules broken or not: nothing is raised, calls are whole, and bytes and events agree."""
    data = as_sent(script)

    async def run() -> list[AssistantDraft]:
        streams = [cut_at(data, places), cut_at(data[: lost % (len(data) + 1)], places)]
        return [await collect(replay(script)), *await drafts_of(streams)]

    direct, decoded, cut = run_async(run())
    assert decoded == direct
    for draft in (direct, cut):
        calls = [block for block in draft.blocks if isinstance(block, DraftCall)]
        opened = [event.id for event in script if event.type == "toolcall_start"]
        assert len(calls) in (0, len(opened))
        assert all(isinstance(call.arguments, Mapping) for call in calls)
        if draft.stop in ("error", "aborted"):
            assert calls == []
            assert draft.error
        assert (draft.error is None) == (draft.stop in ("stop", "tool_use")) or (
            draft.stop == "length"
        )
    assert lost % (len(data) + 1) == len(data) or cut.stop == "error"


@examples(60)
@given(scripts, st.sampled_from(['{"type": "done"', "[1]", "null", '{"type": "x"}', "[DONE]"]))
def test_a_message_that_is_no_event_ends_the_stream_in_one_error(
    script: tuple[StreamEvent, ...], junk: str
) -> None:
    """Junk on the wire is one error event at its place, and nothing after it is read."""
    before = [event for event in script if event.type not in ("done", "error")]
    data = as_sent(before) + f"data: {junk}\n\n".encode() + as_sent(script)
    *got, last = decode_events([data])
    assert got == before
    assert last.type == "error"
    assert last.message
