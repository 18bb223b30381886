"""Lab 06.2: the executor. Whatever becomes of a call, one paired result comes back."""

import asyncio

import pytest
from pi_course import tools
from pi_course.bench import FakeClock
from pi_course.errors import CourseError
from pi_course.messages import ImageBlock, ToolCall, text, text_of
from pi_course.schema import ToolSpec
from pi_course.signals import AbortSignal

NUMBERS = {"type": "object", "properties": {"n": {"type": "array", "items": {"type": "integer"}}}}


def _registry(**bodies):
    """A registry of tools with these bodies, all with the argument n: a list of integers."""
    specs = {name: ToolSpec(name, "a tool", NUMBERS, "read") for name in bodies}
    return tools.ToolRegistry([tools.Tool(specs[name], body) for name, body in bodies.items()])


def _call(name, arguments=None, id="call-1"):
    return ToolCall(id, name, {} if arguments is None else arguments)


def _context(**changes):
    return tools.ExecContext(**{"clock": FakeClock(1_000), "signal": AbortSignal(), **changes})


def _run(executor, call, ctx=None):
    return asyncio.run(_soon(executor(call, ctx or _context())))


async def _soon(answer):
    return await asyncio.wait_for(answer, 0.2)


def _outcome(result):
    """Pairing and fate of a result: (call id, tool name, code), the code None for a success."""
    return result.call_id, result.tool_name, result.details["code"] if result.is_error else None


def test_an_answer_is_paired_with_its_call():
    """A str or a ToolOutput comes back under the call's id and name, timed at the end."""
    clock, seen = FakeClock(1_000), []

    async def look(args, ctx):
        seen.append((ctx.call_id, ctx.workspace))
        clock.advance(50)
        return tools.ToolOutput((text("a cat"), ImageBlock("image/png", "AAAA")), details={"w": 1})

    async def read(args, ctx):
        return tools.ToolOutput("no such file", is_error=True, details={"code": "ENOENT"})

    async def say(args, ctx):
        return "hello"

    executor = tools.create_executor(_registry(look=look, read=read, say=say))
    ctx = _context(clock=clock, workspace="here")
    looked = _run(executor, _call("look", id="c-7"), ctx)

    assert _outcome(looked) == ("c-7", "look", None)
    assert looked.content == (text("a cat"), ImageBlock("image/png", "AAAA"))
    assert (looked.details, looked.timestamp) == ({"w": 1}, 1_050)
    assert seen == [("c-7", "here")]
    assert ctx.call_id == "", "the context of the caller"
    assert _outcome(_run(executor, _call("read", id="c-8"))) == ("c-8", "read", "ENOENT")
    assert text_of(_run(executor, _call("say"))) == "hello"


def test_only_checked_calls_reach_a_tool():
    """An unknown name or arguments against the schema are error results, and nothing runs."""
    ran = []

    async def add(args, ctx):
        ran.append(args)
        return "done"

    registry = _registry(add=add)
    executor = tools.create_executor(registry)
    refused = [
        _run(executor, _call("Add", id="c-1")),
        _run(executor, _call("add", {"n": ["1"]}, id="c-2")),
        _run(executor, _call("add", {"n": [1], "force": True}, id="c-3")),
    ]

    assert [_outcome(result) for result in refused] == [
        ("c-1", "Add", "UNKNOWN_TOOL"),
        ("c-2", "add", "INVALID_ARGUMENTS"),
        ("c-3", "add", "INVALID_ARGUMENTS"),
    ]
    assert all(text_of(result) for result in refused), "the model is told something"
    assert ran == []
    registry.register(_registry(late=add).get("late"))
    assert _outcome(_run(executor, _call("late", {"n": [1]}))) == ("call-1", "late", None)
    assert ran == [{"n": [1]}]


def test_a_tool_gets_arguments_of_its_own():
    """Each run gets plain dicts and lists that share nothing with the call or with another run."""
    totals = []

    async def total(args, ctx):
        args["n"].append(100)
        args["seen"] = True
        totals.append(sum(args["n"]))
        return str(totals[-1])

    executor = tools.create_executor(_registry(total=total))
    call = _call("total", {"n": [1, 2]})
    results = [_run(executor, call), _run(executor, call)]

    assert [_outcome(result)[2] for result in results] == [None, None]
    assert totals == [103, 103]
    assert call.arguments == {"n": (1, 2)}


def test_a_tool_that_fails_answers_with_an_error():
    """What a tool raises is TOOL_FAILED, what is no output is BAD_OUTPUT; nothing is raised."""

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    raised = [
        ValueError("no"), CourseError("SOME_CODE", "no"), SystemExit(3), TimeoutError("mine"),
        OSError("file \udcff"), Mute(),
    ]
    junk = [
        None, 7, b"bytes", {"content": "x"}, [text("x")], "half a character: \ud83d",
        tools.ToolOutput(7), tools.ToolOutput((_call("bad"),)), tools.ToolOutput(("x",)),
        tools.ToolOutput("x", is_error="no"), tools.ToolOutput("x", details={1, 2}),
    ]
    outputs = [*raised, *junk]

    async def bad(args, ctx):
        output = outputs[args["n"][0]]
        if isinstance(output, BaseException):
            raise output
        return output

    executor = tools.create_executor(_registry(bad=bad), timeout=5)
    for i, output in enumerate(outputs):
        code = "TOOL_FAILED" if output in raised else "BAD_OUTPUT"
        result = _run(executor, _call("bad", {"n": [i]}, id=f"c-{i}"))
        assert _outcome(result) == (f"c-{i}", "bad", code), repr(output)


def test_a_deadline_or_an_abort_ends_the_waiting():
    """A call ends at its timeout or when the run is aborted, even if its tool does not stop."""
    log = []

    async def stubborn(args, ctx):
        log.append("started")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            log.append("asked to stop")
            await asyncio.sleep(0.1)
            log.append("stopped")
        return "too late"

    async def scenario():
        registry = _registry(stubborn=stubborn)
        call, ctx = _call("stubborn"), _context()
        late = await _soon(tools.create_executor(registry, timeout=0.02)(call, ctx))
        at_timeout = list(log)
        working = asyncio.create_task(_soon(tools.create_executor(registry)(call, ctx)))
        await asyncio.sleep(0.02)
        ctx.signal.abort()
        stopped = await working
        unstarted = await _soon(tools.create_executor(registry)(call, ctx))
        return [late, stopped, unstarted], at_timeout

    results, at_timeout = asyncio.run(scenario())
    assert [_outcome(result) for result in results] == [
        ("call-1", "stubborn", "TOOL_TIMEOUT"),
        ("call-1", "stubborn", "ABORTED"),
        ("call-1", "stubborn", "ABORTED"),
    ]
    assert "stopped" not in at_timeout, "the executor waited for a tool that does not stop"
    assert log.count("asked to stop") == 2, "the tool was asked to stop, each time"
    assert log.count("started") == 2, "after the abort nothing is started"


def test_cancellation_and_interrupt_pass_through():
    """Whoever cancels the executor gets the cancellation, and a KeyboardInterrupt gets out."""
    log = []

    async def wait(args, ctx):
        try:
            await asyncio.Event().wait()
        finally:
            log.append("cleaned up")

    async def interrupt(args, ctx):
        raise KeyboardInterrupt

    executor = tools.create_executor(_registry(wait=wait, interrupt=interrupt), timeout=5)

    async def cancelled():
        working = asyncio.create_task(executor(_call("wait"), _context()))
        await asyncio.sleep(0.01)
        working.cancel()
        await asyncio.wait({working})
        return working.cancelled()

    assert asyncio.run(cancelled())
    assert log == ["cleaned up"]
    with pytest.raises(KeyboardInterrupt):
        _run(executor, _call("interrupt"))


def test_a_long_text_is_cut_and_says_so():
    """Text up to max_output stays as it is; of more the beginning stays, with a mark after it."""
    outputs = ["0123456789", "0123456789TAIL", tools.ToolOutput((text("01234567"), text("89abc")))]

    async def write(args, ctx):
        if args["n"] == [3]:
            raise ValueError("x" * 10_000)
        return outputs[args["n"][0]]

    executor = tools.create_executor(_registry(write=write), max_output=10)
    exact, long, blocks, failed = (_run(executor, _call("write", {"n": [i]})) for i in range(4))

    assert text_of(exact) == "0123456789"
    assert text_of(long).startswith("0123456789")
    assert "TAIL" not in text_of(long)
    assert len(text_of(long)) > 10, "a mark that something is missing"
    assert [block.text for block in blocks.content[:2]] == ["01234567", "89"]
    assert not any(result.is_error for result in (exact, long, blocks))
    assert _outcome(failed)[2] == "TOOL_FAILED"
    assert len(text_of(failed)) < 200, "errors are cut too"


def test_a_batch_answers_in_the_order_of_its_calls():
    """Every call gets its result, in call order, in both modes, also when an executor breaks."""
    calls = [_call("t", id=f"c-{i}") for i in range(3)]
    log = []

    async def executor(call, ctx):
        log.append(f"{call.id} in")
        if call.id == "c-1":
            raise RuntimeError("an executor that breaks its promise")
        await asyncio.sleep(0.02 if call.id == "c-0" else 0.01)
        log.append(f"{call.id} out")
        return tools.error_result(call, "DONE", "", at=0)

    def batch(mode):
        log.clear()
        return asyncio.run(_soon(tools.execute_batch(executor, calls, _context(), mode=mode)))

    expected = [("c-0", "t", "DONE"), ("c-1", "t", "TOOL_FAILED"), ("c-2", "t", "DONE")]
    assert [_outcome(result) for result in batch("parallel")] == expected
    assert log == ["c-0 in", "c-1 in", "c-2 in", "c-2 out", "c-0 out"]
    assert [_outcome(result) for result in batch("sequential")] == expected
    assert log == ["c-0 in", "c-0 out", "c-1 in", "c-2 in", "c-2 out"]
