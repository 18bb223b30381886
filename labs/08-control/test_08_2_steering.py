"""Lab 08.2: steering, follow-ups and abort. What a user may say while the agent works."""

import asyncio

from pi_course import control
from pi_course.bench import FakeClock
from pi_course.history import check_history
from pi_course.loop import RunLimits
from pi_course.messages import ToolResultMessage, text_of
from pi_course.schema import ToolSpec
from pi_course.stream import ScriptedModel, StreamEvent
from pi_course.tools import Tool, ToolRegistry, create_executor


def _say(words):
    return [StreamEvent("text_delta", text=words), StreamEvent("done", stop="stop")]


def _want(*ids):
    """A turn that asks for the tool work once for each id."""
    starts = [
        StreamEvent("toolcall_start", index=index, id=id, name="work")
        for index, id in enumerate(ids)
    ]
    return [*starts, StreamEvent("done", stop="tool_use")]


def _session(model, work=None, *, turns=9, mode="sequential"):
    """A session with the tool work, or with no tool."""
    spec = ToolSpec("work", "a tool", {"type": "object"}, "read")
    executor = create_executor(ToolRegistry([Tool(spec, work)] if work else []))
    limits = RunLimits(turns, 9)
    return control.AgentSession(model, executor, limits=limits, clock=FakeClock(1), mode=mode)


def _scenario(play):
    return asyncio.run(asyncio.wait_for(play(), 0.5))


async def _until(condition):
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


def _codes(messages):
    return [
        (m.call_id, m.details["code"] if m.is_error else None)
        for m in messages if isinstance(m, ToolResultMessage)
    ]


def _texts(messages):
    return [text_of(message) for message in messages if message.role != "tool_result"]


def test_steering_skips_what_has_not_begun():
    """The call at work finishes, those behind it are SKIPPED, then the model hears the user."""
    model = ScriptedModel([_want("c-1", "c-2", "c-3"), _say("Stopped.")])
    log = []

    async def play():
        go = asyncio.Event()

        async def work(args, ctx):
            log.append(ctx.call_id)
            await go.wait()
            return "ok"

        session = _session(model, work)
        running = asyncio.create_task(session.prompt("Clean up"))
        await _until(lambda: log)
        session.steer("Not the photos!")
        go.set()
        return await running

    result = _scenario(play)
    assert (log, result.stop) == (["c-1"], "final")
    assert _codes(result.messages) == [("c-1", None), ("c-2", "SKIPPED"), ("c-3", "SKIPPED")]
    assert [message.role for message in result.messages] == [
        "user", "assistant", "tool_result", "tool_result", "tool_result", "user", "assistant",
    ]
    assert _texts(result.messages) == ["Clean up", "", "Not the photos!", "Stopped."]
    assert check_history(model.contexts[1].messages) == []


def test_calls_at_work_keep_their_results_when_steered():
    """In a parallel batch all calls have begun: steering waits for them and skips none."""
    model, begun = ScriptedModel([_want("c-1", "c-2"), _say("Stopped.")]), []

    async def play():
        go = asyncio.Event()

        async def work(args, ctx):
            begun.append(ctx.call_id)
            await go.wait()
            return "ok"

        session = _session(model, work, mode="parallel")
        running = asyncio.create_task(session.prompt("Clean up"))
        await _until(lambda: len(begun) == 2)
        session.steer("Not the photos!")
        go.set()
        return await running

    result = _scenario(play)
    assert _codes(result.messages) == [("c-1", None), ("c-2", None)]
    assert _texts(model.contexts[1].messages) == ["Clean up", "", "Not the photos!"]


def test_follow_ups_are_heard_one_by_one_at_the_end():
    """A follow-up waits for the answer that would be final; each one gets an answer of its own."""
    model = ScriptedModel([_want("c-1"), _say("Done."), _say("Tested."), _say("Shipped.")])

    async def work(args, ctx):
        return "ok"

    async def play():
        session = _session(model, work)
        session.follow_up("Now test it.")
        session.follow_up("Now ship it.")
        return await session.prompt("Build it.")

    result = _scenario(play)
    assert _texts(result.messages) == [
        "Build it.", "", "Done.", "Now test it.", "Tested.", "Now ship it.", "Shipped.",
    ]
    assert _codes(result.messages) == [("c-1", None)]
    assert result.stop == "final"


def test_what_was_said_too_late_waits_for_the_next_run():
    """Steering that finds no turn left is said first thing in the next run, in its order."""
    model = ScriptedModel([_say("One."), _say("Two.")])

    async def play():
        session = _session(model, turns=1)
        session.steer("Early.")
        session.subscribe(
            lambda event: session.steer("Late.") if event.data.get("text") == "One." else None
        )
        await session.prompt("First.")
        return await session.prompt("Second.")

    result = _scenario(play)
    assert _texts(model.contexts[0].messages) == ["Early.", "First."]
    assert _texts(result.messages) == ["Late.", "Second.", "Two."]


def test_abort_ends_a_stream_that_hangs():
    """The prompt returns with stop "aborted" and what had come; the session can be used again."""

    class Hanging:
        def __init__(self):
            self.contexts = []

        async def stream(self, context, signal):
            self.contexts.append(context.messages)
            yield StreamEvent("text_delta", text="Once upon")
            if len(self.contexts) == 1:
                await asyncio.Event().wait()
            yield StreamEvent("done", stop="stop")

    model, heard = Hanging(), []

    async def play():
        session = _session(model)
        assert session.abort("nothing to stop") == ()
        session.subscribe(lambda event: heard.append(event.kind))
        running = asyncio.create_task(session.prompt("A story"))
        await _until(lambda: "message_delta" in heard)
        session.abort("too long")
        session.abort("once more")
        return await running, await session.prompt("Shorter")

    first, second = _scenario(play)
    assert (first.stop, _texts(first.messages)) == ("aborted", ["A story", "Once upon"])
    assert (second.stop, _texts(second.messages)) == ("final", ["Shorter", "Once upon"])
    assert check_history(model.contexts[1]) == []


def test_abort_answers_every_call_and_takes_back_what_waits():
    """Every call has its result, and what was queued is handed back instead of said later."""
    model = ScriptedModel([_want("c-1", "c-2"), _say("Calm.")])
    log = []

    async def play():
        async def work(args, ctx):
            log.append(ctx.call_id)
            await asyncio.Event().wait()

        session = _session(model, work)
        running = asyncio.create_task(session.prompt("Delete it"))
        await _until(lambda: log)
        session.follow_up("Then empty the bin.")
        waiting = session.abort("stop!"), session.abort("stop!!")
        return waiting, await running, await session.prompt("What is left?")

    waiting, first, second = _scenario(play)
    assert waiting == (("Then empty the bin.",), ())
    assert (first.stop, log) == ("aborted", ["c-1"])
    assert _codes(first.messages) == [("c-1", "ABORTED"), ("c-2", "ABORTED")]
    assert _texts(second.messages) == ["What is left?", "Calm."]
