"""Lab 02.2: what a provider sends becomes events, and a script stands in for a provider."""

from __future__ import annotations

import asyncio
import json
import random

import pytest
from pi_course import signals, stream
from pi_course.errors import CourseError

_DEFAULTS = {"index": 0, "text": "", "id": "", "name": "", "stop": "", "message": ""}


def _answer():
    return [
        stream.StreamEvent("start"),
        stream.StreamEvent("text_delta", text="读 é"),
        stream.StreamEvent("toolcall_start", index=1, id="c1", name="read_file"),
        stream.StreamEvent("toolcall_delta", index=1, text='{"path":'),
        stream.StreamEvent("toolcall_delta", index=1, text='"😀\\n"}'),
        stream.StreamEvent("done", stop="tool_use"),
    ]


def _frame(event):
    fields = {"type": event.type}
    fields |= {k: getattr(event, k) for k, v in _DEFAULTS.items() if getattr(event, k) != v}
    return f"data: {json.dumps(fields, ensure_ascii=False)}\n\n".encode()


def _collected(events):
    async def playing():
        for event in events:
            yield event

    async def scene():
        return await stream.collect(playing())

    return asyncio.run(scene())


def test_a_cut_at_any_byte_is_an_error_and_never_a_call():
    """However little is missing, the events that came whole are followed by one error event."""
    frames = [_frame(event) for event in _answer()]
    wire = b"".join(frames)
    for cut in range(len(wire)):
        events = list(stream.decode_events([wire[:cut]]))
        whole = sum(len(b"".join(frames[: n + 1])) <= cut for n in range(len(frames)))
        assert events[:-1] == _answer()[:whole], f"cut at byte {cut}"
        assert events[-1].type == "error", f"cut at byte {cut}"
        draft = _collected(events)
        assert draft.stop == "error", f"cut at byte {cut}"
        assert not any(isinstance(block, stream.DraftCall) for block in draft.blocks)


def test_the_draft_does_not_depend_on_the_chunks():
    """Whatever the chunks, byte by byte too, the events and the draft are the same."""
    wire = b"".join(_frame(event) for event in _answer())
    seed = 22
    rng = random.Random(seed)
    for round_ in range(60):
        cuts = sorted(rng.randrange(len(wire) + 1) for _ in range(rng.randrange(15)))
        if round_ == 0:
            cuts = list(range(1, len(wire)))
        chunks = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
        events = list(stream.decode_events(chunks))
        assert events == _answer(), f"seed {seed}, round {round_}"
        assert _collected(events).blocks == (
            stream.DraftText("读 é"),
            stream.DraftCall("c1", "read_file", {"path": "😀\n"}),
        )


def test_exactly_one_terminal_event_comes_out_and_it_is_the_last():
    """After done nothing follows; what is no event, or no stream at all, is one error event."""
    hello, done = _answer()[1], stream.StreamEvent("done", stop="stop")
    good = _frame(hello)
    assert list(stream.decode_events([good + _frame(done) + good + _frame(done)])) == [hello, done]
    failed = stream.StreamEvent("error", message="overloaded")
    assert list(stream.decode_events([_frame(failed), b"data: nonsense\n\n"])) == [failed]

    def broken():
        yield good
        raise ConnectionError("reset by peer")

    streams = [broken(), [good, b"data: [DONE]\n\n", _frame(done)]]
    for data in (
        b"nonsense",
        b"[]",
        b'{"text": "no type"}',
        b'{"type": "thought"}',
        b'{"type": "start", "colour": "red"}',
        b'{"type": "text_delta", "text": 1}',
        b'{"type": "text_delta", "index": true}',
        b'{"type": "text_delta", "text": "\xff"}',
    ):
        streams.append([good, b"data: " + data + b"\n\n", _frame(done)])
    for number, chunks in enumerate(streams):
        first, *rest = stream.decode_events(chunks)
        assert first == hello, f"stream {number}"
        assert [event.type for event in rest] == ["error"], f"stream {number}"


def test_a_scripted_model_plays_one_turn_a_call():
    """Turns come in order, an exception in its place, contexts are kept, a missing turn fails."""
    hello, done = _answer()[1], stream.StreamEvent("done", stop="stop")

    async def played(model, context):
        events = []
        try:
            async for event in model.stream(context, signals.AbortSignal()):
                events.append(event)
        except OSError as error:
            events.append(str(error))
        return events

    async def scene():
        model = stream.ScriptedModel([[hello, done], [hello, OSError("cable cut"), done]])
        other = stream.ScriptedModel([[done]])
        assert await played(model, "one") == [hello, done]
        assert await played(model, "two") == [hello, "cable cut"]
        assert await played(other, "three") == [done]
        with pytest.raises(CourseError) as caught:
            await played(model, "four")
        return model.contexts, other.contexts, caught.value.code

    assert asyncio.run(scene()) == (["one", "two", "four"], ["three"], "SCRIPT_ENDED")
