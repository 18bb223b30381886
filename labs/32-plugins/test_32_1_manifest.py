"""Lab 32.1: a manifest and its paths, judged as data, before a line of the plugin runs."""

import json

import pi_course.plugin_folder as plugin_folder
import pytest
from pi_course.errors import CourseError


def _tool(**changes):
    return {"name": "inspect", "entry": "tool.py", "permissions": ["read"], **changes}


def _write(root, text=None, **changes):
    """A plugin `demo` whose modules leave the file `ran` in `root` as soon as one is imported."""
    folder = root / "plugins" / "demo"
    folder.mkdir(parents=True, exist_ok=True)
    module = f"open({str(root / 'ran')!r}, 'w').close()\n"
    for path in (folder / "tool.py", root / "plugins" / "outside.py", root / "outside.py"):
        path.write_text(module, encoding="utf-8")
    manifest = {"name": "demo", "version": "1.2.3", "permissions": ["read"], "tools": [_tool()]}
    manifest |= changes
    text = json.dumps(manifest) if text is None else text
    (folder / "plugin.json").write_bytes(text.encode("utf-8"))
    return root / "plugins"


def _code(root, plugins):
    """The code of the refusal; the sentinel must not be there, nor the folder in the message."""
    with pytest.raises(CourseError) as caught:
        plugin_folder.load_plugin(plugins, "demo")
    assert not (root / "ran").exists(), "code of the plugin ran before its manifest was accepted"
    assert str(root) not in str(caught.value), "the message shows a folder of this machine"
    return caught.value.code


def test_valid_local_tool_loads_and_cannot_be_changed(tmp_path):
    """demo@1.2.3 with its tool inspect/read loads as a copy that nobody can change."""
    plugins = _write(tmp_path, permissions=["write", "read"])
    manifest = plugin_folder.load_plugin(plugins, "demo").manifest
    assert (manifest.name, manifest.version) == ("demo", "1.2.3")
    assert manifest.permissions == ("read", "write")
    assert [(tool.name, tool.permissions) for tool in manifest.tools] == [("inspect", ("read",))]
    assert isinstance(manifest.tools, tuple)
    with pytest.raises((AttributeError, TypeError)):
        manifest.tools[0].permissions = ("read", "write")
    _write(tmp_path, version="9.9.9")
    assert manifest.version == "1.2.3"
    assert not (tmp_path / "ran").exists()


def test_invalid_version_is_refused_before_code_runs(tmp_path):
    """A version is MAJOR.MINOR.PATCH as semver.org writes it; a tag, a range, a blank is none."""
    for version in ("1.2.3", "1.2.3-rc.1+build.05", "0.0.0"):
        plugins = _write(tmp_path, version=version)
        assert plugin_folder.load_plugin(plugins, "demo").manifest.version == version
    refused = ["latest", "v1.2.3", "1.2", "^1.2.3", "01.2.3", "1.2.3-01", "1.2.3\n", " 1.2.3"]
    for version in [*refused, "１.2.3", "1.2.3٣", "", "*", 1.2, None, ["1.2.3"]]:
        assert _code(tmp_path, _write(tmp_path, version=version)) == "INVALID_SCHEMA", version


def test_repeated_tool_name_is_refused_before_code_runs(tmp_path):
    """Two tools with one name are an error in either order, and so is a repeated JSON key."""
    strong = _tool(permissions=["write"])
    for tools in ([_tool(), strong], [strong, _tool()], [_tool(), _tool(name="other"), _tool()]):
        plugins = _write(tmp_path, permissions=["read", "write"], tools=tools)
        assert _code(tmp_path, plugins) == "DUPLICATE_TOOL"
    head = '{"name": "demo", "version": "1.2.3", "permissions": ["read"], '
    shown, meant = json.dumps([_tool()]), json.dumps([_tool(name="other")])
    plugins = _write(tmp_path, text=f'{head}"tools": {shown}, "tools": {meant}}}')
    assert _code(tmp_path, plugins) == "INVALID_SCHEMA"


def test_undeclared_permission_is_refused_before_code_runs(tmp_path):
    """A tool may ask for a subset of what the plugin declares, out of the four known words."""
    for asked in (["write"], ["read", "write"], ["network"]):
        plugins = _write(tmp_path, tools=[_tool(permissions=asked)])
        assert _code(tmp_path, plugins) == "PERMISSION_ESCALATION", asked
    plugins = _write(tmp_path, tools=[_tool(), _tool(name="other", permissions=["execute"])])
    assert _code(tmp_path, plugins) == "PERMISSION_ESCALATION"
    for unknown in (["excute"], ["READ"], ["read", "read"], [], "read", [["read"]], None):
        assert _code(tmp_path, _write(tmp_path, permissions=unknown)) == "INVALID_SCHEMA", unknown


def test_entry_outside_the_plugin_is_refused_before_code_runs(tmp_path):
    """An entry is a plain .py file in the plugin's folder: by its text, in truth, over no link."""
    text = ["../outside.py", "a/../../outside.py", "..\\outside.py", "C:\\outside.py", "tool"]
    text += [str(tmp_path / "outside.py"), "https://example.org/tool.py", "data:,1.py", "node:fs"]
    for entry in [*text, "//host/share/tool.py", "tool.py\0", "missing.py", "", "folder.py"]:
        plugins = _write(tmp_path, tools=[_tool(entry=entry)])
        (plugins / "demo" / "folder.py").mkdir(exist_ok=True)
        assert _code(tmp_path, plugins) == "ENTRY_ESCAPE", entry
    links = {"outside.py": plugins / "outside.py", "inside.py": plugins / "demo" / "tool.py"}
    for name, target in {**links, "up": plugins}.items():
        (plugins / "demo" / name).symlink_to(target)
    for entry in (*links, "up/outside.py", "up/demo/tool.py"):
        plugins = _write(tmp_path, tools=[_tool(entry=entry)])
        assert _code(tmp_path, plugins) == "ENTRY_ESCAPE", entry
