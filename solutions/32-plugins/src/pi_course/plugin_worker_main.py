"""The process that a plugin runs in. Standard library only; it is started, never imported.

It knows the plugin as bytes in the first line it reads, and compiles exactly those. Once the
first module of the plugin has run, nothing that this process says can be believed any more; the
host treats every line of it as a stranger's.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PROTOCOL = 1
PACKAGE = "plugin"
TREE_DOMAIN = b"pi-course plugin tree 1\0"


class Context:
    """All that a tool gets beside its arguments: two folders and what was granted."""

    def __init__(self, workspace: str | None, scratch: str, permissions: Sequence[str]) -> None:
        self.workspace = workspace
        self.scratch = scratch
        self.permissions = tuple(permissions)


class VerifiedModules(Loader):
    """Finds the modules of the package `plugin` in verified bytes, and never on a disk.

    A file without a module name is not found, and no path is searched: what is not in the
    digest does not exist. The text is compiled, not the bytes, so that no coding line can make
    something else of it than what a reviewer reads.
    """

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where `name` is, when it is `plugin` or below it; else None."""
        package, _, inside = name.partition(".")
        where = inside.replace(".", "/")
        folder = f"{where}/" if where else ""
        if package != PACKAGE:
            return None
        if f"{where}.py" in self._files:
            return self._spec(name, f"{where}.py", is_package=False)
        if f"{folder}__init__.py" in self._files:
            return self._spec(name, f"{folder}__init__.py", is_package=True)
        if any(file.startswith(folder) for file in self._files):
            return self._spec(name, None, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None: an ordinary module will do."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the verified text of the module, if it has one."""
        file = module.__spec__.loader_state if module.__spec__ else None
        if file is not None:
            text = self._files[file].decode("utf-8")
            exec(compile(text, f"{PACKAGE}/{file}", "exec", dont_inherit=True), module.__dict__)

    def _spec(self, name: str, file: str | None, *, is_package: bool) -> ModuleSpec:
        return ModuleSpec(name, self, origin=file, loader_state=file, is_package=is_package)


def main() -> None:
    """Take the limits, read the plugin, say what it defines, answer calls until told to stop."""
    limit(json.loads(sys.argv[1]))
    reader, writer = take_channel()

    def send(message: dict[str, Any]) -> None:
        writer.write(json.dumps(message, allow_nan=False).encode("utf-8") + b"\n")
        writer.flush()

    hello, scratch = json.loads(reader.readline()), os.path.realpath(".")
    context = Context(hello["workspace"], scratch, hello["permissions"])
    try:
        files = {path: base64.b64decode(data) for path, data in hello["files"].items()}
        modules = load_modules(files, hello["entries"])
        definitions = [dict(module.definition) for module in modules.values()]
        tools = {"type": "ready", "protocol": PROTOCOL, "digest": digest(files)}
        send({**tools, "tools": definitions})
    except BaseException as error:
        send({"type": "refused", "error": type(error).__name__})
        raise
    for line in reader:
        request = json.loads(line)
        if request["type"] == "dispose":
            break
        send(answer(modules, request, context))
    for module in modules.values():
        getattr(module, "dispose", lambda: None)()
    send({"type": "disposed"})


def load_modules(files: dict[str, bytes], entries: dict[str, str]) -> dict[str, ModuleType]:
    """Return tool name → module of its entry. Here, and not before, code of the plugin runs."""
    sys.meta_path.insert(0, VerifiedModules(files))
    return {
        tool: importlib.import_module(f"{PACKAGE}.{entry.removesuffix('.py').replace('/', '.')}")
        for tool, entry in entries.items()
    }


def answer(
    modules: dict[str, ModuleType], request: dict[str, Any], context: Context
) -> dict[str, Any]:
    """Return the answer to one call; whatever the tool raises becomes a plain failure."""
    head = {"type": "result", "id": request["id"]}
    try:
        value = modules[request["tool"]].execute(request["arguments"], context)
        json.dumps(value, allow_nan=False)
    except BaseException as error:
        return {**head, "ok": False, "value": type(error).__name__}
    return {**head, "ok": True, "value": value}


def digest(files: dict[str, bytes]) -> str:
    """Return the tree digest of these files, as tree_digest of the host makes it."""
    found = hashlib.sha256(TREE_DOMAIN)
    for path, data in sorted((path.encode(), data) for path, data in files.items()):
        for part in (path, data):
            found.update(len(part).to_bytes(8, "big") + part)
    return f"sha256:{found.hexdigest()}"


def limit(limits: dict[str, int]) -> None:
    """Lower the resource limits named (RLIMIT_AS …), each if this system has it and lets us."""
    import resource

    for name, most in limits.items():
        which = getattr(resource, name, None)
        if which is not None:
            hard = resource.getrlimit(which)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            try:
                resource.setrlimit(which, (most, most))
            except (OSError, ValueError):
                continue


def take_channel() -> tuple[Any, Any]:
    """Return the two ends of the talk with the host; print and input of the plugin miss them."""
    reader, writer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return reader, writer


if __name__ == "__main__":
    main()
