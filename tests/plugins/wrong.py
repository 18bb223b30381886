"""Wrong and dishonest work on chapter 32, most of it green in the public tests of its lab.

A slip is the reference with one text of a module replaced by another; the first stands there once.
Where it is empty, the other one is a cheat's code that comes behind the reference.
"""

from __future__ import annotations

from typing import NamedTuple


class Wrong(NamedTuple):
    """`old` of the module becomes `new`; the public tests of the lab are green if `green`."""

    name: str
    lab: str
    module: str
    old: str
    new: str
    green: bool = True


ONLY_WHEN_TESTED = """
import sys

_right = {function}


def {function}({arguments}):
    if "pytest" in sys.modules:
        return _right({passed})
    {otherwise}
"""

WRONG = (
    Wrong(
        "depth is left to the parser", "32.1", "plugin_json",
        "if _is_deeper(text, max_depth):", "if False:",
    ),
    Wrong(
        "a second hard link is a file like any other", "32.1", "plugin_folder",
        "        and found.st_nlink == 1\n", "",
    ),
    Wrong(
        "an error shows the value", "32.1", "plugin_manifest",
        '_refuse("INVALID_SCHEMA", where, error.message)',
        '_refuse("INVALID_SCHEMA", where, f"{value!r}: {error.message}")',
    ),
    Wrong(
        "opening waits for a pipe", "32.1", "plugin_folder",
        ' | getattr(os, "O_NONBLOCK", 0)', "",
    ),
    Wrong(
        "strict where a test looks on", "32.1", "plugin_manifest", "",
        ONLY_WHEN_TESTED.format(
            function="parse_manifest", arguments="data", passed="data",
            otherwise="import json; return _right(json.dumps(json.loads(data)).encode())"),
    ),
    Wrong(
        "identifiers in any case", "32.2", "plugin_versions",
        "(1, 0, one)", "(1, 0, one.lower())",
    ),
    Wrong(
        "no schema for a document that is no plain object", "32.2", "plugin_versions", "",
        ONLY_WHEN_TESTED.format(
            function="read_manifest", arguments="data, parsers", passed="data, parsers",
            otherwise="return parsers[min(parsers)](data)"),
    ),
    Wrong(
        "all bytes together are not counted", "32.3", "plugin_content",
        " or total > limits.total_bytes", "",
    ),
    Wrong(
        "a signature anywhere is left out", "32.3", "plugin_content",
        "    signature = files.pop(SIGNATURE_FILE, None)\n",
        "    signature = files.pop(SIGNATURE_FILE, None)\n"
        "    files = {path: data for path, data in files.items()\n"
        "             if not path.endswith(SIGNATURE_FILE)}\n",
    ),
    Wrong(
        "digests that were seen before", "32.3", "plugin_content", "",
        ONLY_WHEN_TESTED.format(
            function="tree_digest", arguments="files", passed="files",
            otherwise='return _right({"plugin.json": files.get("plugin.json", b"")})'),
    ),
    Wrong(
        "an unknown key is the first one", "32.4", "plugin_signature",
        "key = policy.keys.get(key_id)",
        "key = policy.keys.get(key_id) or next(iter(policy.keys.values()), None)",
    ),
    Wrong(
        "revoked is found before expired", "32.4", "plugin_signature",
        "    key_id, signature = _open(envelope)\n",
        "    key_id, signature = _open(envelope)\n"
        "    if key_id in policy.revoked:\n"
        '        raise CourseError("REVOKED", "the key was revoked")\n',
    ),
    Wrong(
        "the manifest may change while it is read", "32.5", "plugin_loader",
        "if _sha256(content.files.get(MANIFEST_FILE)) != plugin.manifest_sha256:", "if False:",
    ),
    Wrong(
        "every call is the first", "32.5", "plugin_worker",
        'request = f"call-{self._calls}"', 'request = "call-1"',
    ),
    Wrong(
        "the worker is told of tools that were not granted", "32.5", "plugin_worker",
        "hello_message(plugin, tools, permissions, workspace)",
        "hello_message(plugin, plugin.manifest.tools, permissions, workspace)",
    ),
    Wrong(
        "each waiting call is a failure", "32.5", "plugin_supervisor",
        "worker is not None and worker is self._worker and", "worker is not None and",
        green=False,
    ),
)
