"""Lab 08.1: a session. One conversation, one run at a time, watched by listeners."""

import asyncio
import json
import random
import re

import pytest
from pi_course import control
from pi_course.bench import FakeClock
from pi_course.errors import CourseError
from pi_course.history import check_history
from pi_course.loop import RunLimits
from pi_course.messages import from_json, text_of, user
from pi_course.schema import ToolSpec
from pi_course.stream import ScriptedModel, StreamEvent
from pi_course.tools import Tool, ToolRegistry, create_executor


def _say(words):
    return [StreamEvent("text_delta", text=words), StreamEvent("done", stop="stop")]


def _want(*calls):
    """A turn that asks for calls: (id, tool name)."""
    starts = [
        StreamEvent("toolcall_start", index=index, id=id, name=name)
        for index, (id, name) in enumerate(calls)
    ]
    return [*starts, StreamEvent("done", stop="tool_use")]


def _session(model, *, turns=9, calls=9, mode="parallel", history=(), report=None, **bodies):
    """A session whose tools have these bodies and take no arguments."""
    registry = ToolRegistry(
        [Tool(ToolSpec(name, "a tool", {"type": "object"}, "read"), body)
         for name, body in bodies.items()]
    )
    return control.AgentSession(
        model, create_executor(registry), limits=RunLimits(turns, calls), clock=FakeClock(1_000),
        mode=mode, history=history, report=report,
    )


def _prompt(session, text="hello"):
    return asyncio.run(asyncio.wait_for(session.prompt(text), 0.5))


async def _until(condition):
    for _ in range(1_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


def _assert_balanced(events, where=""):
    """Every start has its end, and they nest as the grammar of a run says."""
    letters = {"agent_start": "A", "agent_end": "a", "turn_start": "T", "turn_end": "t",
               "message_start": "M", "message_delta": "d", "message_end": "m",
               "tool_start": "X", "tool_update": "u", "tool_end": "x"}
    told = "".join(letters[event.kind] for event in events)
    assert re.fullmatch(r"(A(Mm)*(TMd*m[Xux]*(Mm)*t(Mm)*)*a)*", told), f"{told} {where}"
    turn, tools = 0, {}
    for event in events:
        turn += event.kind == "turn_start"
        if event.kind.startswith("tool_"):
            key = (turn, event.data["id"])
            tools[key] = tools.get(key, "") + letters[event.kind]
    assert all(re.fullmatch("Xu*x", one) for one in tools.values()), f"{tools} {where}"


def test_a_prompt_continues_the_conversation():
    """Each prompt is answered in the light of all that was said before."""
    model = ScriptedModel([_say("Hi."), _say("Cheese.")])
    session = _session(model, history=[user("I am a mouse.", at=1)])
    first, second = _prompt(session, "Hello"), _prompt(session, "What do I like?")

    assert [text_of(message) for message in first.messages] == ["Hello", "Hi."]
    assert [text_of(message) for message in second.messages] == ["What do I like?", "Cheese."]
    assert (first.stop, second.stop) == ("final", "final")
    assert session.messages == (user("I am a mouse.", at=1), *first.messages, *second.messages)
    assert model.contexts[1].messages == session.messages[:-1]


def test_a_second_prompt_while_running_is_refused():
    """Two runs never share a conversation: the second prompt is BUSY, the first goes on."""

    async def scenario():
        go = asyncio.Event()

        async def wait(args, ctx):
            await go.wait()
            return "ok"

        session = _session(ScriptedModel([_want(("c-1", "wait")), _say("done")]), wait=wait)
        first = asyncio.create_task(session.prompt("one"))
        await _until(lambda: len(session.messages) == 2)
        with pytest.raises(CourseError) as refusal:
            await asyncio.wait_for(session.prompt("two"), 0.2)
        go.set()
        return refusal.value.code, await first, session

    code, result, session = asyncio.run(scenario())
    assert code == "BUSY"
    assert [text_of(message) for message in result.messages] == ["one", "", "ok", "done"]
    assert session.messages == result.messages, "of the second prompt nothing is left"


def test_events_are_balanced_however_a_run_ends():
    """For any script and any limits each start has its end and the messages told are the record."""
    seed = 8
    rng = random.Random(seed)

    async def fine(args, ctx):
        ctx.update("half way")
        await asyncio.sleep(0)
        return "ok"

    async def broken(args, ctx):
        raise ValueError("no")

    def turn():
        names = [rng.choice(["fine", "broken", "nope"]) for _ in range(rng.randrange(4))]
        events = _want(*((f"c-{i}", name) for i, name in enumerate(names)))
        events = [StreamEvent("text_delta", index=9, text="well"), *events]
        return events[:-1] + rng.choice([events[-1:], events[-1:], [], [OSError("gone")]])

    for case in range(60):
        session = _session(
            ScriptedModel([turn() for _ in range(4)]), turns=rng.randrange(5),
            calls=rng.randrange(9), mode=rng.choice(["parallel", "sequential"]),
            fine=fine, broken=broken,
        )
        events = []
        session.subscribe(events.append)
        result = _prompt(session)
        where = f"(seed {seed}, case {case})"
        _assert_balanced(events, where)
        told = [event.data["message"] for event in events if event.kind == "message_end"]
        assert tuple(map(from_json, told)) == session.messages == result.messages, where


def test_a_listener_that_raises_disturbs_nobody():
    """Result and events of the run are as if the raising listener were not there."""

    def story(*before):
        reported, events = [], []

        def report(error):
            reported.append(type(error))
            raise RuntimeError("the report fails as well")

        async def fine(args, ctx):
            ctx.update("half way")
            return "ok"

        model = ScriptedModel([_want(("c-1", "fine")), _say("done")])
        session = _session(model, report=report, fine=fine)
        for listener in before:
            session.subscribe(listener)
        session.subscribe(events.append)
        return _prompt(session), events, reported

    class Foreign(BaseException):
        """Of somebody's own kind, no Exception."""

    def raising(event):
        raise KeyError(event.kind)

    def leaving(event):
        raise Foreign

    result, events, _ = story()
    disturbed, heard, reported = story(raising, leaving)
    assert (disturbed, heard) == (result, events)
    assert json.dumps([event.data for event in heard]), "events are JSON"
    assert reported == [KeyError, Foreign] * len(events)


def test_an_ended_subscription_hears_nothing_more():
    """A listener may end any subscription while it is called; the others miss no event."""
    session = _session(ScriptedModel([_say("hi")]))
    heard = {"leaving": [], "expelled": [], "staying": []}

    def leaving(event):
        heard["leaving"].append(event.kind)
        if event.kind == "turn_start":
            leave()
            expel()
            expel()

    leave = session.subscribe(leaving)
    expel = session.subscribe(lambda event: heard["expelled"].append(event.kind))
    session.subscribe(lambda event: heard["staying"].append(event.kind))
    _prompt(session)

    assert heard["staying"][:4] == ["agent_start", "message_start", "message_end", "turn_start"]
    assert heard["staying"][-1] == "agent_end"
    assert heard["leaving"] == heard["staying"][:4]
    assert heard["expelled"] == heard["staying"][:3]


def test_a_cancelled_prompt_leaves_a_session_that_works():
    """Cancellation gets out, the events have an end, and the next prompt shows a legal history."""
    model, events = ScriptedModel([_want(("c-1", "hang")), _say("Sorry.")]), []

    async def hang(args, ctx):
        await asyncio.Event().wait()

    session = _session(model, hang=hang)
    session.subscribe(events.append)

    async def scenario():
        running = asyncio.create_task(session.prompt("one"))
        await _until(lambda: any(event.kind == "tool_start" for event in events))
        running.cancel()
        await asyncio.wait({running})
        return running.cancelled()

    assert asyncio.run(scenario())
    _assert_balanced(events)
    assert [message.role for message in session.messages] == ["user", "assistant"]
    assert _prompt(session, "two").stop == "final"
    assert check_history(model.contexts[1].messages) == []
    assert [text_of(message) for message in session.messages] == ["one", "", "two", "Sorry."]
