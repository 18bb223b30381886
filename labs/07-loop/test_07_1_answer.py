"""Lab 07.1: one answer of a model, as one message."""

import asyncio

from pi_course import loop
from pi_course.bench import FakeClock
from pi_course.messages import ToolCall, from_json, text, text_of, user
from pi_course.signals import AbortSignal
from pi_course.stream import ScriptedModel, StreamEvent

CONTEXT = loop.ModelContext("Be brief.", (user("hello", at=1),), ())


def _piece(words):
    return StreamEvent("text_delta", text=words)


def _ask(model, events, signal=None):
    signal = signal or AbortSignal()
    clock = FakeClock(1_000)
    answer = loop.ask_model(model, CONTEXT, clock=clock, signal=signal, emit=events.append)
    return asyncio.wait_for(answer, 0.2)


def _told(events):
    """The kinds of the events, and the message that the last one carries."""
    return [event.kind for event in events], from_json(events[-1].data["message"])


def test_an_answer_becomes_one_message():
    """The message has the streamed text and calls; the events tell of it from start to end."""
    call = [
        StreamEvent("toolcall_start", index=1, id="c-1", name="look"),
        StreamEvent("toolcall_delta", index=1, text='{"at": "cat"}'),
    ]
    turn = [_piece("Let me "), _piece("see."), *call, StreamEvent("done", stop="tool_use")]
    model, events = ScriptedModel([turn]), []
    answer = asyncio.run(_ask(model, events))

    assert answer.content == (text("Let me see."), ToolCall("c-1", "look", {"at": "cat"}))
    assert (answer.stop, answer.error, answer.timestamp) == ("tool_use", None, 1_000)
    assert model.contexts == [CONTEXT]
    kinds, told = _told(events)
    assert kinds == ["message_start", "message_delta", "message_delta", "message_end"]
    assert [event.data["text"] for event in events[1:3]] == ["Let me ", "Let me see."]
    assert (events[0].data["role"], told) == ("assistant", answer)


def test_a_model_that_fails_makes_a_message_too():
    """Before, in or at the cut end of its stream, a failure is a message with stop "error"."""

    class Unreachable:
        def stream(self, context, signal):
            raise ConnectionError("no network")

    models = [
        Unreachable(),
        ScriptedModel([[_piece("Well"), ConnectionError("gone")]]),
        ScriptedModel([[_piece("Well"), StreamEvent("error", message="overloaded")]]),
        ScriptedModel([[_piece("Well")]]),
    ]
    for model, words in zip(models, ["", "Well", "Well", "Well"], strict=True):
        events = []
        answer = asyncio.run(_ask(model, events))
        assert (answer.stop, text_of(answer)) == ("error", words)
        assert answer.error, "a reason"
        kinds, told = _told(events)
        assert (kinds[0], kinds[-1], told) == ("message_start", "message_end", answer)


def test_an_abort_keeps_the_text_that_had_come():
    """An abort ends a stream that hangs; the message has stop "aborted" and the text so far."""

    class Hanging:
        async def stream(self, context, signal):
            yield _piece("Once upon")
            await asyncio.Event().wait()

    async def scenario():
        signal, events = AbortSignal(), []
        asyncio.get_running_loop().call_later(0.02, signal.abort, "enough")
        return await _ask(Hanging(), events, signal), events

    answer, events = asyncio.run(scenario())
    assert (answer.stop, text_of(answer)) == ("aborted", "Once upon")
    kinds, told = _told(events)
    assert kinds == ["message_start", "message_delta", "message_end"]
    assert told == answer
