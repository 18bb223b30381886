"""Lab 07.2: the run. Turn after turn, and every way in which it ends."""

import asyncio
import json
import random

import pytest
from pi_course import loop
from pi_course.bench import FakeClock
from pi_course.errors import CourseError
from pi_course.history import check_history
from pi_course.messages import (
    ToolCall,
    ToolResultMessage,
    assistant,
    calls_of,
    text_of,
    to_json,
    user,
)
from pi_course.schema import ToolSpec
from pi_course.signals import AbortSignal
from pi_course.stream import ScriptedModel, StreamEvent
from pi_course.tools import Tool, ToolRegistry, create_executor
from pi_course.values import canonical_json

ASKED = (user("hello", at=1),)
TEXT = {"type": "object", "properties": {"s": {"type": "string"}}}


def _say(words, stop="stop"):
    """A turn of a model that answers with text."""
    return [StreamEvent("text_delta", text=words), StreamEvent("done", stop=stop)]


def _want(*calls, stop="tool_use"):
    """A turn of a model that asks for calls: (id, tool name, the argument s)."""
    events = []
    for index, (id, name, s) in enumerate(calls):
        events.append(StreamEvent("toolcall_start", index=index, id=id, name=name))
        events.append(StreamEvent("toolcall_delta", index=index, text=json.dumps({"s": s})))
    return [*events, StreamEvent("done", stop=stop)]


def _registry(**bodies):
    return ToolRegistry(
        [Tool(ToolSpec(name, "a tool", TEXT, "read"), body) for name, body in bodies.items()]
    )


def _echoing(log):
    """A registry with one tool, echo, that notes and returns its argument."""

    async def echo(args, ctx):
        log.append(args["s"])
        return args["s"]

    return _registry(echo=echo)


def _run(model, registry, history=ASKED, *, turns=9, calls=9, clock=None, **options):
    clock = clock or FakeClock(1_000)
    run = loop.run_agent(
        model, history, create_executor(registry),
        limits=loop.RunLimits(turns, calls), clock=clock, **options,
    )
    return asyncio.run(asyncio.wait_for(run, 0.5))


def _codes(result):
    """For each result among the messages its call id and its error code, None for a success."""
    return [
        (m.call_id, m.details["code"] if m.is_error else None)
        for m in result.messages if isinstance(m, ToolResultMessage)
    ]


def test_a_text_answer_ends_the_run():
    """The model is shown prompt, history and tools; its text is the only new message."""
    history, model, registry = list(ASKED), ScriptedModel([_say("hi")]), _echoing([])
    result = _run(model, registry, history, system_prompt="Be brief.", tools=registry.specs())

    assert result.messages == (assistant("hi", at=1_000),)
    assert (result.stop, result.calls) == ("final", 0)
    assert model.contexts == [loop.ModelContext("Be brief.", ASKED, registry.specs())]
    assert history == list(ASKED), "the history of the caller"


def test_the_model_is_shown_what_came_of_its_calls():
    """Each turn adds the answer and one result a call, in call order; the next turn sees them."""
    log = []
    model = ScriptedModel(
        [_want(("c-1", "echo", "a"), ("c-2", "nope", "b"), ("c-3", "echo", "c")), _say("done")]
    )
    result = _run(model, _echoing(log))

    assert [message.role for message in result.messages] == [
        "assistant", "tool_result", "tool_result", "tool_result", "assistant",
    ]
    assert _codes(result) == [("c-1", None), ("c-2", "UNKNOWN_TOOL"), ("c-3", None)]
    assert (sorted(log), result.stop, result.calls) == (["a", "c"], "final", 3)
    shown = [context.messages for context in model.contexts]
    assert shown == [ASKED, (*ASKED, *result.messages[:4])]


def test_calls_beyond_a_limit_get_errors_and_do_not_run():
    """Calls that exceed max_calls, or that no turn is left for, are all answered with LIMIT."""
    two, three = [("c-1", "echo", "a"), ("c-2", "echo", "b")], ("c-3", "echo", "c")
    cases = [
        ((9, 2), [_want(*two), _want(three)], ["a", "b"], [None, None, "LIMIT"]),
        ((9, 2), [_want(*two, three)], [], ["LIMIT", "LIMIT", "LIMIT"]),
        ((2, 9), [_want(*two), _want(three)], ["a", "b"], [None, None, "LIMIT"]),
        ((1, 9), [_want(three)], [], ["LIMIT"]),
        ((0, 9), [_say("hi")], [], []),
    ]
    for (turns, calls), script, ran, codes in cases:
        log, model = [], ScriptedModel(script)
        result = _run(model, _echoing(log), turns=turns, calls=calls)
        assert (result.stop, result.calls, sorted(log)) == ("limit", len(ran), ran)
        assert [code for _, code in _codes(result)] == codes
        assert len(model.contexts) == min(turns, len(script))
    exact = _run(ScriptedModel([_want(*two), _say("hi")]), _echoing([]), turns=2, calls=2)
    assert exact.stop == "final", "limits that are just enough"


def test_an_answer_that_was_cut_is_not_acted_on():
    """Calls of an answer with stop "length" are TRUNCATED and the model may ask again."""
    log = []
    model = ScriptedModel(
        [_want(("c-1", "echo", "a"), stop="length"), _want(("c-1", "echo", "b")), _say("done")]
    )
    result = _run(model, _echoing(log))

    assert _codes(result) == [("c-1", "TRUNCATED"), ("c-1", None)]
    assert (log, result.stop, result.calls) == (["b"], "final", 1)
    assert _run(ScriptedModel([_say("half a sen", "length")]), _echoing([])).stop == "limit"


def test_every_end_leaves_a_legal_history():
    """Whatever a model says and wherever a run ends, no call stands without its one result."""
    seed = 7
    rng = random.Random(seed)

    def turn():
        wanted = [(f"c-{i}", rng.choice(["echo", "nope"]), "x") for i in range(rng.randrange(4))]
        events = _want(*wanted) if wanted else _say("well")
        kind = rng.choice(["whole", "whole", "cut", "raised", "length"])
        last = {"whole": events[-1:], "length": [StreamEvent("done", stop="length")],
                "cut": [], "raised": [OSError("gone")]}
        return events[:-1] + last[kind]

    ends = set()
    for case in range(80):
        model = ScriptedModel([turn() for _ in range(4)])
        turns, calls = rng.randrange(5), rng.randrange(7)
        result = _run(model, _echoing([]), turns=turns, calls=calls)
        where = f"seed {seed}, case {case}"
        problems = check_history([*ASKED, *result.messages])
        if result.stop == "error":
            assert [problem.code for problem in problems] == ["UNREPLAYABLE"], where
            assert result.messages[-1].stop == "error", where
        else:
            assert problems == [], where
        assert result.calls <= calls and len(model.contexts) <= turns, where
        ends.add(result.stop)
    assert ends == {"final", "limit", "error"}


def test_an_abort_ends_the_run_with_every_call_answered():
    """What had finished keeps its result, what was at work is ABORTED, and nothing follows."""
    signal, events = AbortSignal(), []

    async def quick(args, ctx):
        return "done"

    async def endless(args, ctx):
        await asyncio.sleep(0.01)
        signal.abort("enough")
        try:
            await asyncio.Event().wait()
        finally:
            ctx.update("cleaning up")

    model = ScriptedModel([_want(("c-1", "quick", ""), ("c-2", "endless", "")), _say("never")])
    registry = _registry(quick=quick, endless=endless)
    result = _run(model, registry, signal=signal, emit=events.append)

    assert (result.stop, _codes(result)) == ("aborted", [("c-1", None), ("c-2", "ABORTED")])
    assert len(model.contexts) == 1
    told = [event.kind for event in events if event.data.get("id") == "c-2"]
    assert told == ["tool_start", "tool_end"], "nothing is told of a tool after its end"
    again = _run(model, _echoing([]), signal=signal)
    assert (again.stop, again.messages, len(model.contexts)) == ("aborted", (), 1)


def test_two_equal_runs_are_equal_byte_for_byte():
    """Same script, same clock: the same messages and the same events, to the last byte."""

    def story():
        clock, events = FakeClock(1_000), []

        async def tick(args, ctx):
            clock.advance(5)
            ctx.update("half way")
            return args["s"]

        script = [_want(("c-1", "tick", "a"), ("c-2", "tick", "b")), _say("done")]
        result = _run(ScriptedModel(script), _registry(tick=tick), clock=clock, emit=events.append)
        told = [[event.kind, event.data] for event in events]
        return canonical_json([[to_json(message) for message in result.messages], told])

    first, second = story(), story()
    assert first == second
    for kind in ("agent_start", "turn_end", "message_delta", "tool_update", "agent_end"):
        assert kind.encode() in first


def test_a_history_that_cannot_be_continued_is_refused():
    """With nothing to answer, or a broken history, nothing is asked and nothing is told."""
    call = ToolCall("c-1", "echo", {})
    wanted = assistant([call], stop="tool_use", at=2)
    failed = assistant("We", stop="error", error="gone", at=2)
    for history in ([], [*ASKED, assistant("hi", at=2)], [*ASKED, wanted], [wanted, *ASKED],
                    [*ASKED, failed, *ASKED]):
        model, events = ScriptedModel([_say("hi")]), []
        with pytest.raises(CourseError) as refusal:
            _run(model, _echoing([]), history, emit=events.append)
        assert refusal.value.code == "INVALID_HISTORY"
        assert (model.contexts, events) == ([], [])


def test_what_users_say_meanwhile_comes_between_turns():
    """The inbox is asked before a turn, and with idle when the run would be final."""
    asked, model = [], ScriptedModel([_want(("c-1", "echo", "a")), _say("done"), _say("bye")])
    waiting = {"first": [user("hello", at=1)], "busy": [user("be quick", at=2)],
               "idle": [user("and now?", at=3)]}

    def inbox(idle):
        asked.append(idle)
        return waiting.pop("first" if "first" in waiting else "idle" if idle else "busy", ())

    result = _run(model, _echoing([]), (), inbox=inbox)

    assert [text_of(message) for message in result.messages if not calls_of(message)] == [
        "hello", "a", "be quick", "done", "and now?", "bye",
    ]
    assert asked == [False, False, True, True]
    assert result.stop == "final"
    assert check_history(result.messages) == []
    assert model.contexts[2].messages == result.messages[:-1]
