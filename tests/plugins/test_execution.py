"""The proof that verification runs nothing: a sentinel, a child process, every error code."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from .conftest import TOOL, Bench, in_child

CHILD = """
import asyncio, dataclasses, json, sys
from pathlib import Path
from pi_course.errors import CourseError
from pi_course.plugin_loader import Grant, admit_plugin
from pi_course.plugin_lock import LockEntry, parse_lock
from pi_course.plugin_sandbox import plain
from pi_course.plugin_signature import TrustedKey, TrustPolicy, public_key_of
from pi_course.plugin_worker import spawn_worker

plugins, terms = Path(sys.argv[1]), json.loads(sys.argv[2])
key = TrustedKey("team", public_key_of(bytes(32)), frozenset({"demo"}), terms.get("not_after"))
policy = TrustPolicy(
    keys={"team-1": key},
    revoked=frozenset(terms.get("revoked", [])),
    unsigned_local=frozenset(terms.get("unsigned_local", ["demo"])),
)

async def main():
    lock = parse_lock(json.dumps(terms["lock"]).encode()) if "lock" in terms else None
    plugin = admit_plugin(
        plugins, terms.get("name", "demo"), runtime_api=terms.get("host", "1.4.0"), policy=policy,
        lock=lock, now_ms=10,
    )
    if "grant" in terms:
        grant = Grant(plugin.content.digest, frozenset(terms["grant"]))
        worker = await spawn_worker(plugin, grant, launch=plain)
        await worker.dispose()

import os
try:
    asyncio.run(main())
    code = "ADMITTED"
except CourseError as error:
    code = error.code
print(json.dumps({"code": code, "pid": os.getpid()}))
"""


def run(src: Path, bench: Bench, **terms: Any) -> tuple[str, int]:
    """The code in the child, and the child's process id."""
    said = in_child(src, CHILD, bench.plugins, json.dumps(terms))
    return said["code"], said["pid"]


REFUSED_BY_MANIFEST: dict[str, dict[str, Any]] = {
    "INVALID_NAME": {"name": "other"},
    "INVALID_SCHEMA": {"version": "latest"},
    "UNSUPPORTED_SCHEMA_VERSION": {"schemaVersion": 2},
    "INCOMPATIBLE_VERSION": {"runtimeApiRange": {"minimum": "2.0.0", "below": "3.0.0"}},
    "DUPLICATE_TOOL": {
        "tools": [{"name": "inspect", "entry": "tool.py", "permissions": ["read"]}] * 2
    },
    "PERMISSION_ESCALATION": {
        "tools": [{"name": "inspect", "entry": "tool.py", "permissions": ["write"]}]
    },
    "ENTRY_ESCAPE": {
        "tools": [{"name": "inspect", "entry": "../outside.py", "permissions": ["read"]}]
    },
    "DIGEST_MISMATCH": {
        "tools": [
            {"name": "inspect", "entry": "tool.py", "permissions": ["read"], "sha256": "0" * 64}
        ]
    },
}


@pytest.mark.parametrize("code", REFUSED_BY_MANIFEST)
def test_no_code_runs_when_the_manifest_is_refused(src: Path, bench: Bench, code: str) -> None:
    """Whatever is wrong with the manifest, no module of the plugin, in or out, has run."""
    bench.write(**REFUSED_BY_MANIFEST[code])
    shutil.copy(bench.demo / "tool.py", bench.plugins / "outside.py")
    assert run(src, bench)[0] == code
    assert not bench.ran.exists()


LOCKED = {"version": "1.2.3", "digest": "sha256:0", "runtimeApi": "1.4.0"}
REFUSED_BY_THE_HOST: dict[str, dict[str, Any]] = {
    "MANIFEST_NOT_FOUND": {"name": "missing"},
    "INVALID_NAME": {"name": "../plugins/demo"},
    "INCOMPATIBLE_VERSION": {"host": "2.0.0-rc.1"},
    "SIGNATURE_INVALID": {"unsigned_local": []},
    "NOT_LOCKED": {"lock": {}},
    "INVALID_LOCK": {"lock": {"demo": {}}},
    "DIGEST_MISMATCH": {"lock": {"demo": LOCKED}},
    "ROLLBACK": {"lock": {"demo": LOCKED | {"version": "1.2.4"}}},
    "NOT_GRANTED": {"grant": ["network"]},
}


@pytest.mark.parametrize("code", REFUSED_BY_THE_HOST)
def test_no_code_runs_when_the_host_refuses(src: Path, bench: Bench, code: str) -> None:
    """Whatever the host's terms refuse, no module of the plugin has run."""
    assert run(src, bench, **REFUSED_BY_THE_HOST[code])[0] == code
    assert not bench.ran.exists()


@pytest.mark.parametrize("code", ["CONTENT_INVALID", "KEY_EXPIRED", "REVOKED", "SIGNATURE_INVALID"])
def test_no_code_runs_when_content_or_signature_is_refused(
    src: Path, bench: Bench, pi: Any, admit: Any, code: str
) -> None:
    """A right signature that counts no more, a wrong one, and a file that must not be there."""
    digest = admit().content.digest
    manifest = pi.plugin_folder.load_plugin(bench.plugins, "demo").manifest_sha256
    statement = pi.plugin_signature.Statement("demo", "1.2.3", manifest, digest)
    signed = pi.plugin_signature.sign(statement, "team-1", bytes(32))
    (bench.demo / "plugin.sig").write_bytes(signed)
    terms: dict[str, Any] = {"unsigned_local": []}
    assert run(src, bench, **terms)[0] == "ADMITTED"
    if code == "CONTENT_INVALID":
        (bench.demo / "__pycache__").mkdir()
    elif code == "KEY_EXPIRED":
        terms["not_after"] = 9
    elif code == "REVOKED":
        terms["revoked"] = [digest]
    else:
        (bench.demo / "extra.py").write_text("")
        terms["unsigned_local"] = ["demo"]
    assert run(src, bench, **terms)[0] == code
    assert not bench.ran.exists()


ACCEPTANCE = """
import asyncio, json, sys
from pathlib import Path
from pi_course.bench import FakeClock
from pi_course.errors import CourseError
from pi_course.messages import ToolCall, text_of
from pi_course.plugin_folder import load_plugin
from pi_course.plugin_loader import Grant, admit_plugin
from pi_course.plugin_sandbox import plain
from pi_course.plugin_signature import TrustPolicy
from pi_course.plugin_supervisor import PluginSupervisor, Quarantine
from pi_course.plugin_worker import spawn_worker
from pi_course.signals import AbortSignal
from pi_course.tools import ExecContext, ToolRegistry, create_executor

plugins, ran = Path(sys.argv[1]), Path(sys.argv[2])
manifest = plugins / "demo" / "plugin.json"
legal = json.loads(manifest.read_bytes())
tool = legal["tools"][0]
said = {}
for name, change in {
    "version": {"version": "latest"},
    "twice": {"tools": [tool, tool]},
    "write": {"tools": [tool | {"permissions": ["write"]}]},
    "parent": {"tools": [tool | {"entry": "../outside.py"}]},
}.items():
    manifest.write_text(json.dumps(legal | change))
    try:
        load_plugin(plugins, "demo")
    except CourseError as error:
        said[name] = [error.code, ran.exists()]
manifest.write_text(json.dumps(legal))
loaded = load_plugin(plugins, "demo").manifest
said["legal"] = [f"{loaded.name}@{loaded.version}", loaded.tools[0].name, ran.exists()]

async def call():
    policy = TrustPolicy(unsigned_local=frozenset({"demo"}))
    plugin = admit_plugin(
        plugins, "demo", runtime_api="1.4.0", policy=policy, lock=None, now_ms=0
    )
    grant = Grant(plugin.content.digest, frozenset({"read"}))
    supervisor = PluginSupervisor(
        grant.digest, lambda: spawn_worker(plugin, grant, launch=plain), Quarantine(FakeClock())
    )
    execute = create_executor(ToolRegistry(await supervisor.tools()), timeout=5)
    context = ExecContext(FakeClock(), AbortSignal())
    result = await execute(ToolCall("call-1", "inspect", {"word": "it"}), context)
    await supervisor.close()
    return [result.call_id, result.is_error, text_of(result)]

said["call"] = asyncio.run(call())
print(json.dumps(said))
"""


def test_the_acceptance_list_of_the_unit(src: Path, bench: Bench) -> None:
    """Four manifests are refused before the sentinel; the legal one loads and answers one call."""
    shutil.copy(bench.demo / "tool.py", bench.plugins / "outside.py")
    assert in_child(src, ACCEPTANCE, bench.plugins, bench.ran) == {
        "version": ["INVALID_SCHEMA", False],
        "twice": ["DUPLICATE_TOOL", False],
        "write": ["PERMISSION_ESCALATION", False],
        "parent": ["ENTRY_ESCAPE", False],
        "legal": ["demo@1.2.3", "inspect", False],
        "call": ["call-1", False, "seen it"],
    }
    assert len(bench.ran.read_text().split()) == 1


@pytest.mark.parametrize(
    ("code", "tool"),
    [
        ("ADMITTED", TOOL),
        ("MODULE_INVALID", TOOL.replace('"inspect"', '"other"')),
        ("WORKER_FAILED", TOOL + "os._exit(0)\n"),
    ],
)
def test_code_runs_in_the_worker_only(src: Path, bench: Bench, code: str, tool: str) -> None:
    """The control: the sentinel does fire, once, and in a process that is not the host's."""
    bench.write(tool)
    seen, host = run(src, bench, grant=["read"])
    assert seen == code
    (worker,) = bench.ran.read_text().split()
    assert int(worker) not in (host, os.getpid())
