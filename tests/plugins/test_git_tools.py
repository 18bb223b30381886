"""A real plugin: signed, locked, admitted, started, and asked for the state of a repository."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parent / "git-tools"
KEY = bytes(range(32))

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def git(folder: Path, *words: str) -> None:
    environment = {
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"],
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
    }  # fmt: skip
    subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one changed and one new file, and a configuration that means harm."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "kept.txt").write_text("one\n")
    (folder / "changed.txt").write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "first")
    (folder / "changed.txt").write_text("two\n")
    (folder / "new.txt").write_text("new\n")
    git(folder, "config", "core.fsmonitor", f"touch {tmp_path / 'fsmonitor-ran'}; false")
    return folder


@pytest.fixture
def released(pi: Any, tmp_path: Path) -> Path:
    """A folder of plugins with git-tools in it: entry hash written, then signed."""
    folder = tmp_path / "plugins" / "git-tools"
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    manifest = json.loads((folder / "plugin.json").read_bytes())
    for tool in manifest["tools"]:
        tool["sha256"] = hashlib.sha256((folder / tool["entry"]).read_bytes()).hexdigest()
    data = json.dumps(manifest, indent=2).encode()
    (folder / "plugin.json").write_bytes(data)
    statement = pi.plugin_signature.Statement(
        name=manifest["name"],
        version=manifest["version"],
        manifest=hashlib.sha256(data).hexdigest(),
        tree=pi.plugin_content.read_content(folder).digest,
    )
    (folder / "plugin.sig").write_bytes(pi.plugin_signature.sign(statement, "team-1", KEY))
    return folder.parent


@pytest.fixture
def plugin(pi: Any, released: Path) -> Any:
    """git-tools as the policy of its owner admits it: installed, written into a lock, admitted."""
    signature = pi.plugin_signature
    key = signature.TrustedKey("team", signature.public_key_of(KEY), frozenset({"git-tools"}))
    terms = {
        "runtime_api": "1.4.0",
        "policy": signature.TrustPolicy(keys={"team-1": key}),
        "now_ms": 0,
    }
    installed = pi.plugin_loader.admit_plugin(released, "git-tools", lock=None, **terms)
    lock = pi.plugin_lock.format_lock({"git-tools": installed.lock_entry})
    return pi.plugin_loader.admit_plugin(
        released, "git-tools", lock=pi.plugin_lock.parse_lock(lock), **terms
    )


@pytest.fixture(params=["plain", "bubblewrap"])
def launch(pi: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Each isolation that this machine has."""
    if request.param == "bubblewrap" and pi.plugin_sandbox.strongest() is pi.plugin_sandbox.plain:
        pytest.skip("bubblewrap does not work here")
    yield getattr(pi.plugin_sandbox, request.param)


def test_git_status_runs_through_the_registry(
    pi: Any, plugin: Any, repository: Path, launch: Any
) -> None:
    """Read-only calls in a worker: the right lines, and the repository byte for byte as before."""
    digest = plugin.content.digest
    grant = pi.plugin_loader.Grant(digest, frozenset({"read", "execute"}))

    async def start() -> Any:
        return await pi.plugin_worker.spawn_worker(
            plugin, grant, workspace=repository, launch=launch
        )

    async def run() -> Any:
        clock = pi.bench.FakeClock()
        quarantine = pi.plugin_supervisor.Quarantine(clock)
        supervisor = pi.plugin_supervisor.PluginSupervisor(digest, start, quarantine)
        try:
            registry = pi.tools.ToolRegistry(await supervisor.tools())
            context = pi.tools.ExecContext(clock, pi.signals.AbortSignal())
            execute = pi.tools.create_executor(registry, timeout=10)
            calls = [
                pi.messages.ToolCall("call-1", "git_status", {}),
                pi.messages.ToolCall("call-2", "git_status", {"untracked": False}),
                pi.messages.ToolCall("call-3", "git_status", {"pathspec": "/"}),
            ]
            return [await execute(call, context) for call in calls]
        finally:
            await supervisor.close()

    before = _state(repository)
    whole, tracked, refused = asyncio.run(run())
    assert _state(repository) == before
    assert pi.messages.text_of(whole) == " M changed.txt\n?? new.txt"
    assert list(whole.details["entries"]) == [" M changed.txt", "?? new.txt"]
    assert pi.messages.text_of(tracked) == " M changed.txt"
    assert refused.details["code"] == "INVALID_ARGUMENTS"
    assert not (repository.parent / "fsmonitor-ran").exists()


def test_git_tools_is_signed_by_its_team(plugin: Any) -> None:
    """What was admitted says by whom it was published."""
    assert (plugin.trust.kind, plugin.trust.publisher) == ("signed", "team")


@pytest.mark.parametrize("path", ["command.py", "tools/git_status.py", "plugin.json", "more.py"])
def test_any_change_ends_the_trust(pi: Any, plugin: Any, released: Path, path: str) -> None:
    """One blank at the end of one file, or a file more, and the signature is another's."""
    with (released / "git-tools" / path).open("a") as file:
        file.write(" ")
    key = pi.plugin_signature.TrustedKey(
        "team", pi.plugin_signature.public_key_of(KEY), frozenset({"git-tools"})
    )
    with pytest.raises(pi.errors.CourseError) as caught:
        pi.plugin_loader.admit_plugin(
            released,
            "git-tools",
            runtime_api="1.4.0",
            policy=pi.plugin_signature.TrustPolicy(keys={"team-1": key}),
            lock={"git-tools": plugin.lock_entry},
            now_ms=0,
        )
    expected = "DIGEST_MISMATCH" if path.startswith("tools/") else "SIGNATURE_INVALID"
    assert caught.value.code == expected


def _state(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }
