"""Hostile workers: the right code, the host alive and on time, nothing left behind."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import TOOL, Bench

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="workers need POSIX")

HEAD = TOOL.partition("def execute")[0]
Spawn = Callable[..., Awaitable[Any]]


@pytest.fixture(params=["plain", "bubblewrap"])
def launch(pi: Any, request: pytest.FixtureRequest) -> Any:
    """Each isolation that this machine has."""
    if request.param == "bubblewrap" and pi.plugin_sandbox.strongest() is pi.plugin_sandbox.plain:
        pytest.skip("bubblewrap does not work here")
    return getattr(pi.plugin_sandbox, request.param)


@pytest.fixture
def bubblewrap(pi: Any) -> Any:
    """The stronger isolation, or no test."""
    if pi.plugin_sandbox.strongest() is pi.plugin_sandbox.plain:
        pytest.skip("bubblewrap does not work here")
    return pi.plugin_sandbox.bubblewrap


@pytest.fixture
def spawn(pi: Any, bench: Bench, admit: Any) -> Spawn:
    """Start demo as it stands on the bench, with everything granted that it declares."""

    async def spawned(launch: Any = None, workspace: Path | None = None, **limits: Any) -> Any:
        plugin = admit()
        grant = pi.plugin_loader.Grant(
            plugin.content.digest, frozenset(plugin.manifest.permissions)
        )
        return await pi.plugin_worker.spawn_worker(
            plugin,
            grant,
            workspace=workspace,
            limits=pi.plugin_worker.WorkerLimits(**limits),
            launch=launch or pi.plugin_sandbox.plain,
        )

    return spawned


def tool(body: str, head: str = HEAD) -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"{head}\n\nimport os, sys, time\n\n\ndef execute(arguments, context):\n{lines}\n"


def code_of(pi: Any, work: Awaitable[Any]) -> str:
    """The code that the work ends with; it must end soon."""

    async def bounded() -> Any:
        return await asyncio.wait_for(work, 8)

    before = time.monotonic()
    with pytest.raises(pi.errors.CourseError) as caught:
        asyncio.run(bounded())
    assert time.monotonic() - before < 6
    return str(caught.value.code)


async def once(spawn: Spawn, *rest: Any, **limits: Any) -> Any:
    """One call of `inspect`; the worker is disposed whatever happens."""
    worker = await spawn(*rest, **limits)
    try:
        return await worker.call("inspect", {"word": "w"})
    finally:
        await worker.dispose()
        assert not worker.process.scratch.exists()


def is_free(lock: Path) -> bool:
    """Whether nobody holds the lock any more, asked for a fifth of a second."""
    with lock.open() as file:
        for _ in range(20):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                time.sleep(0.01)
    return False


WRITE_EVERYWHERE = """
import os
for fd in range(1, 64):
    try:
        os.write(fd, {data!r})
    except OSError:
        pass
"""


def ready(**changes: Any) -> bytes:
    tools = [
        {"name": "inspect", "description": "d", "permissions": ["read"],
         "inputSchema": {"type": "object"}}
    ]  # fmt: skip
    message = {"type": "ready", "protocol": 1, "digest": "sha256:0", "tools": tools}
    return json.dumps(message | changes).encode() + b"\n"


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"junk\n", "WORKER_FAILED"),
        (b"\xff\xfe\n", "WORKER_FAILED"),
        (b"\n", "WORKER_FAILED"),
        (b"[" * 5_000 + b"\n", "WORKER_FAILED"),
        (b'{"type": "ready", "type": "ready"}\n', "WORKER_FAILED"),
        (b"x" * 70_000, "OUTPUT_LIMIT"),
        (ready(), "MODULE_INVALID"),
        (ready(tools=[]), "MODULE_INVALID"),
        (b"{}\n", "MODULE_INVALID"),
    ],
    ids=lambda value: ascii(value[:20]),
)
def test_a_module_that_writes_into_the_channel_is_ended(
    pi: Any, bench: Bench, spawn: Spawn, said: bytes, code: str
) -> None:
    """A plugin can find the channel; what it says there is judged like any other stranger's."""
    bench.write(WRITE_EVERYWHERE.format(data=said) + TOOL)
    assert code_of(pi, spawn()) == code


def test_a_module_may_say_the_right_words_itself(pi: Any, bench: Bench, spawn: Spawn) -> None:
    """An answer given before it was asked for is an answer to something else."""
    early = b'{"type": "result", "id": "call-2", "ok": true, "value": "forged"}\n'
    bench.write(tool(WRITE_EVERYWHERE.format(data=early) + "return 'late'"))
    assert code_of(pi, once(spawn)) == "WORKER_FAILED"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("time.sleep(9)", "WORKER_TIMEOUT"),
        ("while True: pass", "WORKER_TIMEOUT"),
        ("import signal; os.kill(os.getpid(), signal.SIGSTOP)", "WORKER_TIMEOUT"),
        ("import signal; signal.pthread_sigmask(0, range(1, 60)); time.sleep(9)", "WORKER_TIMEOUT"),
        ("os._exit(0)", "WORKER_FAILED"),
        ("os.kill(os.getpid(), 9)", "WORKER_FAILED"),
        ("return 'x' * 70_000", "OUTPUT_LIMIT"),
        ("return 7", "WORKER_FAILED"),
        ("return {'content': 'x'}", "WORKER_FAILED"),
        ("return '\\ud800'", "WORKER_FAILED"),
    ],
)
def test_a_call_that_goes_wrong_has_a_code(
    pi: Any, bench: Bench, spawn: Spawn, launch: Any, body: str, code: str
) -> None:
    """Hanging, spinning, stopped, gone, too long, not a value: an error in time each."""
    bench.write(tool(body))
    patience = 0.15 if code == "WORKER_TIMEOUT" else 5.0
    assert code_of(pi, once(spawn, launch, call_s=patience)) == code


def test_a_worker_that_hangs_up_is_ended(
    pi: Any, bench: Bench, spawn: Spawn, launch: Any
) -> None:
    """It closed its side of the talk: noticed at once, or, behind bubblewrap, at the deadline."""
    bench.write(tool("os.closerange(0, 64); time.sleep(9)"))
    expected = "WORKER_FAILED" if launch is pi.plugin_sandbox.plain else "WORKER_TIMEOUT"
    assert code_of(pi, once(spawn, launch, call_s=0.3)) == expected


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError('/secret')",
        "raise SystemExit('/secret')",
        "raise KeyboardInterrupt",
        "return lambda: 1",
        "return float('nan')",
        "loop = []; loop.append(loop); return loop",
        "bytearray(2**30)",
        "open('big', 'wb').write(bytes(2**21))",
        "[open('/dev/null') for _ in range(100)]",
        "return execute(arguments, context)",
    ],
)
def test_a_tool_that_fails_is_a_result(pi: Any, bench: Bench, spawn: Spawn, body: str) -> None:
    """An exception, no JSON, or a limit of the system: an error output, and the worker goes on."""
    bench.write(tool(f"if arguments['word'] == 'fine': return 'fine'\n{body}"))

    async def run() -> Any:
        worker = await spawn()
        try:
            bad = await worker.call("inspect", {"word": "w"})
            return bad, await worker.call("inspect", {"word": "fine"})
        finally:
            await worker.dispose()

    bad, fine = asyncio.run(run())
    assert (bad.is_error, bad.details) == (True, {"code": "PLUGIN_FAILED"})
    assert "secret" not in str(bad)
    assert fine.content == "fine"


def test_what_a_plugin_prints_stays_out_of_the_channel(
    pi: Any, bench: Bench, spawn: Spawn
) -> None:
    """Ten megabytes on stdout and stderr: the answer is right, four kilobytes are kept."""
    flood = "for _ in range(100): print('x' * 50_000); os.write(2, b'y' * 50_000)"
    bench.write(tool(f"{flood}\nreturn 'ok'"))

    async def run() -> Any:
        worker = await spawn()
        try:
            return await worker.call("inspect", {}), worker
        finally:
            await worker.dispose()

    output, worker = asyncio.run(run())
    assert output.content == "ok"
    assert len(worker.process.stderr) == 4_096


def test_a_death_leaves_its_last_words_and_its_code(bench: Bench, spawn: Spawn, pi: Any) -> None:
    """A trace can say why the worker ended; the model is not told."""
    bench.write(tool("sys.stderr.write('last words'); sys.stderr.flush(); os._exit(3)"))

    async def run() -> Any:
        worker = await spawn()
        with pytest.raises(pi.errors.CourseError) as caught:
            await worker.call("inspect", {})
        return caught.value, worker.process

    error, process = asyncio.run(run())
    assert "words" not in str(error)
    assert (process.exit_code, process.stderr) == (3, b"last words")


FORK = """
import fcntl
held = os.open(os.path.join(context.workspace, 'held'), os.O_RDONLY)
fcntl.flock(held, fcntl.LOCK_EX)
if os.fork() == 0:
    {escape}
    time.sleep(3)
    os._exit(0)
{then}
"""


@pytest.mark.parametrize("then", ["return 'forked'", "time.sleep(9)", "os._exit(0)"])
def test_children_end_with_the_worker(
    pi: Any, bench: Bench, spawn: Spawn, launch: Any, then: str
) -> None:
    """Disposed, ended for being late, or dead by itself: its process group goes with it."""
    both = ("execute", "read")
    head = HEAD.replace('["read"]', '["execute", "read"]')
    bench.write(tool(FORK.format(escape="pass", then=then), head), both)
    held = bench.root / "held"
    held.touch()

    async def run() -> None:
        patience = 5.0 if "return" in then else 0.15
        try:
            await once(spawn, launch, bench.root, call_s=patience)
        except pi.errors.CourseError:
            assert "forked" not in then

    asyncio.run(run())
    assert is_free(held)


def test_a_child_that_leaves_the_group_ends_under_bubblewrap(
    pi: Any, bench: Bench, spawn: Spawn, bubblewrap: Any
) -> None:
    """Only the process namespace reaches it; and the host does not wait for it either way."""
    head = HEAD.replace('["read"]', '["execute", "read"]')
    fork = FORK.format(escape="os.setsid()", then="return 'forked'")
    bench.write(tool(fork, head), ("execute", "read"))
    held = bench.root / "held"
    held.touch()
    before = time.monotonic()
    asyncio.run(once(spawn, bubblewrap, bench.root))
    assert is_free(held)
    asyncio.run(once(spawn, pi.plugin_sandbox.plain, bench.root))
    assert time.monotonic() - before < 2.5


@pytest.mark.skipif(os.geteuid() == 0, reason="root has no limit on processes")
def test_without_execute_a_plugin_cannot_fork(pi: Any, bench: Bench, spawn: Spawn) -> None:
    """For an ordinary user the system itself holds this permission back."""
    bench.write(tool("os.fork()\nreturn 'forked'"))
    output = asyncio.run(once(spawn))
    assert output.details == {"code": "PLUGIN_FAILED"}


def test_bubblewrap_holds_back_files_and_network(
    pi: Any, bench: Bench, spawn: Spawn, bubblewrap: Any
) -> None:
    """A plugin that may read sees the workspace and nothing else, and reaches nobody."""
    (bench.root / "workspace").mkdir()
    (bench.root / "workspace" / "seen.txt").write_text("seen")
    (bench.root / "secret.txt").write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        probes = f"""
import socket
def can(work):
    try:
        work()
        return True
    except OSError:
        return False
place = context.workspace
return {{"content": "probed", "details": {{
    "read": can(lambda: open(place + "/seen.txt").close()),
    "write": can(lambda: open(place + "/new.txt", "w").close()),
    "delete": can(lambda: os.unlink(place + "/seen.txt")),
    "scratch": can(lambda: open("x", "w").close()),
    "beside": can(lambda: open({str(bench.root / "secret.txt")!r}).close()),
    "plugin": can(lambda: open({str(bench.demo / "tool.py")!r}).close()),
    "passwd": can(lambda: open("/etc/passwd").close()),
    "network": can(lambda: socket.create_connection(("127.0.0.1", {port}), 1).close()),
    "processes": len([name for name in os.listdir("/proc") if name.isdigit()]) > 3,
}}}}
"""
        bench.write(tool(probes))
        output = asyncio.run(once(spawn, bubblewrap, bench.root / "workspace"))
    allowed = {name for name, worked in output.details.items() if worked}
    assert allowed == {"read", "scratch"}


def test_write_opens_the_workspace_under_bubblewrap(
    pi: Any, bench: Bench, spawn: Spawn, bubblewrap: Any
) -> None:
    """What was declared and granted is possible."""
    (bench.root / "workspace").mkdir()
    head = HEAD.replace('["read"]', '["write"]')
    body = "open(context.workspace + '/new.txt', 'w').write('new')\nreturn 'written'"
    bench.write(tool(body, head), ("write",))
    assert asyncio.run(once(spawn, bubblewrap, bench.root / "workspace")).content == "written"
    assert (bench.root / "workspace" / "new.txt").read_text() == "new"


@pytest.mark.parametrize("script", [None, "exit 1", "sleep 9"])
def test_without_a_working_bubblewrap_workers_are_plain(
    pi: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None
) -> None:
    """Missing, forbidden or stuck: it is tried once, and what is left is said by its name."""
    if script is not None:
        program = tmp_path / "bwrap"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(pi.plugin_sandbox, "PROBE_S", 0.2)
    assert pi.plugin_sandbox.strongest() is pi.plugin_sandbox.plain


def test_a_worker_that_cannot_be_started_leaves_nothing(
    pi: Any, spawn: Spawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No such program: an error, and the scratch folder is gone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    assert code_of(pi, spawn(lambda argv, **rest: [str(tmp_path / "missing")])) == "WORKER_FAILED"
    assert not list((tmp_path / "scratch").iterdir())


def test_only_modules_of_the_digest_exist(
    pi: Any, bench: Bench, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sibling beside the plugin, on PYTHONPATH, or installed is not found."""
    (bench.plugins / "payload.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(bench.plugins))
    for line in ("import payload", "from . import payload", "import pytest", "import pi_course"):
        bench.write(f"{line}\n{TOOL}")
        assert code_of(pi, spawn()) == "MODULE_INVALID", line


def test_packages_and_siblings_of_the_digest_are_found(bench: Bench, spawn: Spawn) -> None:
    """Entries in folders, with and without __init__.py, import each other relatively."""
    (bench.demo / "deep" / "more").mkdir(parents=True)
    (bench.demo / "deep" / "__init__.py").write_text("WORD = 'deep '\n")
    (bench.demo / "deep" / "more" / "tool.py").write_text(
        "from .. import WORD\nfrom ...words import OTHER\n"
        + TOOL.replace('"seen "', "__name__ + ' ' + WORD + OTHER")
    )
    (bench.demo / "words.py").write_text("OTHER = 'words '\n")
    entry = {"name": "inspect", "entry": "deep/more/tool.py", "permissions": ["read"]}
    bench.write(tools=[entry])
    assert asyncio.run(once(spawn)).content == "plugin.deep.more.tool deep words w"


def test_a_coding_line_changes_nothing(bench: Bench, spawn: Spawn) -> None:
    """What is compiled is the text that a reviewer reads, whatever its second line says."""
    hidden = TOOL.replace('"seen "', '"+AGU-vil "')
    (bench.demo / "tool.py").write_text(f"#\n# -*- coding: utf-7 -*-\n{hidden}")
    assert asyncio.run(once(spawn)).content == "+AGU-vil w"


def test_calls_made_together_get_their_own_answers(bench: Bench, spawn: Spawn) -> None:
    """Twenty at once: one after another in the worker, each with its own word."""

    async def run() -> list[Any]:
        worker = await spawn()
        try:
            words = [str(number) for number in range(20)]
            return await asyncio.gather(*(worker.call("inspect", {"word": w}) for w in words))
        finally:
            await worker.dispose()

    assert [output.content for output in asyncio.run(run())] == [f"seen {n}" for n in range(20)]


def test_nothing_leaks_over_many_workers(pi: Any, bench: Bench, spawn: Spawn) -> None:
    """Descriptors, children and scratch folders are as many afterwards as before."""
    bench.write(tool("os._exit(1)"))

    def count() -> int:
        return len(list(Path("/dev/fd").iterdir()))

    async def run() -> None:
        for _ in range(8):
            with pytest.raises(pi.errors.CourseError):
                await once(spawn)

    asyncio.run(run())
    before = count()
    asyncio.run(run())
    assert count() == before


def test_dispose_lets_the_plugin_tidy_up_but_not_stay(bench: Bench, spawn: Spawn) -> None:
    """dispose of a module runs; one that never returns is ended after its time."""
    bench.write(f"{TOOL}\n\ndef dispose():\n    open({str(bench.root / 'tidy')!r}, 'w').close()\n")
    asyncio.run(once(spawn))
    assert (bench.root / "tidy").exists()
    bench.write(f"{TOOL}\nimport time\n\n\ndef dispose():\n    time.sleep(9)\n")
    before = time.monotonic()
    asyncio.run(once(spawn, dispose_s=0.1))
    assert time.monotonic() - before < 3


def test_a_restarted_plugin_must_define_the_same(pi: Any, bench: Bench, spawn: Spawn) -> None:
    """A module that defines something else the second time is not handed to the registry."""
    changing = f"import os\nsecond = os.path.exists({str(bench.root / 'second')!r})\n"
    text = tool("os._exit(1)").replace('"Look at something."', '"two" if second else "one"')
    bench.write(changing + text)
    clock = pi.bench.FakeClock()

    async def run() -> list[str]:
        supervisor = pi.plugin_supervisor.PluginSupervisor(
            "sha256:0", spawn, pi.plugin_supervisor.Quarantine(clock)
        )
        context = pi.tools.ExecContext(clock, pi.signals.AbortSignal())
        codes = []
        for _ in range(3):
            output = await supervisor.call("inspect", {}, context)
            codes.append(output.details["code"])
            (bench.root / "second").touch()
            clock.advance(60_000)
        await supervisor.close()
        return codes

    assert asyncio.run(run()) == ["WORKER_FAILED", "MODULE_INVALID", "MODULE_INVALID"]


def test_a_timeout_of_the_executor_ends_the_worker(pi: Any, bench: Bench, spawn: Spawn) -> None:
    """The executor of chapter 06 only stops waiting; its cancellation is what ends the code."""
    bench.write(tool("time.sleep(9)"))

    async def run() -> Any:
        worker = await spawn()
        clock = pi.bench.FakeClock()

        async def start() -> Any:
            return worker

        supervisor = pi.plugin_supervisor.PluginSupervisor(
            "sha256:0", start, pi.plugin_supervisor.Quarantine(clock)
        )
        registry = pi.tools.ToolRegistry(await supervisor.tools())
        execute = pi.tools.create_executor(registry, timeout=0.1)
        context = pi.tools.ExecContext(clock, pi.signals.AbortSignal())
        result = await execute(pi.messages.ToolCall("c", "inspect", {}), context)
        await asyncio.sleep(0.15)
        ended = worker.process.ended
        await supervisor.close()
        return result.details["code"], ended

    assert asyncio.run(run()) == ("TOOL_TIMEOUT", True)
