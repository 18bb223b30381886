"""Lab 32.5: every proof first, then one process of its own that is believed in nothing."""

import asyncio
import dataclasses
import fcntl
import json
import sys
import time

import pi_course.plugin_loader as plugin_loader
import pi_course.plugin_protocol as plugin_protocol
import pi_course.plugin_sandbox as plugin_sandbox
import pi_course.plugin_supervisor as plugin_supervisor
import pi_course.plugin_worker as plugin_worker
import pytest
from pi_course.bench import FakeClock
from pi_course.errors import CourseError
from pi_course.messages import ToolCall, text_of
from pi_course.plugin_manifest import ToolDeclaration
from pi_course.plugin_signature import TrustPolicy
from pi_course.signals import AbortSignal
from pi_course.tools import ExecContext, ToolRegistry, create_executor
from pi_course.values import deep_freeze

TOOL = '''
import os, sys, time
from . import words

definition = {
    "name": "inspect",
    "description": "Say something about a word.",
    "permissions": ["execute", "read"],
    "inputSchema": {
        "type": "object",
        "properties": {"word": {"type": "string", "maxLength": 20}},
        "required": ["word"],
    },
}


def execute(arguments, context):
    word = arguments["word"]
    print("noise on stdout")
    if word == "hang":
        time.sleep(3)
    elif word == "flood":
        return "x" * 100_000
    elif word == "exit":
        os._exit(3)
    elif word == "raise":
        raise ValueError("/secret/path")
    elif word == "environment":
        return {"content": "environment", "details": dict(os.environ)}
    elif word == "fork":
        held = os.open(os.path.join(context.workspace, "held"), os.O_RDONLY)
        import fcntl
        fcntl.flock(held, fcntl.LOCK_EX)
        if os.fork() == 0:
            time.sleep(2)
            os._exit(0)
    return words.PRAISE + word
'''


def _write(root, tool=TOOL, **changes):
    """The plugin `demo` in root/plugins; its modules leave the file `ran` when they are run."""
    folder = root / "plugins" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tool.py").write_text(f"open({str(root / 'ran')!r}, 'w').close()\n{tool}")
    (folder / "words.py").write_text("PRAISE = 'verified '\n")
    permissions = ["read", "execute"]
    manifest = {
        "schemaVersion": 1,
        "name": "demo",
        "version": "1.2.3",
        "runtimeApiRange": {"minimum": "1.0.0", "below": "2.0.0"},
        "permissions": permissions,
        "tools": [{"name": "inspect", "entry": "tool.py", "permissions": permissions}],
    }
    (folder / "plugin.json").write_text(json.dumps(manifest | changes))


def _admit(root, **changes):
    policy = TrustPolicy(unsigned_local=frozenset({"demo"}))
    terms = {"runtime_api": "1.4.0", "policy": policy, "lock": None, "now_ms": 0, **changes}
    return plugin_loader.admit_plugin(root / "plugins", "demo", **terms)


async def _spawn(plugin, workspace=None, launch=plugin_sandbox.plain, grant=None, **limits):
    both = plugin_loader.Grant(plugin.content.digest, frozenset({"read", "execute"}))
    limits = plugin_worker.WorkerLimits(**limits)
    return await plugin_worker.spawn_worker(
        plugin, grant or both, workspace=workspace, limits=limits, launch=launch
    )


def _refusal(plugin, **terms):
    """The code with which no worker is started; one that starts after all is disposed."""

    async def _try():
        worker = await _spawn(plugin, **terms)
        await worker.dispose()

    try:
        asyncio.run(_try())
    except CourseError as error:
        return error.code
    return "STARTED"


def _context():
    return ExecContext(FakeClock(), AbortSignal())


def _is_free(lock):
    """Whether nobody holds the lock any more, asked for a fifth of a second."""
    with lock.open() as file:
        for _ in range(20):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                time.sleep(0.01)
    return False


def test_nothing_runs_before_every_proof(tmp_path):
    """Host, content, publisher and lock are all checked, and no refusal lets a line of code run."""
    _write(tmp_path)
    plugin = _admit(tmp_path)
    assert plugin.trust.kind == "unsigned-local"
    lock = {"demo": plugin.lock_entry}
    assert _admit(tmp_path, lock=lock) == plugin
    changed = {"demo": dataclasses.replace(plugin.lock_entry, digest="sha256:0")}
    newer = {"demo": dataclasses.replace(plugin.lock_entry, version="1.3.0")}
    refusals = {
        "INCOMPATIBLE_VERSION": {"runtime_api": "2.0.0-rc.1"},
        "SIGNATURE_INVALID": {"policy": TrustPolicy()},
        "NOT_LOCKED": {"lock": {}},
        "DIGEST_MISMATCH": {"lock": changed},
        "ROLLBACK": {"lock": newer},
    }
    for code, terms in refusals.items():
        with pytest.raises(CourseError) as caught:
            _admit(tmp_path, **terms)
        assert caught.value.code == code
    for code, manifest in {
        "UNSUPPORTED_SCHEMA_VERSION": {"schemaVersion": 2, "sandbox": "required"},
        "PERMISSION_ESCALATION": {"permissions": ["read"]},
    }.items():
        _write(tmp_path, **manifest)
        with pytest.raises(CourseError) as caught:
            _admit(tmp_path)
        assert caught.value.code == code
    _write(tmp_path)
    (tmp_path / "plugins" / "demo" / "words.pyc").write_bytes(b"")
    with pytest.raises(CourseError) as caught:
        _admit(tmp_path)
    assert caught.value.code == "CONTENT_INVALID"
    assert not (tmp_path / "ran").exists()


def test_one_call_goes_through_the_registry_into_the_worker(tmp_path):
    """A verified tool answers a ToolCall as any other tool does; its failure shows no secret."""
    _write(tmp_path)
    plugin = _admit(tmp_path)
    digest = plugin.content.digest

    async def _run():
        quarantine = plugin_supervisor.Quarantine(FakeClock())
        supervisor = plugin_supervisor.PluginSupervisor(digest, lambda: _spawn(plugin), quarantine)
        try:
            registry = ToolRegistry(await supervisor.tools())
            executor = create_executor(registry)
            calls = [ToolCall(f"call-{w}", "inspect", {"word": w}) for w in ("ok", "raise", 7)]
            results = [await executor(call, _context()) for call in calls]
            return registry.specs(), results
        finally:
            await supervisor.close()

    specs, (good, failed, refused) = asyncio.run(_run())
    assert [(spec.name, spec.permission) for spec in specs] == [("inspect", "execute")]
    assert (good.is_error, text_of(good), good.call_id) == (False, "verified ok", "call-ok")
    assert (failed.is_error, failed.details["code"]) == (True, "PLUGIN_FAILED")
    assert "secret" not in text_of(failed)
    assert refused.details["code"] == "INVALID_ARGUMENTS"


def test_verified_bytes_are_the_bytes_that_run(tmp_path):
    """What is swapped in the folder after the proofs, entry or sibling, never runs."""
    _write(tmp_path)
    plugin = _admit(tmp_path)
    folder = tmp_path / "plugins" / "demo"
    (folder / "words.py").write_text("PRAISE = 'swapped '\n")
    (folder / "tool.py").write_text(TOOL.replace("words.PRAISE", "'swapped '"))

    async def _run():
        worker = await _spawn(plugin)
        try:
            return await worker.call("inspect", {"word": "bytes"})
        finally:
            await worker.dispose()

    assert asyncio.run(_run()).content == "verified bytes"


def test_definition_must_agree_with_the_manifest(tmp_path):
    """A module that defines another name, other permissions, or nothing is not started."""
    for change in (
        ('"name": "inspect"', '"name": "other"'),
        ('"permissions": ["execute", "read"]', '"permissions": ["read"]'),
        ('["execute", "read"]', '["execute", "network", "read"]'),
        ('"inputSchema": {', '"inputSchema": {"$ref": "https://example.org/x", '),
        ("definition =", "something ="),
    ):
        _write(tmp_path, tool=TOOL.replace(*change))
        plugin = _admit(tmp_path)
        assert _refusal(plugin) == "MODULE_INVALID", change


def test_handshake_is_compared_word_for_word():
    """Protocol, digest and the list of tools are as the host expects, and nothing else is there."""
    tool = ToolDeclaration("inspect", "tool.py", ("read", "execute"))
    defined = {"name": "inspect", "description": "d", "permissions": ["execute", "read"]}
    defined["inputSchema"] = {"type": "object"}
    ready = {"type": "ready", "protocol": 1, "digest": "sha256:aa", "tools": [defined]}

    def _check(message):
        return plugin_protocol.check_ready(deep_freeze(message), "sha256:aa", [tool])

    (spec,) = _check(ready)
    assert (spec.name, spec.permission, dict(spec.input_schema)) == (
        "inspect",
        "execute",
        {"type": "object"},
    )
    wrong = [ready | {"digest": "sha256:ab"}, ready | {"protocol": 2}, ready | {"protocol": True}]
    wrong += [ready | {"type": "result"}, ready | {"more": 1}, ready | {"tools": []}, None, []]
    wrong += [ready | {"tools": [defined, defined]}, ready | {"tools": {"inspect": defined}}]
    for change in ({"name": "other"}, {"permissions": ["read"]}, {"permissions": "read"}):
        wrong.append(ready | {"tools": [defined | change]})
    for change in ({"description": ""}, {"inputSchema": {"type": "array"}}, {"entry": "x.py"}):
        wrong.append(ready | {"tools": [defined | change]})
    for message in wrong:
        with pytest.raises(CourseError) as caught:
            _check(message)
        assert caught.value.code == "MODULE_INVALID", message


def test_answer_belongs_to_the_call_that_asked():
    """Only a result with the id of the call, and with a value of the agreed shape, is an answer."""
    right = {"type": "result", "id": "call-7", "ok": True, "value": "text"}

    def _read(message, request):
        return plugin_protocol.read_answer(deep_freeze(message), request)

    assert _read(right, "call-7").content == "text"
    output = _read(right | {"value": {"content": "text", "details": [1]}}, "call-7")
    assert (output.content, output.details, output.is_error) == ("text", (1,), False)
    failed = _read(right | {"ok": False, "value": "/home/someone: secret"}, "call-7")
    assert (failed.is_error, failed.details) == (True, {"code": "PLUGIN_FAILED"})
    assert "secret" not in failed.content
    wrong = [right | {"id": "call-6"}, right | {"id": 7}, right | {"type": "call"}, [], None]
    wrong += [right | {"ok": 1}, right | {"more": 1}, right | {"value": 7}, right | {"value": None}]
    wrong += [right | {"value": {"content": "text"}}, {"type": "result", "id": "call-7"}]
    for message in wrong:
        with pytest.raises(CourseError) as caught:
            _read(message, "call-7")
        assert caught.value.code == "WORKER_FAILED", message


def test_worker_that_breaks_the_protocol_is_ended(tmp_path):
    """Silence, junk, a lie and an early end are four failures, and no process is left of any."""
    _write(tmp_path)
    plugin = _admit(tmp_path)
    lie = {"type": "ready", "protocol": 1, "digest": "sha256:0", "tools": []}
    held = tmp_path / "held"
    held.touch()
    take = f"import fcntl, time; held = open({str(held)!r}); fcntl.flock(held, fcntl.LOCK_EX); "
    for script, code in {
        "time.sleep(2)": "WORKER_TIMEOUT",
        "print('x' * 100_000, flush=True); time.sleep(2)": "OUTPUT_LIMIT",
        "print('junk', flush=True); time.sleep(2)": "WORKER_FAILED",
        f"print({json.dumps(lie)!r}, flush=True); time.sleep(2)": "MODULE_INVALID",
        "raise SystemExit(0)": "WORKER_FAILED",
    }.items():

        def _launch(argv, _script=script, **rest):
            return [sys.executable, "-I", "-S", "-c", take + _script]

        patience = 0.15 if code == "WORKER_TIMEOUT" else 5.0
        assert _refusal(plugin, launch=_launch, handshake_s=patience) == code, script
        assert _is_free(held), script


def test_call_that_goes_wrong_ends_the_worker_and_its_children(tmp_path):
    """Too late, too much, or the end: an error each, the group is killed, the folder is gone."""
    _write(tmp_path)
    plugin = _admit(tmp_path)
    (tmp_path / "held").touch()

    async def _run(word):
        patience = 0.15 if word == "hang" else 5.0
        worker = await _spawn(plugin, tmp_path, call_s=patience)
        scratch = worker.process.scratch
        assert scratch.is_dir()
        try:
            if word != "dispose":
                with pytest.raises(CourseError) as caught:
                    await worker.call("inspect", {"word": word})
                with pytest.raises(CourseError):
                    await worker.call("inspect", {"word": "again"})
                return caught.value.code
            assert (await worker.call("inspect", {"word": "fork"})).content == "verified fork"
            await worker.dispose()
            return "disposed"
        finally:
            await worker.dispose()
            assert not scratch.exists(), "the scratch folder is left behind"

    assert asyncio.run(_run("hang")) == "WORKER_TIMEOUT"
    assert asyncio.run(_run("flood")) == "OUTPUT_LIMIT"
    assert asyncio.run(_run("exit")) == "WORKER_FAILED"
    assert asyncio.run(_run("dispose")) == "disposed"
    assert _is_free(tmp_path / "held"), "a child of the worker is still alive"


def test_abort_and_cancellation_end_the_worker_too(tmp_path):
    """Whoever stops waiting stops the code: an abort is an error at once, a cancellation passes."""
    _write(tmp_path)
    plugin = _admit(tmp_path)

    async def _run(stop):
        worker = await _spawn(plugin)
        signal = AbortSignal()
        task = asyncio.ensure_future(worker.call("inspect", {"word": "hang"}, signal=signal))
        await asyncio.sleep(0.02)
        started = time.monotonic()
        signal.abort() if stop == "abort" else task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        return outcome, worker.process.ended, time.monotonic() - started

    outcome, ended, waited = asyncio.run(_run("abort"))
    assert (outcome.code, ended) == ("ABORTED", True)
    assert waited < 2
    outcome, ended, waited = asyncio.run(_run("cancel"))
    assert isinstance(outcome, asyncio.CancelledError)
    assert ended and waited < 2


def test_worker_gets_what_was_granted_and_nothing_around_it(tmp_path, monkeypatch):
    """A grant is for one content and its permissions; secrets of the host are not in reach."""
    _write(tmp_path)
    plugin = _admit(tmp_path)
    digest, both = plugin.content.digest, frozenset({"read", "execute"})
    for grant in (
        plugin_loader.Grant("sha256:0", both),
        plugin_loader.Grant(digest, frozenset({"read"})),
        plugin_loader.Grant(digest, frozenset()),
    ):
        assert _refusal(plugin, grant=grant) == "NOT_GRANTED", grant
    assert not (tmp_path / "ran").exists()
    monkeypatch.setenv("API_TOKEN", "secret")

    async def _run():
        worker = await _spawn(plugin)
        try:
            return (await worker.call("inspect", {"word": "environment"})).details
        finally:
            await worker.dispose()

    assert not set(asyncio.run(_run())) & {"API_TOKEN", "HOME", "PATH", "PYTHONPATH"}


def test_failures_back_off_and_end_in_quarantine():
    """Each failure doubles the wait, three in a row close the content until a person opens it."""
    clock = FakeClock()
    policy = plugin_supervisor.CrashPolicy(failures=3, base_ms=100, cap_ms=150)
    quarantine = plugin_supervisor.Quarantine(clock, policy)

    def _state(digest="sha256:a"):
        try:
            return quarantine.check(digest)
        except CourseError as error:
            return error.code

    def _wait():
        start = clock.now_ms()
        while _state() == "WORKER_BACKOFF":
            clock.advance(10)
        return clock.now_ms() - start

    assert _state() is None
    quarantine.failed("sha256:a")
    assert (_state(), _state("sha256:b"), _wait()) == ("WORKER_BACKOFF", None, 100)
    quarantine.failed("sha256:a")
    assert _wait() == 150
    quarantine.succeeded("sha256:a")
    for _ in range(3):
        assert _state() is None
        quarantine.failed("sha256:a")
        _wait()
    clock.advance(1_000_000)
    quarantine.succeeded("sha256:a")
    assert (_state(), _state("sha256:b")) == ("QUARANTINED", None)
    quarantine.enable("sha256:a")
    assert _state() is None


def test_broken_plugin_costs_a_result_and_not_the_agent(tmp_path):
    """Calls of a worker that ends all get error results; it is started again only when it may."""
    _write(tmp_path)
    plugin = _admit(tmp_path)
    clock, starts = FakeClock(), []

    async def _start():
        starts.append(clock.now_ms())
        return await _spawn(plugin)

    async def _run():
        policy = plugin_supervisor.CrashPolicy(failures=2, base_ms=100)
        quarantine = plugin_supervisor.Quarantine(clock, policy)
        supervisor = plugin_supervisor.PluginSupervisor(plugin.content.digest, _start, quarantine)

        async def _calls(*words):
            calls = [supervisor.call("inspect", {"word": word}, _context()) for word in words]
            outputs = await asyncio.gather(*calls)
            return [(output.details or {}).get("code", output.content) for output in outputs]

        try:
            seen = [await _calls("ok"), await _calls("exit", "ok"), await _calls("ok")]
            clock.advance(100)
            seen += [await _calls("ok"), await _calls("exit")]
            clock.advance(100)
            seen += [await _calls("exit"), await _calls("ok")]
            return seen
        finally:
            await supervisor.close()

    assert asyncio.run(_run()) == [
        ["verified ok"],
        ["WORKER_FAILED", "WORKER_FAILED"],
        ["WORKER_BACKOFF"],
        ["verified ok"],
        ["WORKER_FAILED"],
        ["WORKER_FAILED"],
        ["QUARANTINED"],
    ]
    assert starts == [0, 100, 200]
