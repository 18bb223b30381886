"""Objects with one job each: a folder reader, a header, a loader, a gatekeeper."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import hashlib
import html
import inspect
import os
import re
import string
import threading
import unicodedata
from collections.abc import (
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Any,
    Literal,
    Protocol,
    TypeAlias,
)

from pi_course.containment import contained
from pi_course.errors import CourseError
from pi_course.messages import (
    ToolCall,
    ToolResultMessage,
    UserMessage,
    tool_result,
    user,
)
from pi_course.tools import ExecContext, Tool, ToolExecutor, ToolRegistry, error_result
from pi_course.values import thaw

Kind: TypeAlias = Literal["instructions", "skill", "template"]
KINDS: tuple[Kind, ...] = ("instructions", "skill", "template")


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """How many bytes a skill's header may have, and a file that is read whole."""

    header_bytes: int = 4_096
    file_bytes: int = 65_536


DEFAULT_LIMITS = ResourceLimits()


@dataclass(frozen=True, slots=True)
class Resource:
    """What a root offers under its identity, kind and name.

    source: the real path of its file. root: the real folder that its files may not leave, for a
    skill its own. root_order: which of the different roots it is from. digest: SHA-256 (hex) of
    what was used of the file: a skill's header, else all. body: the text, but None for a skill.
    """

    kind: Kind
    name: str
    description: str
    source: Path
    root: Path
    root_order: int
    digest: str
    body: str | None


@dataclass(frozen=True, slots=True)
class ResourceDiagnostic:
    """Why a file is not listed: it is no use, a link leads out, or `winner` came first.

    source is its path in the real root, before any link is followed; of a loser, the real path.
    """

    kind: Literal["invalid", "escape", "shadowed"]
    source: Path
    message: str
    winner: Path | None = None


@dataclass(frozen=True, slots=True)
class Catalog:
    """All resources in a stable order, the same by kind, and what was left out."""

    resources: tuple[Resource, ...] = ()
    instructions: tuple[Resource, ...] = ()
    skills: tuple[Resource, ...] = ()
    templates: tuple[Resource, ...] = ()
    diagnostics: tuple[ResourceDiagnostic, ...] = ()
    limits: ResourceLimits = DEFAULT_LIMITS


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A file of a skill: the request as it was made, the real path it led to, the text."""

    request: str
    source: Path
    content: str


@dataclass(frozen=True, slots=True)
class ActivatedSkill:
    """A skill with its text. digest: SHA-256 (hex) of the SKILL.md read; entry: its Resource's."""

    name: str
    root: Path
    source: Path
    body: str
    files: tuple[SkillFile, ...]
    digest: str
    entry: str


@dataclass(frozen=True, slots=True)
class ExtensionSource:
    """What is asked to be loaded: an id of its own, and where its code is."""

    id: str
    path: Path


@dataclass(frozen=True, slots=True)
class Allow:
    """A before hook lets the call pass; to return None says the same."""


@dataclass(frozen=True, slots=True)
class Deny:
    """A before hook forbids the call, for this reason."""

    reason: str


HookDecision: TypeAlias = Allow | Deny | None
HookName: TypeAlias = Literal["before_tool_call", "after_tool_result"]
HookListener: TypeAlias = Callable[[Any], object]
"""Plain or async. Before: ToolCall → HookDecision. After: ToolResultMessage → anything."""
FaultKind: TypeAlias = Literal["error", "timeout", "bad_result"]


@dataclass(frozen=True, slots=True)
class HookDiagnostic:
    """What went wrong in a hook, or in the question whether to trust the extension."""

    extension_id: str
    hook: HookName | Literal["is_trusted"]
    kind: FaultKind
    message: str


@dataclass(frozen=True, slots=True)
class LoadResult:
    """How a load that did not fail ended; diagnostics: why the question of trust had no answer."""

    id: str
    status: Literal["active", "skipped_untrusted"]
    diagnostics: tuple[HookDiagnostic, ...] = ()


class ExtensionContext(Protocol):
    """All that a factory gets. Once the factory has ended, both methods raise CONTEXT_CLOSED."""

    def register_tool(self, tool: Tool) -> None:
        """Nothing; the tool is registered when the whole extension is, or never."""

    def on(self, hook: HookName, listener: HookListener) -> None:
        """Nothing; the same for a hook. INVALID_HOOK: no such hook, or nothing to call."""


class ExtensionHost(Protocol):
    """All that the rest of the program sees of its extensions."""

    def wrap_executor(self, core: ToolExecutor) -> ToolExecutor:
        """An executor: before hooks, core, after hooks, as create_extension_host has it."""


class _Header:
    """The first lines of a SKILL.md, read line by line from its bytes."""

    def __init__(self, data: bytes, limit: int) -> None:
        self.values: dict[str, str] = {}
        self.size = 0
        text = data[3:] if data.startswith(b"\xef\xbb\xbf") else data
        offset = len(data) - len(text)
        lines = text.splitlines(keepends=True) if b"\r" not in text else self._lines(text)
        if not lines or self._bare(lines[0]) != b"---" or not lines[0].endswith(b"\n"):
            raise self._refused("it does not begin with ---")
        offset += len(lines[0])
        for line in lines[1:]:
            offset += len(line)
            if offset > limit:
                raise self._refused(f"its end is not within {limit} bytes")
            if line == b"---" or (line.endswith(b"\n") and self._bare(line) == b"---"):
                self.size = offset
                break
            self._take(self._bare(line))
        if not self.size:
            raise self._refused("it has no end")
        self.name = self.values.get("name", "")
        self.description = self.values.get("description", "")
        if not _is_name(self.name):
            raise self._refused(f"the name {self.name!r}")
        if not self.description or self.description[0] in "\"'|>[{&*!%@`":
            raise self._refused("the description is not plain")
        if any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") for c in self.description):
            raise self._refused("the description has characters that cannot be seen")

    @staticmethod
    def _lines(text: bytes) -> list[bytes]:
        parts = text.split(b"\n")
        last = [parts[-1]] if parts[-1] else []
        return [part + b"\n" for part in parts[:-1]] + last

    @staticmethod
    def _bare(line: bytes) -> bytes:
        if line.endswith(b"\r\n"):
            return line[:-2]
        return line[:-1] if line.endswith(b"\n") else line

    @staticmethod
    def _refused(why: str) -> CourseError:
        return CourseError("INVALID_SKILL", f"header: {why}")

    def _take(self, line: bytes) -> None:
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            raise self._refused("it is not UTF-8") from None
        if not text.strip():
            return
        key, colon, value = text.partition(":")
        plain = key.replace("-", "").replace("_", "")
        if not colon or not plain.isalnum() or not key.isascii() or not key[0].isalpha():
            raise self._refused(f"the line {text!r}")
        if key in self.values:
            raise self._refused(f"{key} stands twice")
        self.values[key] = value.strip(" \t")


def _is_name(text: str) -> bool:
    allowed = set(string.ascii_letters + string.digits + "._-")
    return 0 < len(text) <= 64 and set(text) <= allowed and text[0] not in "._-"


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class _File:
    """One file, opened once; knows how to be text and how to be a digest."""

    def __init__(self, path: Path, limit: int, *, cut: bool = False) -> None:
        if not path.is_file():
            raise CourseError("UNREADABLE", f"{path} is no regular file")
        try:
            with path.open("rb") as stream:
                self.data = stream.read(limit + 1)
        except OSError as error:
            raise CourseError("UNREADABLE", str(error)) from error
        if not cut and len(self.data) > limit:
            raise CourseError("UNREADABLE", f"{path} is too long")

    def text(self, start: int = 0) -> str:
        data = self.data[start:]
        data = data[3:] if data.startswith(b"\xef\xbb\xbf") else data
        try:
            return str(data, "utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise CourseError("UNREADABLE", "not UTF-8") from error

    def digest(self, end: int | None = None) -> str:
        return hashlib.sha256(self.data[:end]).hexdigest()


class _FolderReader:
    """Everything that one root offers."""

    def __init__(self, root: Path, order: int, limits: ResourceLimits) -> None:
        self.root = root
        self.order = order
        self.limits = limits
        self.resources: dict[tuple[str, str], Resource] = {}
        self.problems: list[ResourceDiagnostic] = []

    def read(self) -> None:
        if "AGENTS.md" in _names(self.root):
            self._try("AGENTS.md", self._instructions)
        for entry in self._entries("skills"):
            self._try(entry, self._skill)
        for entry in self._entries("prompts"):
            if entry.endswith(".md"):
                self._try(entry, self._template)

    def _entries(self, folder: str) -> list[str]:
        if folder not in _names(self.root):
            return []
        try:
            names = _names(contained(self.root, folder))
        except CourseError as error:
            self._note(folder, error)
            return []
        except OSError:
            return []
        return [f"{folder}/{name}" for name in names if name[0] != "."]

    def _try(self, request: str, read: Callable[[str], Resource]) -> None:
        try:
            resource = read(request)
        except CourseError as error:
            self._note(request, error)
            return
        identity = (resource.kind, resource.name)
        if identity in self.resources and self.resources[identity].source != resource.source:
            raise CourseError("DUPLICATE_RESOURCE", f"{identity} in {self.root}")
        self.resources.setdefault(identity, resource)

    def _note(self, request: str, error: CourseError) -> None:
        kind: Any = "escape" if error.code == "PATH_ESCAPE" else "invalid"
        self.problems.append(ResourceDiagnostic(kind, self.root / request, error.message))

    def _instructions(self, request: str) -> Resource:
        return self._whole("instructions", "AGENTS", request)

    def _template(self, request: str) -> Resource:
        name = request.removeprefix("prompts/").removesuffix(".md")
        if not _is_name(name):
            raise CourseError("INVALID_NAME", name)
        return self._whole("template", name, request)

    def _whole(self, kind: Kind, name: str, request: str) -> Resource:
        path = contained(self.root, request)
        file = _File(path, self.limits.file_bytes)
        return Resource(kind, name, "", path, self.root, self.order, file.digest(), file.text())

    def _skill(self, request: str) -> Resource:
        folder = contained(self.root, request)
        if not folder.is_dir() or "SKILL.md" not in _names(folder):
            raise CourseError("INVALID_SKILL", "no SKILL.md")
        path = contained(folder, "SKILL.md")
        file = _File(path, self.limits.header_bytes, cut=True)
        header = _Header(file.data, self.limits.header_bytes)
        digest = file.digest(header.size)
        return Resource(
            "skill", header.name, header.description, path, folder, self.order, digest, None
        )


class _CatalogBuilder:
    """Adds the folders one after the other; the first of an identity stays."""

    def __init__(self, limits: ResourceLimits) -> None:
        self.limits = limits
        self.chosen: list[Resource] = []
        self.diagnostics: list[ResourceDiagnostic] = []

    def add(self, folder: _FolderReader) -> None:
        folder.read()
        self.diagnostics.extend(folder.problems)
        taken = {(item.kind, item.name): item for item in self.chosen}
        for identity, item in folder.resources.items():
            if identity not in taken:
                self.chosen.append(item)
                continue
            winner = taken[identity].source
            words = f"{item.source} lost to {winner}"
            self.diagnostics.append(ResourceDiagnostic("shadowed", item.source, words, winner))

    def build(self) -> Catalog:
        parts = [
            tuple(sorted((r for r in self.chosen if r.kind == kind), key=lambda r: r.name))
            for kind in KINDS
        ]
        everything = parts[0] + parts[1] + parts[2]
        found = tuple(self.diagnostics)
        return Catalog(everything, parts[0], parts[1], parts[2], found, self.limits)


def discover_resources(
    roots: Iterable[Path], *, limits: ResourceLimits = DEFAULT_LIMITS
) -> Catalog:
    """The catalogue of all roots."""
    builder = _CatalogBuilder(limits)
    seen: list[Path] = []
    for root in roots:
        real = Path(os.path.realpath(root))
        if not real.is_dir():
            raise CourseError("INVALID_ROOT", str(root))
        if real in seen:
            continue
        builder.add(_FolderReader(real, len(seen), limits))
        seen.append(real)
    return builder.build()


def activate_skill(catalog: Catalog, name: str, *, resources: Sequence[str] = ()) -> ActivatedSkill:
    """The skill with its text and files."""
    for skill in catalog.skills:
        if skill.name == name:
            break
    else:
        raise CourseError("UNKNOWN_SKILL", name)
    if Path(os.path.realpath(skill.root)) != skill.root:
        raise CourseError("PATH_ESCAPE", str(skill.root))
    source = contained(skill.root, "SKILL.md")
    file = _File(source, catalog.limits.file_bytes)
    header = _Header(file.data, catalog.limits.header_bytes)
    if header.name != name:
        raise CourseError("SKILL_CHANGED", header.name)
    attached: dict[str, SkillFile] = {}
    for request in resources:
        if request not in attached:
            path = contained(skill.root, request)
            text = _File(path, catalog.limits.file_bytes).text()
            attached[request] = SkillFile(request, path, text)
    return ActivatedSkill(
        name=name,
        root=skill.root,
        source=source,
        body=file.text(header.size),
        files=tuple(attached.values()),
        digest=file.digest(),
        entry=skill.digest,
    )


class _Template:
    """A text cut at its places: texts at even, names at odd positions."""

    def __init__(self, text: str) -> None:
        self.pieces = re.split(r"\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}", text)
        self.names = list(dict.fromkeys(self.pieces[1::2]))

    def fill(self, values: Mapping[str, str]) -> str:
        out = list(self.pieces)
        out[1::2] = [values[name] for name in self.pieces[1::2]]
        return "".join(out)


def render_template(template: Resource, args: Mapping[str, str], *, at: int) -> UserMessage:
    """The filled template as a message."""
    if template.kind != "template" or template.body is None:
        raise CourseError("INVALID_TEMPLATE", template.name)
    cut = _Template(template.body)
    missing = [name for name in cut.names if name not in args.keys()]  # noqa: SIM118
    if missing:
        raise CourseError("MISSING_ARGUMENT", " ".join(missing))
    for name in cut.names:
        if not isinstance(args[name], str):
            raise CourseError("INVALID_ARGUMENT", name)
    return user(cut.fill(args), at=at)


class _Prompt:
    """Collects sections; all text goes through `add`."""

    def __init__(self) -> None:
        self.sections: list[str] = []

    def add(self, tag: str, name: str, text: str) -> None:
        begin = f'<{tag} name="{html.escape(name)}">'
        self.sections.append("\n".join([begin, html.escape(text, quote=False), f"</{tag}>"]))

    def text(self) -> str:
        return "\n\n".join(self.sections)


def format_resource_context(catalog: Catalog, activated: Iterable[ActivatedSkill] = ()) -> str:
    """The prompt of the catalogue and the active skills."""
    active: dict[str, ActivatedSkill] = {}
    own = {skill.name: skill for skill in catalog.skills}
    for item in activated:
        if item.name in active:
            raise CourseError("DUPLICATE_ACTIVATION", item.name)
        entry = own.get(item.name)
        if entry is None or (entry.root, entry.digest) != (item.root, item.entry):
            raise CourseError("FOREIGN_ACTIVATION", item.name)
        active[item.name] = item
    prompt = _Prompt()
    for rules in catalog.instructions:
        prompt.add("instructions", rules.name, rules.body or "")
    for skill in catalog.skills:
        prompt.add("skill", skill.name, skill.description)
    for name in sorted(active):
        prompt.add("active_skill", name, active[name].body)
        for file in sorted(active[name].files, key=lambda file: file.request):
            prompt.add("skill_file", f"{name}/{file.request}", file.content)
    return prompt.text()


class _Guest:
    """A function of an extension; `ask` never lasts longer than its time."""

    def __init__(self, function: Callable[[Any], object], seconds: float | None) -> None:
        self.function = function
        self.seconds = seconds
        self.fault: FaultKind | None = None
        self.error: BaseException | None = None
        self.value: Any = None

    async def ask(self, argument: object) -> None:
        work = asyncio.create_task(self._work(argument))
        try:
            await asyncio.wait([work], timeout=self.seconds)
        finally:
            if not work.done():
                work.cancel()
        if not work.done():
            self.fault = "timeout"
            self.error = None
            return
        work.result()
        if isinstance(self.error, KeyboardInterrupt | asyncio.CancelledError):
            raise self.error

    async def _work(self, argument: object) -> None:
        try:
            value = await self._called(argument)
            value = await value if inspect.isawaitable(value) else value
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:
            if self.fault is None:
                self.fault, self.error = "error", error
        else:
            if self.fault is None:
                self.value = value

    async def _called(self, argument: object) -> Any:
        if self.seconds is None:
            return self.function(argument)
        loop = asyncio.get_running_loop()
        done = asyncio.Event()
        box: list[tuple[bool, Any]] = []

        def run() -> None:
            try:
                box.append((True, self.function(argument)))
            except BaseException as error:
                box.append((False, error))
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(done.set)

        threading.Thread(target=run, daemon=True).start()
        await done.wait()
        good, value = box[0]
        if not good:
            raise RuntimeError("StopIteration") if isinstance(value, StopIteration) else value
        return value

    @property
    def message(self) -> str:
        if self.error is None:
            return self.fault or ""
        try:
            return repr(self.error)
        except Exception:
            return type(self.error).__name__


class _Registration:
    """The context of one extension."""

    def __init__(self) -> None:
        self._open = True
        self._tools: list[Tool] = []
        self._listeners: dict[str, list[HookListener]] = {
            "before_tool_call": [],
            "after_tool_result": [],
        }

    def register_tool(self, tool: Tool) -> None:
        if not self._open:
            raise CourseError("CONTEXT_CLOSED", "register_tool")
        self._tools.append(tool)

    def on(self, hook: HookName, listener: HookListener) -> None:
        if not self._open:
            raise CourseError("CONTEXT_CLOSED", "on")
        if hook not in self._listeners or not callable(listener):
            raise CourseError("INVALID_HOOK", str(hook))
        self._listeners[hook].append(listener)


class _Keeper:
    """The host."""

    def __init__(self, registry: ToolRegistry, seconds: float, report: Any) -> None:
        self._registry = registry
        self._seconds = seconds
        self._report = report
        self._extensions: dict[str, _Registration] = {}

    def _admit(self, extension_id: str, registration: _Registration) -> None:
        if extension_id in self._extensions:
            raise CourseError("DUPLICATE_EXTENSION", extension_id)
        self._registry.register_all(registration._tools)
        self._extensions[extension_id] = registration

    def wrap_executor(self, core: ToolExecutor) -> ToolExecutor:
        return _Guarded(self, core).run

    def _hooks(self, name: str) -> list[tuple[str, HookListener]]:
        found = []
        for owner, registration in self._extensions.items():
            found += [(owner, listener) for listener in registration._listeners[name]]
        return found

    async def _tell(self, owner: str, hook: HookName, kind: FaultKind, message: str) -> None:
        await _Guest(self._report, None).ask(HookDiagnostic(owner, hook, kind, message))


class _Guarded:
    """An executor with hooks around it."""

    def __init__(self, keeper: _Keeper, core: ToolExecutor) -> None:
        self.keeper = keeper
        self.core = core

    async def run(self, call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
        before = self.keeper._hooks("before_tool_call")
        after = self.keeper._hooks("after_tool_result")
        for owner, listener in before:
            refusal = await self._judge(owner, listener, call)
            if refusal is not None:
                code, reason = refusal
                legal = reason.encode(errors="replace").decode()
                details = {"code": code, "extension_id": owner, "reason": legal}
                now = ctx.clock.now_ms()
                return tool_result(call, f"{code}: {legal}", is_error=True, details=details, at=now)
        fact = await self._fact(call, ctx)
        for owner, listener in after:
            guest = _Guest(listener, self.keeper._seconds)
            await guest.ask(self._copy(call, fact))
            if guest.fault:
                await self.keeper._tell(owner, "after_tool_result", guest.fault, guest.message)
        return fact

    async def _judge(
        self, owner: str, listener: HookListener, call: ToolCall
    ) -> tuple[str, str] | None:
        guest = _Guest(listener, self.keeper._seconds)
        await guest.ask(ToolCall(call.id, call.name, call.arguments))
        verdict = guest.value
        if guest.fault is None and (verdict is None or isinstance(verdict, Allow)):
            return None
        if guest.fault is None and isinstance(verdict, Deny):
            return "DENIED", str(verdict.reason)
        fault = guest.fault or "bad_result"
        await self.keeper._tell(owner, "before_tool_call", fault, guest.message)
        return "HOOK_FAILED", fault

    async def _fact(self, call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
        try:
            answer = await self.core(ToolCall(call.id, call.name, call.arguments), ctx)
        except (Exception, SystemExit) as error:
            return error_result(call, "TOOL_FAILED", repr(error), at=ctx.clock.now_ms())
        try:
            if answer.call_id != call.id or answer.tool_name != call.name:
                raise ValueError("another call")
            return self._copy(call, answer)
        except Exception as error:
            return error_result(call, "BAD_OUTPUT", repr(error), at=ctx.clock.now_ms())

    @staticmethod
    def _copy(call: ToolCall, fact: ToolResultMessage) -> ToolResultMessage:
        return tool_result(
            call,
            copy.deepcopy(fact.content),
            is_error=fact.is_error,
            details=thaw(fact.details),
            at=fact.timestamp,
        )


class _Loader:
    """One load, from the question to the commit."""

    def __init__(self, source: ExtensionSource, keeper: _Keeper, seconds: float | None) -> None:
        self.source = source
        self.keeper = keeper
        self.seconds = seconds

    def look(self) -> tuple[str, bytes]:
        real = os.path.realpath(self.source.path)
        try:
            return real, Path(real).read_bytes() if Path(real).is_file() else b""
        except OSError:
            return real, b""

    async def trusted(self, ask: Callable[[ExtensionSource], object]) -> LoadResult | None:
        guest = _Guest(ask, None)
        await guest.ask(self.fresh())
        if guest.fault is None and guest.value is True:
            return None
        fault = guest.fault
        if fault is None and guest.value is not False:
            fault = "bad_result"
        notes = ()
        if fault:
            notes = (HookDiagnostic(self.source.id, "is_trusted", fault, guest.message),)
        return LoadResult(self.source.id, "skipped_untrusted", notes)

    def fresh(self) -> ExtensionSource:
        return ExtensionSource(self.source.id, self.source.path)

    async def must(self, function: Callable[[Any], object], argument: object) -> Any:
        guest = _Guest(function, self.seconds)
        await guest.ask(argument)
        if guest.fault == "timeout":
            raise CourseError("EXTENSION_TIMEOUT", self.source.id)
        if guest.fault:
            raise CourseError("EXTENSION_FAILED", guest.message) from guest.error
        return guest.value


async def load_extension(
    source: ExtensionSource,
    *,
    is_trusted: Callable[[ExtensionSource], object],
    import_module: Callable[[ExtensionSource], object],
    host: ExtensionHost,
    timeout: float | None = None,
) -> LoadResult:
    """How the load ended."""
    if not source.id.strip() or not source.id.isprintable():
        raise CourseError("INVALID_SOURCE", "id")
    if not Path(source.path).name or "\0" in str(source.path):
        raise CourseError("INVALID_SOURCE", "path")
    if not isinstance(host, _Keeper):
        raise CourseError("INVALID_HOST", type(host).__name__)
    loader = _Loader(source, host, timeout)
    before = loader.look()
    skipped = await loader.trusted(is_trusted)
    if skipped is not None:
        return skipped
    if loader.look() != before:
        raise CourseError("SOURCE_CHANGED", str(source.path))
    module = await loader.must(import_module, loader.fresh())
    factory = getattr(module, "default", None)
    if not callable(factory):
        raise CourseError("INVALID_EXTENSION", source.id)
    registration = _Registration()
    try:
        await loader.must(factory, registration)
    finally:
        registration._open = False
    host._admit(source.id, registration)
    return LoadResult(source.id, "active")


def create_extension_host(
    registry: ToolRegistry, *, hook_timeout: float, report: Callable[[HookDiagnostic], object]
) -> ExtensionHost:
    """A new host."""
    return _Keeper(registry, hook_timeout, report)
