"""Lab 02.1: a stream of events becomes one draft."""

from __future__ import annotations

import asyncio

import pytest
from pi_course import signals, stream


def _text(index, text):
    return stream.StreamEvent("text_delta", index=index, text=text)


def _call(index, call_id, name):
    return stream.StreamEvent("toolcall_start", index=index, id=call_id, name=name)


def _args(index, text):
    return stream.StreamEvent("toolcall_delta", index=index, text=text)


def _done(stop):
    return stream.StreamEvent("done", stop=stop)


async def _playing(items):
    for item in items:
        if isinstance(item, Exception):
            raise item
        yield item


def _collect(*items, **options):
    async def scene():
        return await stream.collect(_playing(items), **options)

    return asyncio.run(scene())


def _said(draft):
    return "".join(block.text for block in draft.blocks if isinstance(block, stream.DraftText))


def _calls(draft):
    return [block for block in draft.blocks if isinstance(block, stream.DraftCall)]


def _answer():
    """Text, two calls and text again: their pieces mixed, block 2 begun before block 1."""
    return [
        stream.StreamEvent("start"),
        _text(0, "I "),
        _call(2, "c2", "read_file"),
        _args(2, '{"path": '),
        _call(1, "c1", "list_dir"),
        _text(0, "look"),
        _args(1, '{"deep":true}'),
        _args(2, '"a.txt"}'),
        _text(3, ", then"),
        _text(3, " tell."),
        _done("tool_use"),
    ]


def test_each_piece_goes_to_the_block_that_its_index_names():
    """Blocks come out in index order, each made of its own pieces in the order they came."""
    draft = _collect(*_answer())

    assert draft.blocks == (
        stream.DraftText("I look"),
        stream.DraftCall("c1", "list_dir", {"deep": True}),
        stream.DraftCall("c2", "read_file", {"path": "a.txt"}),
        stream.DraftText(", then tell."),
    )
    assert (draft.stop, draft.error) == ("tool_use", None)


def test_every_failure_is_an_error_draft_with_the_text_so_far():
    """A stream that ends, raises, reports an error or breaks a rule, at any event, is a draft."""
    answer = _answer()
    failures = {
        "ends": [],
        "raises": [RuntimeError("connection lost")],
        "reports": [stream.StreamEvent("error", message="overloaded")],
        "arguments of no call": [_args(9, "{}"), _done("tool_use")],
        "call without a name": [_call(9, "c9", ""), _done("tool_use")],
        "done without a stop": [stream.StreamEvent("done")],
    }
    for cut in range(len(answer)):
        for name, failure in failures.items():
            draft = _collect(*answer[:cut], *failure)
            said = "".join(event.text for event in answer[:cut] if event.type == "text_delta")
            where = f"{name} after {cut} events"
            assert draft.stop == "error", where
            assert draft.error, where
            assert _said(draft) == said, where
            assert _calls(draft) == [], where

    two_of_one_id = [_call(0, "c", "a"), _call(1, "c", "b"), _done("tool_use")]
    text_in_a_call = [_call(0, "c", "a"), _text(0, "x"), _done("tool_use")]
    for items in (two_of_one_id, text_in_a_call):
        draft = _collect(*items)
        assert (draft.stop, draft.blocks) == ("error", ())


def test_cut_arguments_are_never_a_call():
    """No proper beginning of the arguments makes a call, whichever stop follows."""
    whole = '{"path": "a.txt", "n": 12}'
    for stop, ending in (("tool_use", "error"), ("stop", "error"), ("length", "length")):
        for cut in range(1 if stop != "length" else 0, len(whole)):
            draft = _collect(
                _text(0, "Writing"),
                _call(1, "c1", "list_dir"),
                _args(1, "{}"),
                _call(2, "c2", "write_file"),
                _args(2, whole[:cut]),
                _done(stop),
            )
            where = f"{whole[:cut]!r} before {stop}"
            assert _calls(draft) == [], where
            assert draft.stop == ending, where
            assert draft.error, where
            assert _said(draft) == "Writing", where


def test_whole_arguments_are_a_frozen_object():
    """Arguments are one JSON object, "" when there are none, and what a call holds is frozen."""
    for stop in ("tool_use", "stop"):
        draft = _collect(_call(0, "c", "list_dir"), _done(stop))
        assert draft == stream.AssistantDraft((stream.DraftCall("c", "list_dir", {}),), stop, None)
    [call] = _calls(_collect(_call(0, "c", "f"), _args(0, '{"a":[1]}'), _done("length")))
    assert call.arguments == {"a": (1,)}
    with pytest.raises(TypeError):
        call.arguments["a"] = 2
    for text in ("[]", "1", "null", '"{}"', '{"a":NaN}', '{"a":1,"a":2}', "{} {}"):
        draft = _collect(_call(0, "c", "f"), _args(0, text), _done("tool_use"))
        assert (draft.stop, draft.blocks) == ("error", ()), text


def test_the_first_terminal_event_is_the_only_one():
    """Nothing is read after done or error, and the stream is closed."""
    for last in (_done("stop"), stream.StreamEvent("error", message="overloaded")):
        seen = []

        async def answer(last=last, seen=seen):
            try:
                for event in (_text(0, "yes"), last, _text(0, " and no"), _done("length")):
                    seen.append(event)
                    yield event
            finally:
                seen.append("closed")

        async def scene(answer=answer):
            return await stream.collect(answer())

        draft = asyncio.run(scene())
        assert draft.stop == (last.stop or "error")
        assert _said(draft) == "yes"
        assert seen == [_text(0, "yes"), last, "closed"]


def test_abort_keeps_the_text_and_ends_the_waiting():
    """Abort between events, during an endless wait or before the start gives an aborted draft."""
    closed = []

    async def talking(pause):
        try:
            yield _text(0, "par")
            yield _text(0, "tial")
            if pause:
                await asyncio.Event().wait()
            yield _text(0, " never")
            yield _done("stop")
        finally:
            closed.append(pause)

    async def between_events():
        signal = signals.AbortSignal()

        def on_delta(draft):
            if _said(draft) == "partial":
                signal.abort("enough")

        return await stream.collect(talking(False), on_delta, signal=signal)

    async def while_waiting():
        signal = signals.AbortSignal()
        work = asyncio.ensure_future(stream.collect(talking(True), signal=signal))
        asyncio.get_running_loop().call_later(0.02, signal.abort, "enough")
        await asyncio.wait({work}, timeout=1)
        assert work.done(), "still waiting for the next event"
        return work.result()

    async def before_the_start():
        signal = signals.AbortSignal()
        signal.abort("enough")
        return await stream.collect(talking(False), signal=signal)

    for scene, said in ((between_events, "partial"), (while_waiting, "partial")):
        draft = asyncio.run(scene())
        assert (_said(draft), draft.stop, draft.error) == (said, "aborted", "enough"), scene
    assert closed == [False, True]
    draft = asyncio.run(before_the_start())
    assert (draft.blocks, draft.stop) == ((), "aborted")


def test_on_delta_sees_a_frozen_draft_after_every_text_delta():
    """Each draft comes while the stream is there, stays as it was, and has no calls yet."""
    drafts, taken, seen_at = [], [], []

    async def answer():
        for event in _answer():
            await asyncio.sleep(0)
            taken.append(event)
            yield event

    def on_delta(draft):
        drafts.append(draft)
        seen_at.append(len(taken))

    async def scene():
        return await stream.collect(answer(), on_delta)

    final = asyncio.run(scene())
    assert [_said(draft) for draft in drafts] == [
        "I ",
        "I look",
        "I look, then",
        "I look, then tell.",
    ]
    assert seen_at[0] < len(taken), "the first draft came when the stream was over"
    assert {draft.stop for draft in drafts} == {"aborted"}
    assert [_calls(draft) for draft in drafts] == [[]] * 4
    assert len(_calls(final)) == 2


def test_an_abort_signal_is_set_once_and_wakes_everyone():
    """wait returns after abort and not before, for all who wait, and the first reason stays."""

    async def scene():
        signal = signals.AbortSignal()
        waiting = [asyncio.ensure_future(signal.wait()) for _ in range(3)]
        await asyncio.wait(waiting, timeout=0.01)
        assert [task.result() for task in waiting if task.done()] == []
        assert not signal.aborted

        signal.abort("first")
        signal.abort("second")
        await asyncio.wait(waiting, timeout=1)
        assert all(task.done() for task in waiting)
        await asyncio.wait_for(signal.wait(), 1)
        return signal.aborted, signal.reason

    assert asyncio.run(scene()) == (True, "first")
