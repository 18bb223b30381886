"""The whole agent, once: a scripted model asks for a tool, gets the result and finishes.

Everything that was said is in the session before anybody acts on it, so the process may die
at any moment. Run it with --crash-after-tool to see that, and once more without to see it resume.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from pi_course.bench import SystemClock
from pi_course.context import Projection, build_context
from pi_course.framing import encode_record
from pi_course.loop import RunEvent, RunLimits, run_agent
from pi_course.messages import calls_of, from_json, text_of, to_json, user
from pi_course.permissions import PermissionPolicy, gate
from pi_course.sessions import SessionStore
from pi_course.stream import ScriptedModel, StreamEvent
from pi_course.tools import ToolRegistry, create_executor
from pi_course.workspace import Workspace, core_tools

TASK = "Write hello into hello.txt, and tell me when it is there."
PROMPT = "You work in one folder, with the tools that you have."


def asks(call_id: str, tool: str, arguments: str) -> Sequence[StreamEvent]:
    """One answer of the model that is a call."""
    return (
        StreamEvent("toolcall_start", id=call_id, name=tool),
        StreamEvent("toolcall_delta", text=arguments),
        StreamEvent("done", stop="tool_use"),
    )


def says(text: str) -> Sequence[StreamEvent]:
    """One answer of the model that is a text."""
    return (StreamEvent("text_delta", text=text), StreamEvent("done", stop="stop"))


WRITE_IT = (
    asks("call-1", "write_file", '{"path": "hello.txt", "content": "hello\\n"}'),
    says("hello.txt is there."),
)
LOOK_FIRST = (
    asks("call-2", "read_file", '{"path": "hello.txt"}'),
    says("hello.txt was there already; I did not write it again."),
)


async def run(home: Path, *, crash: bool) -> None:
    """One run of the agent on the session in `home`: the task anew, or what a crash left of it."""
    clock = SystemClock()
    store = SessionStore.open(home / "session.jsonl", clock=clock)
    found = store.report
    tell(f"session: {len(found.kept)} entries kept, {len(found.torn_tail)} torn bytes moved aside")

    registry = ToolRegistry(core_tools(Workspace(home / "files")))
    policy = PermissionPolicy({"read": "allow", "write": "allow"})
    executor = gate(create_executor(registry), registry, policy)

    def view() -> Projection:
        return build_context(
            store.path(),
            max_tokens=8_000,
            reserved_output=1_000,
            system_prompt=PROMPT,
            tools=registry.specs(),
        )

    def record(event: RunEvent) -> None:
        if event.kind == "message_end":
            if crash and event.data["role"] == "tool_result":
                die_while_writing(home / "session.jsonl", event.data["message"])
            store.append("message", event.data["message"])
            show(event.data["message"])

    messages = view().messages
    if messages and messages[-1].role != "assistant":
        tell("resuming: the last call has no recorded result, and the model is told so")
        script = LOOK_FIRST
    else:
        store.append("message", to_json(user(TASK, at=clock.now_ms())))
        show(store.path()[-1].payload)
        script = WRITE_IT

    shown = view()
    result = await run_agent(
        ScriptedModel(script),
        shown.messages,
        executor,
        system_prompt=shown.system_prompt,
        tools=registry.specs(),
        limits=RunLimits(max_turns=8, max_calls=8),
        clock=clock,
        emit=record,
    )
    store.close()
    tell(f"end: {result.stop}; {len(store.path())} entries in {home / 'session.jsonl'}")


def die_while_writing(path: Path, message: object) -> None:
    """End this process at once, half way through a line, as a power cut would."""
    with path.open("ab") as file:
        file.write(encode_record(message)[:40])
    tell("killed: the tool has run, its result is half written")
    os._exit(1)


def show(payload: object) -> None:
    """Print one message as one line."""
    message = from_json(payload)
    calls = [f"calls {call.name} {dict(call.arguments)}" for call in calls_of(message)]
    tell(f"{message.role}: {' '.join([text_of(message).strip(), *calls]).strip()}")


def tell(line: str) -> None:
    """Print a line, and see that it is out before anything else happens."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, default=Path("agent-home"), help="its folder")
    parser.add_argument("--crash-after-tool", action="store_true", help="die before the result")
    options = parser.parse_args()
    (options.home / "files").mkdir(parents=True, exist_ok=True)
    asyncio.run(run(options.home, crash=options.crash_after_tool))
