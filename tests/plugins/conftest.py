"""The package as it stands after chapter 32, plugins to try it on, proofs in child processes."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from course.manifest import load_course
from course.snapshot import checkpoint, write_tree

REPOSITORY = Path(__file__).resolve().parents[2]
MODULES = ("bench", "errors", "messages", "signals", "tools", "values")
PLUGIN_MODULES = (
    *("content", "folder", "json", "loader", "lock", "manifest", "process", "protocol"),
    *("sandbox", "signature", "supervisor", "versions", "worker", "worker_main"),
)

SENTINEL = """
import os
try:
    open({path!r}, "a").write(str(os.getpid()) + " ")
except OSError:
    pass
"""
TOOL = '''
definition = {
    "name": "inspect",
    "description": "Look at something.",
    "permissions": ["read"],
    "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}},
}


def execute(arguments, context):
    return "seen " + arguments.get("word", "nothing")
'''


@dataclass(frozen=True)
class Bench:
    """A folder with the plugin demo, whose modules write their process id into `ran` when run."""

    root: Path

    @property
    def plugins(self) -> Path:
        return self.root / "plugins"

    @property
    def demo(self) -> Path:
        return self.plugins / "demo"

    @property
    def ran(self) -> Path:
        return self.root / "ran"

    def write(
        self, tool: str = TOOL, permissions: tuple[str, ...] = ("read",), **changes: Any
    ) -> None:
        """Write demo 1.2.3 with its tool `inspect` in tool.py; `changes` go into the manifest."""
        self.demo.mkdir(parents=True, exist_ok=True)
        code = SENTINEL.format(path=str(self.ran)) + tool
        (self.demo / "tool.py").write_text(code, encoding="utf-8")
        declared = list(permissions)
        manifest = {
            "schemaVersion": 1,
            "name": "demo",
            "version": "1.2.3",
            "runtimeApiRange": {"minimum": "1.0.0", "below": "2.0.0"},
            "permissions": declared,
            "tools": [{"name": "inspect", "entry": "tool.py", "permissions": declared}],
        }
        self.manifest(json.dumps(manifest | changes).encode())

    def manifest(self, data: bytes) -> None:
        """Write these bytes as plugin.json."""
        self.demo.mkdir(parents=True, exist_ok=True)
        (self.demo / "plugin.json").write_bytes(data)


@pytest.fixture(scope="package")
def src() -> Iterator[Path]:
    """The source folder of the package with the layers through chapter 32 folded."""
    with tempfile.TemporaryDirectory(prefix="plugins-") as place:
        folder = Path(place) / "fold"
        write_tree(checkpoint(load_course(REPOSITORY), "32"), folder)
        yield folder / "src"


@pytest.fixture(scope="package")
def pi(src: Path) -> Iterator[Any]:
    """The modules of pi_course by their last name; those of plugins as plugin_<name>.

    Another test folder may have a pi_course of its own in sys.modules: it is back afterwards.
    """
    others = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_ours(name)}
    sys.path.insert(0, str(src))
    names = (*MODULES, *(f"plugin_{name}" for name in PLUGIN_MODULES))
    yield SimpleNamespace(**{name: importlib.import_module(f"pi_course.{name}") for name in names})
    sys.path.remove(str(src))
    for name in list(sys.modules):
        if _is_ours(name):
            del sys.modules[name]
    sys.modules.update(others)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A bench with the legal plugin demo on it."""
    made = Bench(tmp_path)
    made.write()
    return made


@pytest.fixture
def admit(pi: Any, bench: Bench) -> Any:
    """Admit demo as unsigned-local plugin, or under the terms that are given."""

    def admitted(**terms: Any) -> Any:
        policy = pi.plugin_signature.TrustPolicy(unsigned_local=frozenset({"demo"}))
        usual = {"runtime_api": "1.4.0", "policy": policy, "lock": None, "now_ms": 0}
        return pi.plugin_loader.admit_plugin(bench.plugins, "demo", **(usual | terms))

    return admitted


def in_child(src: Path, code: str, *arguments: object) -> Any:
    """What `code` printed as JSON, run by a Python of its own with pi_course on its path."""
    path = os.pathsep.join([str(src), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _is_ours(name: str) -> bool:
    return name == "pi_course" or name.startswith("pi_course.")
