"""Hostile manifests and hostile folders around them: the right code, at once, and nothing told."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from .conftest import Bench

DEMO = {"name": "demo", "version": "1.2.3", "permissions": ["read"]}
TOOLS = [{"name": "inspect", "entry": "tool.py", "permissions": ["read"]}]
SECRET = "s3cret"


def load_code(pi: Any, bench: Bench, name: Any = "demo") -> str:
    """The code with which the plugin is refused, by load_plugin and by admit_plugin alike."""
    with pytest.raises(pi.errors.CourseError) as caught:
        pi.plugin_folder.load_plugin(bench.plugins, name)
    assert not bench.ran.exists()
    assert str(bench.root) not in str(caught.value)
    assert SECRET not in str(caught.value)
    return str(caught.value.code)


def whole(**changes: Any) -> bytes:
    return json.dumps(DEMO | {"tools": TOOLS} | changes).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"not json",
        b"\xef\xbb\xbf" + whole(),
        b"\xff" + whole(),
        whole().decode().encode("utf-16"),
        whole().replace(b'"read"', b'"\\ud800"'),
        whole()[:-1] + b', "x": NaN}',
        whole()[:-1] + b', "x": -Infinity}',
        whole()[:-1] + b', "x": 1e999}',
        whole()[:-1] + b', "version": "1.2.4"}',
        whole().replace(b'"entry"', b'"name": "inspect", "entry"'),
        whole() + b" {}",
        b"[" * 10_000,
        b'{"a":' * 10_000,
        b'{"x": "' + b"[" * 100 + b'"}',
        b'{"x": 1' + b"0" * 5_000 + b"}",
        whole(x=" " * 65_536),
    ],
    ids=lambda data: ascii(data[:24]),
)
def test_what_is_no_strict_json_is_no_manifest(pi: Any, bench: Bench, data: bytes) -> None:
    """Repeated keys, NaN, a byte order mark, depth, size: INVALID_SCHEMA, and no crash."""
    bench.manifest(data)
    assert load_code(pi, bench) == "INVALID_SCHEMA"


def test_brackets_in_strings_are_not_depth(pi: Any) -> None:
    """Only structure counts as depth, and quotes may be escaped on the way."""
    data = json.dumps({"x": '[[[[{"\\' * 200}).encode()
    assert pi.plugin_json.strict_json(data)["x"].startswith("[[[[")
    sixteen = b"[" * 16 + b"]" * 16
    assert pi.plugin_json.strict_json(sixteen)
    with pytest.raises(pi.errors.CourseError):
        pi.plugin_json.strict_json(b"[" + sixteen + b"]")


def test_a_huge_manifest_is_not_read(pi: Any, bench: Bench) -> None:
    """100 MB: refused by the first 64 KB of it, in no time."""
    with (bench.demo / "plugin.json").open("wb") as file:
        file.truncate(100_000_000)
    before = time.monotonic()
    assert load_code(pi, bench) == "INVALID_SCHEMA"
    assert time.monotonic() - before < 0.5


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"version": "latest"}, "INVALID_SCHEMA"),
        ({"version": SECRET}, "INVALID_SCHEMA"),
        ({"name": "other"}, "INVALID_NAME"),
        ({"name": "Demo"}, "INVALID_NAME"),
        ({"name": 1}, "INVALID_SCHEMA"),
        ({"permissions": []}, "INVALID_SCHEMA"),
        ({"permissions": ["read", SECRET]}, "INVALID_SCHEMA"),
        ({"permissions": {"read": True}}, "INVALID_SCHEMA"),
        ({"tools": []}, "INVALID_SCHEMA"),
        ({"tools": TOOLS * 2}, "DUPLICATE_TOOL"),
        ({"tools": [TOOLS[0] | {"name": f"t{i}"} for i in range(33)]}, "INVALID_SCHEMA"),
        ({"tools": [TOOLS[0] | {"permissions": ["write"]}]}, "PERMISSION_ESCALATION"),
        ({"tools": [TOOLS[0] | {"permissions": []}]}, "INVALID_SCHEMA"),
        ({"tools": [TOOLS[0] | {"permissions": ["read-metadata"]}]}, "INVALID_SCHEMA"),
        ({"tools": [TOOLS[0] | {"name": "in spect"}]}, "INVALID_SCHEMA"),
        ({"tools": [TOOLS[0] | {"name": "a" * 65}]}, "INVALID_SCHEMA"),
        ({"tools": [TOOLS[0] | {SECRET: 1}]}, "INVALID_SCHEMA"),
        ({"tools": [TOOLS[0] | {"sha256": "0" * 63}]}, "INVALID_SCHEMA"),
        ({"tools": [TOOLS[0] | {"entry": 1}]}, "INVALID_SCHEMA"),
        ({"tools": [{"name": "inspect", "entry": "tool.py"}]}, "INVALID_SCHEMA"),
        ({SECRET: SECRET}, "INVALID_SCHEMA"),
        ({"schemaVersion": 2}, "INVALID_SCHEMA"),
        ({"schemaVersion": True}, "INVALID_SCHEMA"),
        ({"displayName": "a\u202eb"}, "INVALID_SCHEMA"),
        ({"displayName": " "}, "INVALID_SCHEMA"),
        ({"runtimeApiRange": "*"}, "INVALID_SCHEMA"),
        ({"runtimeApiRange": {"minimum": "1.0.0"}}, "INVALID_SCHEMA"),
        ({"runtimeApiRange": {"minimum": "1.0.0", "below": "*"}}, "INVALID_SCHEMA"),
    ],
)
def test_each_field_has_its_rule(
    pi: Any, bench: Bench, changes: dict[str, Any], code: str
) -> None:
    """A field that breaks its rule refuses the manifest; its value is never shown."""
    bench.manifest(whole(**changes))
    assert load_code(pi, bench) == code


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"version": "latest"}, "version"),
        ({"permissions": ["read", "excute"]}, "permissions[1]"),
        ({"tools": [*TOOLS, TOOLS[0] | {"name": "b", "entry": "../x.py"}]}, "tools[1].entry"),
        ({"tools": [*TOOLS, *TOOLS]}, "tools[1].name"),
        ({"runtimeApiRange": {"minimum": "1", "below": "2.0.0"}}, "runtimeApiRange.minimum"),
    ],
)
def test_a_refusal_points_at_the_field(
    pi: Any, changes: dict[str, Any], where: str
) -> None:
    """The message starts with the path of the field that has to be put right."""
    with pytest.raises(pi.errors.CourseError) as caught:
        pi.plugin_manifest.parse_manifest(whole(**changes))
    assert caught.value.message.startswith(f"{where}: ")


@pytest.mark.parametrize(
    "name",
    ["", "..", ".", "a/b", "a\\b", "/etc", "Demo", "demo ", "de%6do", "démo", "d\0", None, 7],
)
def test_a_name_is_judged_before_it_becomes_a_path(pi: Any, bench: Bench, name: Any) -> None:
    """What is no plain word is refused whatever lies on the disk."""
    assert load_code(pi, bench, name) == "INVALID_NAME"


@pytest.mark.parametrize(
    "entry",
    [
        "C:tool.py", "c:/tool.py", "\\\\host\\share\\tool.py", "a\\..\\tool.py", "./tool.py",
        "tool.py/", "a//tool.py", "tool.pyc", "tool.so", "tool.PY", "tool.py ", "tool.py\n",
        "tоol.py", "file:tool.py", "tool", ".tool.py", "tool-1.py", "a/" * 120 + "tool.py",
    ],
)  # fmt: skip
def test_an_entry_is_plain_on_every_system(pi: Any, bench: Bench, entry: str) -> None:
    """Drives, shares, backslashes, look-alikes, other suffixes: refused by the text alone."""
    bench.manifest(whole(tools=[TOOLS[0] | {"entry": entry}]))
    assert load_code(pi, bench) == "ENTRY_ESCAPE"


def test_a_hard_link_is_no_entry(pi: Any, bench: Bench) -> None:
    """A file that has another name somewhere can be changed there."""
    bench.manifest(whole())
    os.link(bench.demo / "tool.py", bench.root / "elsewhere.py")
    assert load_code(pi, bench) == "ENTRY_ESCAPE"


def test_a_plugin_folder_that_is_a_link_is_refused(pi: Any, bench: Bench) -> None:
    """Inside or outside: the folder of a plugin is a folder."""
    bench.demo.rename(bench.root / "real")
    bench.demo.symlink_to(bench.root / "real")
    assert load_code(pi, bench) == "ENTRY_ESCAPE"
    bench.demo.unlink()
    (bench.root / "real").rename(bench.plugins / "inside")
    bench.demo.symlink_to("inside")
    assert load_code(pi, bench) == "ENTRY_ESCAPE"


def test_the_root_itself_may_be_a_link(pi: Any, bench: Bench) -> None:
    """Where plugins are kept is the owner's choice."""
    link = bench.root / "link"
    link.symlink_to(bench.plugins)
    assert pi.plugin_folder.load_plugin(link, "demo").manifest.name == "demo"


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "link", "hard link", "no folder"])
def test_a_manifest_is_a_plain_file(pi: Any, bench: Bench, kind: str) -> None:
    """Everything else is no manifest, and none of it makes the host wait."""
    path = bench.demo / "plugin.json"
    data = path.read_bytes()
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind in ("link", "hard link"):
        other = bench.root / "other.json"
        other.write_bytes(data)
        path.symlink_to(other) if kind == "link" else os.link(other, path)
    elif kind == "no folder":
        (bench.demo / "tool.py").unlink()
        bench.demo.rmdir()
    assert load_code(pi, bench) == "MANIFEST_NOT_FOUND"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_manifest_is_an_error(pi: Any, bench: Bench) -> None:
    """Never a plugin without tools."""
    (bench.demo / "plugin.json").chmod(0)
    assert load_code(pi, bench) == "MANIFEST_NOT_FOUND"


def test_results_share_nothing_and_cannot_be_changed(pi: Any, bench: Bench) -> None:
    """Two loads are equal and nothing in them can be assigned."""
    first = pi.plugin_folder.load_plugin(bench.plugins, "demo")
    second = pi.plugin_folder.load_plugin(bench.plugins, "demo")
    assert first == second
    manifest = first.manifest
    for owner, name in ((first, "manifest"), (manifest, "tools"), (manifest.tools[0], "name")):
        with pytest.raises(AttributeError):
            setattr(owner, name, None)
    assert str(Path(bench.root)) not in repr(first)
