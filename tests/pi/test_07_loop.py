"""Chapters 07 and 08: random scripts, tools and users; every run ends well, and twice the same."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pi_course.bench import FakeClock
from pi_course.control import AgentSession
from pi_course.history import check_history, repair_history
from pi_course.loop import RunEvent, RunLimits, RunResult, run_agent
from pi_course.messages import Message, calls_of, from_json, text_of, to_json, user
from pi_course.schema import ToolSpec
from pi_course.signals import AbortSignal
from pi_course.stream import ScriptedModel, StreamEvent
from pi_course.tools import ExecContext, Tool, ToolRegistry, create_executor
from pi_course.values import canonical_json

from tests.pi.arbitrary import is_legal, run_async

SEEDS = range(150)
SPEC = ToolSpec("work", "", {"type": "object", "properties": {"n": {"type": "integer"}}}, "read")


@dataclass
class Scene:
    """Everything that a run depends on, made of one seed."""

    seed: int

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.clock = FakeClock(1)
        self.signal = AbortSignal()
        self.model = ScriptedModel([self.turn(n) for n in range(self.chance.randint(0, 5))])
        self.limits = RunLimits(self.chance.randint(0, 6), self.chance.randint(0, 8))
        self.mode: Any = self.chance.choice(["parallel", "sequential"])
        self.executor = create_executor(ToolRegistry([Tool(SPEC, self.work)]), timeout=1)
        self.events: list[RunEvent] = []

    def turn(self, number: int) -> list[StreamEvent | Exception]:
        """One answer: text, calls good and bad, and one of all endings."""
        chance = self.chance
        events: list[StreamEvent | Exception] = [
            StreamEvent("text_delta", 0, chance.choice(["嗯", "ok", "\n"]))
            for _ in range(chance.randint(0, 2))
        ]
        calls = chance.choice([0, 0, 1, 2, 3])
        for index in range(1, calls + 1):
            name = chance.choice(["work", "work", "work", "nobody"])
            events.append(StreamEvent("toolcall_start", index, id=f"c{index}", name=name))
            arguments = chance.choice([f'{{"n": {chance.randint(0, 6)}}}', '{"n": "x"}', ""])
            events.append(StreamEvent("toolcall_delta", index, arguments))
        stops = ["tool_use" if calls else "stop"] * 7 + ["length"]
        events.append(StreamEvent("done", stop=chance.choice(stops)))
        if chance.random() < 0.15:
            failures: list[StreamEvent | Exception] = [
                OSError("lost"), StreamEvent("error", message="overloaded"),
            ]  # fmt: skip
            events[chance.randrange(len(events))] = failures[chance.randrange(2)]
        return events

    async def work(self, args: dict[str, Any], ctx: ExecContext) -> Any:
        """A tool that takes its time, talks, and fails when it is told to."""
        number = args.get("n", 0)
        assert ctx.update is not None
        try:
            for step in range(3 * number):
                ctx.update(f"step {step}")
                self.clock.advance(1)
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            ctx.update("too late")
            raise
        if number == 5:
            raise RuntimeError("five")
        return None if number == 6 else f"worked {number}"

    def listen(self, event: RunEvent) -> None:
        """Keep the event; now and then, somebody has had enough."""
        self.events.append(event)
        self.clock.advance(1)
        if self.seed % 3 == 0 and len(self.events) == 2 + self.seed % 31:
            self.signal.abort("enough")

    def written(self, result: object = None) -> bytes:
        """Events and messages, as bytes."""
        rest = [to_json(m) for m in result.messages] if isinstance(result, RunResult) else result
        return canonical_json([[[event.kind, event.data] for event in self.events], rest])


def play(seed: int) -> tuple[Scene, RunResult]:
    """One whole run."""
    scene = Scene(seed)
    result = run_async(
        run_agent(
            scene.model, [user("go", at=0)], scene.executor, tools=[SPEC], limits=scene.limits,
            clock=scene.clock, signal=scene.signal, emit=scene.listen, mode=scene.mode,
        )
    )  # fmt: skip
    return scene, result


def require_balance(events: list[RunEvent]) -> None:
    """Every start has its end, inside what it was started in; only tools may overlap."""
    stack: list[str] = []
    tools: dict[str, str] = {}
    for event in events:
        what, _, edge = event.kind.rpartition("_")
        if what == "tool":
            assert stack == ["agent", "turn"]
            if edge == "start":
                assert event.data["id"] not in tools
                tools[event.data["id"]] = event.data["name"]
            elif edge == "end":
                assert tools.pop(event.data["id"]) == event.data["name"]
            else:
                assert event.kind == "tool_update" and event.data["id"] in tools
        elif edge == "start":
            assert tools == {}
            above = {"agent": [""], "turn": ["agent"], "message": ["agent", "agent turn"]}
            assert " ".join(stack) in above[what]
            stack.append(what)
        elif edge == "end":
            assert tools == {}
            assert stack.pop() == what
        else:
            assert (event.kind, stack[-1]) == ("message_delta", "message")
    assert (stack, tools) == ([], {})


@pytest.mark.parametrize("tens", range(0, len(SEEDS), 10))
def test_events_are_balanced_and_tell_the_messages_under_random_scripts(tens: int) -> None:
    """Each start has its end in its place; the messages told are the messages returned."""
    for seed in SEEDS[tens : tens + 10]:
        scene, result = play(seed)
        require_balance(scene.events)
        kinds = [event.kind for event in scene.events]
        assert (kinds[0], kinds[-1]) == ("agent_start", "agent_end"), seed
        assert (kinds.count("agent_start"), kinds.count("turn_start")) == (
            1, len(scene.model.contexts),
        ), seed  # fmt: skip
        told = [from_json(e.data["message"]) for e in scene.events if e.kind == "message_end"]
        assert told == list(result.messages), seed
        assert scene.events[-1].data == {"stop": result.stop, "calls": result.calls}, seed


@pytest.mark.parametrize("tens", range(0, len(SEEDS), 10))
def test_every_way_out_leaves_a_legal_history_within_the_limits(tens: int) -> None:
    """Each call has its one result; only the last message may be a failed answer."""
    for seed in SEEDS[tens : tens + 10]:
        scene, result = play(seed)
        history = [user("go", at=0), *result.messages]
        failed = [(p.code, p.index) for p in check_history(history)]
        assert failed in ([], [("UNREPLAYABLE", len(history) - 1)]), seed
        assert (failed != []) <= (result.stop in ("error", "aborted")), seed
        assert len(scene.model.contexts) <= scene.limits.max_turns, seed
        assert result.calls <= scene.limits.max_calls, seed
        for context in scene.model.contexts:
            assert is_legal(context.messages), seed
            assert context.messages == tuple(history[: len(context.messages)]), seed
        stamps = [message.timestamp for message in history]
        assert stamps == sorted(stamps) or scene.mode == "parallel", seed


def test_two_identical_runs_are_identical_to_the_byte() -> None:
    """Same script, same clock: the same events and the same messages, in both modes."""
    seen = set()
    for seed in SEEDS:
        (first, one), (second, two) = play(seed), play(seed)
        assert first.written(one) == second.written(two), seed
        seen.add((one.stop, first.mode))
    assert len(seen) == 8, "the seeds have shown every ending in both modes"


@dataclass
class Talk:
    """A session with users that speak up in the middle of it, made of one seed."""

    seed: int

    def __post_init__(self) -> None:
        self.scene = Scene(self.seed)
        self.chance = random.Random(-self.seed - 1)
        self.said: list[str] = []
        self.taken_back: list[str] = []
        self.reported: list[BaseException] = []
        self.session = AgentSession(
            self.scene.model, self.scene.executor, limits=self.scene.limits,
            clock=self.scene.clock, tools=[SPEC], mode=self.scene.mode,
            report=self.reported.append,
        )  # fmt: skip

    def say(self, how: Callable[[str], None]) -> None:
        self.said.append(f"said {len(self.said)}")
        how(self.said[-1])

    def interfere(self, event: RunEvent) -> None:
        """Steer, follow up, abort, or fail, now and then."""
        self.scene.events.append(event)
        self.scene.clock.advance(1)
        dice = self.chance.random()
        if dice < 0.05:
            self.say(self.session.steer)
        elif dice < 0.1:
            self.say(self.session.follow_up)
        elif dice < 0.11:
            self.taken_back += self.session.abort("enough")
        elif dice < 0.2:
            raise OSError("a listener fails")

    async def run(self) -> None:
        self.session.subscribe(self.interfere)
        for _ in range(3):
            text = f"said {len(self.said)}"
            self.said.append(text)
            await self.session.prompt(text)


@pytest.mark.parametrize("tens", range(0, len(SEEDS), 10))
def test_what_users_say_is_recorded_once_or_handed_back(tens: int) -> None:
    """Said at any moment, aborted or not: each text is in the record or given back, never both."""
    for seed in SEEDS[tens : tens + 10]:
        talk = Talk(seed)
        run_async(talk.run())
        recorded = [text_of(m) for m in talk.session.messages if m.role == "user"]
        waiting = talk.session.abort()
        assert sorted([*recorded, *talk.taken_back, *waiting]) == sorted(talk.said), seed
        require_balance_of_runs(talk.scene.events)
        record: tuple[Message, ...] = talk.session.messages
        for message in repair_history(record).messages:
            assert getattr(message, "details", None) != {"code": "MISSING_RESULT"}, seed
        told = [from_json(e.data["message"]) for e in talk.scene.events if e.kind == "message_end"]
        assert told == list(record), seed


def require_balance_of_runs(events: list[RunEvent]) -> None:
    """The events of runs one after another, each balanced."""
    ends = [place + 1 for place, event in enumerate(events) if event.kind == "agent_end"]
    assert ends[-1] == len(events)
    for start, end in zip([0, *ends], ends, strict=False):
        require_balance(events[start:end])


def test_two_identical_sessions_are_identical_to_the_byte() -> None:
    """Same script, same users, same failing listeners: the same record and the same events."""
    skipped = 0
    for seed in SEEDS:
        first, second = Talk(seed), Talk(seed)
        for talk in (first, second):
            run_async(talk.run())
        records = [[to_json(m) for m in talk.session.messages] for talk in (first, second)]
        assert first.scene.written(records[0]) == second.scene.written(records[1]), seed
        skipped += sum(getattr(m, "details", None) == {"code": "SKIPPED"}
                       for m in first.session.messages)  # fmt: skip
    assert skipped > 0, "the seeds have shown a call skipped by steering"


def test_calls_in_the_record_are_run_at_most_once() -> None:
    """However the users interfere, no call of an answer starts a tool twice."""
    for seed in SEEDS:
        talk = Talk(seed)
        run_async(talk.run())
        turns = [calls_of(message) for message in talk.session.messages]
        wanted = sum(call.name == "work" for calls in turns for call in calls)
        starts = [event for event in talk.scene.events if event.kind == "tool_start"]
        started = sum(event.data["name"] == "work" for event in starts)
        assert started <= wanted, seed
