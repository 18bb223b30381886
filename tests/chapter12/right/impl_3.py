"""A table of kinds, patterns for every text, commands that are replayed at the commit."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import hashlib
import inspect
import os
import re
import stat
import threading
import unicodedata
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import (
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
)
from xml.sax import saxutils

from pi_course.containment import contained
from pi_course.errors import CourseError
from pi_course.messages import (
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    user,
    validate_message,
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


_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_TABLE: tuple[tuple[Kind, str, re.Pattern[str]], ...] = (
    ("instructions", "", re.compile(r"(?P<name>AGENTS)\.md")),
    ("skill", "skills", re.compile(r"skills/(?P<name>[^/]+)")),
    ("template", "prompts", re.compile(rf"prompts/(?P<name>{_NAME})\.md")),
)
_FRONT = re.compile(rb"\A(\xef\xbb\xbf)?---\r?\n(?P<lines>(?:[^\n]*\n)*?)---(?:\r?\n|\Z)")
_LINE = re.compile(r"(?P<key>[A-Za-z][A-Za-z0-9_-]*):[ \t]*(?P<value>[^\n]*?)[ \t]*\r?")
_PLAIN = re.compile(r"(?P<first>[^\"'|>\[{&*!%@`])(?P<rest>.*)", re.DOTALL)
_PLACE = re.compile(r"\{\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}\}")


class _Head(NamedTuple):
    name: str
    description: str
    end: int


def discover_resources(
    roots: Iterable[Path], *, limits: ResourceLimits = DEFAULT_LIMITS
) -> Catalog:
    """The catalogue of all roots."""
    state: dict[tuple[int, str], Resource] = {}
    notes: list[ResourceDiagnostic] = []
    order = -1
    visited: set[str] = set()
    for given in roots:
        root = Path(os.path.realpath(given))
        if not root.is_dir():
            raise CourseError("INVALID_ROOT", f"{given}")
        if str(root) in visited:
            continue
        visited.add(str(root))
        order += 1
        mine: dict[tuple[int, str], Resource] = {}
        for rank, request in _places(root):
            match _try(rank, root, request, order, limits):
                case ResourceDiagnostic() as note:
                    notes.append(note)
                case Resource() as resource:
                    old = mine.setdefault((rank, resource.name), resource)
                    if old.source != resource.source:
                        raise CourseError("DUPLICATE_RESOURCE", f"{old.source} {resource.source}")
        for key, resource in mine.items():
            match state.get(key):
                case None:
                    state[key] = resource
                case Resource(source=winner):
                    message = f"{winner} hides {resource.source}"
                    notes.append(ResourceDiagnostic("shadowed", resource.source, message, winner))
    ordered = [state[key] for key in sorted(state)]
    by_rank = [
        tuple(resource for key, resource in sorted(state.items()) if key[0] == rank)
        for rank, _ in enumerate(_TABLE)
    ]
    return Catalog(tuple(ordered), *cast(Any, by_rank), tuple(notes), limits)


def _places(root: Path) -> Iterator[tuple[int, str]]:
    names = {path.name for path in root.iterdir()}
    for rank, (_, folder, pattern) in enumerate(_TABLE):
        if not folder:
            yield from ((rank, name) for name in names if pattern.fullmatch(name))
        elif folder in names:
            try:
                inner = sorted(path.name for path in contained(root, folder).iterdir())
            except (CourseError, OSError):
                yield rank, folder
                continue
            for name in inner:
                request = f"{folder}/{name}"
                if name[0] != "." and (folder == "skills" or name.endswith(".md")):
                    yield rank, request


def _try(
    rank: int, root: Path, request: str, order: int, limits: ResourceLimits
) -> Resource | ResourceDiagnostic:
    kind, _, pattern = _TABLE[rank]
    try:
        place = contained(root, request)
        found = pattern.fullmatch(request)
        if found is None:
            raise CourseError("INVALID_NAME", request)
        if kind != "skill":
            data = _load(place, limits.file_bytes)
            sha = hashlib.sha256(data).hexdigest()
            return Resource(kind, found["name"], "", place, root, order, sha, _words(data))
        if "SKILL.md" not in {path.name for path in place.iterdir()}:
            raise CourseError("INVALID_SKILL", request)
        file = contained(place, "SKILL.md")
        data = _load(file, limits.header_bytes, more=True)
        head = _head(data, limits.header_bytes)
        sha = hashlib.sha256(data[: head.end]).hexdigest()
        return Resource(kind, head.name, head.description, file, place, order, sha, None)
    except CourseError as error:
        if error.code == "PATH_ESCAPE":
            return ResourceDiagnostic("escape", root / request, error.message)
        return ResourceDiagnostic("invalid", root / request, error.message)
    except OSError as error:
        return ResourceDiagnostic("invalid", root / request, f"{error.strerror}")


def _load(path: Path, limit: int, *, more: bool = False) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise CourseError("UNREADABLE", f"{path} is special")
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise CourseError("UNREADABLE", f"{error.strerror}") from error
    if len(data) > limit and not more:
        raise CourseError("UNREADABLE", f"{path} exceeds {limit}")
    return data


def _words(data: bytes) -> str:
    try:
        return re.sub("\r\n", "\n", re.sub("\\A\ufeff", "", data.decode("utf-8")))
    except UnicodeDecodeError as error:
        raise CourseError("UNREADABLE", error.reason) from error


def _head(data: bytes, limit: int) -> _Head:
    front = _FRONT.match(data)
    if not front or front.end() > limit:
        raise CourseError("INVALID_SKILL", "no header")
    try:
        lines = front["lines"].decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise CourseError("INVALID_SKILL", error.reason) from error
    pairs = [_LINE.fullmatch(line) for line in lines if line.strip()]
    keys = [pair["key"] for pair in pairs if pair]
    if None in pairs or len(keys) != len(set(keys)):
        raise CourseError("INVALID_SKILL", "the header is not a list of keys and values")
    values = {pair["key"]: pair["value"] for pair in pairs if pair}
    match (re.fullmatch(_NAME, values.get("name", "")), values.get("description", "")):
        case (None, _):
            raise CourseError("INVALID_SKILL", "name")
        case (_, text) if not _PLAIN.fullmatch(text) or not text.isprintable():
            for char in text:
                if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp"):
                    raise CourseError("INVALID_SKILL", f"U+{ord(char):04X}")
            if not _PLAIN.fullmatch(text):
                raise CourseError("INVALID_SKILL", "description")
    return _Head(values["name"], values["description"], front.end())


def activate_skill(catalog: Catalog, name: str, *, resources: Sequence[str] = ()) -> ActivatedSkill:
    """The skill with its text and files."""
    match [skill for skill in catalog.skills if skill.name == name]:
        case [skill]:
            pass
        case _:
            raise CourseError("UNKNOWN_SKILL", name)
    if str(skill.root) != os.path.realpath(skill.root):
        raise CourseError("PATH_ESCAPE", f"{skill.root} moved")
    path = contained(skill.root, "SKILL.md")
    data = _load(path, catalog.limits.file_bytes)
    head = _head(data, catalog.limits.header_bytes)
    if head.name != skill.name:
        raise CourseError("SKILL_CHANGED", head.name)
    places = {request: contained(skill.root, request) for request in resources}
    files = tuple(
        SkillFile(request, place, _words(_load(place, catalog.limits.file_bytes)))
        for request, place in places.items()
    )
    sha = hashlib.sha256(data).hexdigest()
    return ActivatedSkill(
        name, skill.root, path, _words(data[head.end :]), files, sha, skill.digest
    )


def render_template(template: Resource, args: Mapping[str, str], *, at: int) -> UserMessage:
    """The filled template as a message."""
    match template:
        case Resource(kind="template", body=str(body)):
            pass
        case _:
            raise CourseError("INVALID_TEMPLATE", template.name)
    wanted = {place["name"] for place in _PLACE.finditer(body)}
    given = set(args)
    if wanted - given:
        raise CourseError("MISSING_ARGUMENT", " ".join(sorted(wanted - given)))
    if any(not isinstance(args[name], str) for name in wanted):
        raise CourseError("INVALID_ARGUMENT", template.name)

    def value(place: re.Match[str]) -> str:
        return args[place["name"]]

    return user([TextBlock(_PLACE.sub(value, body))], at=at)


def format_resource_context(catalog: Catalog, activated: Iterable[ActivatedSkill] = ()) -> str:
    """The prompt of the catalogue and the active skills."""
    seen: dict[str, ActivatedSkill] = {}
    for item in activated:
        match next((skill for skill in catalog.skills if skill.name == item.name), None):
            case Resource(root=root, digest=digest) if (root, digest) == (item.root, item.entry):
                pass
            case _:
                raise CourseError("FOREIGN_ACTIVATION", item.name)
        if item.name in seen:
            raise CourseError("DUPLICATE_ACTIVATION", item.name)
        seen[item.name] = item
    rows: list[tuple[str, str, str]] = []
    rows += [("rules", item.name, item.body or "") for item in catalog.instructions]
    rows += [("available-skill", item.name, item.description) for item in catalog.skills]
    for name in sorted(seen):
        rows.append(("loaded-skill", name, seen[name].body))
        files = sorted((file.request, file.content) for file in seen[name].files)
        rows += [("loaded-file", f"{name}: {request}", content) for request, content in files]
    return "\n\n".join(
        f"<{tag} title={saxutils.quoteattr(title)}>\n{saxutils.escape(text)}\n</{tag}>"
        for tag, title, text in rows
    )


@dataclass(frozen=True)
class _AddTool:
    tool: Tool


@dataclass(frozen=True)
class _AddHook:
    hook: HookName
    listener: HookListener


class _Recorder:
    """A context: it writes down what it is told, until the pen is taken away."""

    def __init__(self) -> None:
        self._script: list[_AddTool | _AddHook] | None = []

    def register_tool(self, tool: Tool) -> None:
        self._write(_AddTool(tool))

    def on(self, hook: HookName, listener: HookListener) -> None:
        if self._script is not None and (hook not in get_args(HookName) or not callable(listener)):
            raise CourseError("INVALID_HOOK", f"{hook}")
        self._write(_AddHook(hook, listener))

    def _write(self, command: _AddTool | _AddHook) -> None:
        if self._script is None:
            raise CourseError("CONTEXT_CLOSED", type(command).__name__)
        self._script.append(command)

    def _finish(self) -> list[_AddTool | _AddHook]:
        script, self._script = self._script or [], None
        return script


class _Answered(NamedTuple):
    value: Any


class _Raised(NamedTuple):
    error: BaseException


class _Late(NamedTuple):
    seconds: float


_End: TypeAlias = _Answered | _Raised | _Late


async def _end_of(
    function: Callable[[Any], object], argument: object, seconds: float | None
) -> _End:
    """How the call ends; the end comes through a queue, so waiting for it can always stop."""
    loop = asyncio.get_running_loop()
    mail: asyncio.Queue[_End] = asyncio.Queue()

    def call() -> _End:
        try:
            return _Answered(function(argument))
        except BaseException as error:
            return _Raised(error)

    def in_thread() -> None:
        end = call()
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(mail.put_nowait, end)

    async def await_it(value: Any) -> None:
        try:
            mail.put_nowait(_Answered(await value))
        except GeneratorExit:
            raise
        except BaseException as error:
            mail.put_nowait(_Raised(error))

    task: asyncio.Task[None] | None = None
    try:
        async with asyncio.timeout(seconds):
            if seconds is None:
                end = call()
            else:
                threading.Thread(target=in_thread, daemon=True).start()
                end = await mail.get()
            match end:
                case _Answered(value) if inspect.isawaitable(value):
                    task = asyncio.create_task(await_it(value))
                    end = await mail.get()
    except TimeoutError:
        end = _Late(seconds or 0)
    finally:
        if task is not None:
            task.cancel()
    match end:
        case _Raised(KeyboardInterrupt() | asyncio.CancelledError() as error):
            raise error
    return end


def _tell(end: _End) -> tuple[FaultKind, str]:
    match end:
        case _Late(seconds):
            return "timeout", f"not within {seconds} s"
        case _Raised(error):
            with contextlib.suppress(Exception):
                return "error", f"{type(error).__name__} {error}"
            return "error", type(error).__name__
        case _Answered(value):
            return "bad_result", type(value).__name__


def _seen_at(path: Path) -> tuple[str, str]:
    real = os.path.realpath(path)
    try:
        regular = stat.S_ISREG(Path(real).stat().st_mode)
        return real, hashlib.sha256(Path(real).read_bytes()).hexdigest() if regular else "-"
    except OSError:
        return real, "-"


async def load_extension(
    source: ExtensionSource,
    *,
    is_trusted: Callable[[ExtensionSource], object],
    import_module: Callable[[ExtensionSource], object],
    host: ExtensionHost,
    timeout: float | None = None,
) -> LoadResult:
    """How the load ended."""
    match source:
        case ExtensionSource(id=str(id), path=path) if id.strip() and id.isprintable():
            if not Path(path).name or "\0" in str(path):
                raise CourseError("INVALID_SOURCE", f"{path!r}")
        case _:
            raise CourseError("INVALID_SOURCE", f"{source.id!r}")
    if not isinstance(host, _Theatre):
        raise CourseError("INVALID_HOST", f"{type(host)}")

    async def perform(function: Callable[[Any], object], argument: object) -> Any:
        match await _end_of(function, argument, timeout):
            case _Answered(value):
                return value
            case _Raised(error) as end:
                raise CourseError("EXTENSION_FAILED", _tell(end)[1]) from error
            case end:
                raise CourseError("EXTENSION_TIMEOUT", _tell(end)[1])

    before = _seen_at(path)
    match await _end_of(is_trusted, replace(source), None):
        case _Answered(True as answer) if isinstance(answer, bool):
            pass
        case _Answered(False as answer) if isinstance(answer, bool):
            return LoadResult(id, "skipped_untrusted")
        case end:
            note = HookDiagnostic(id, "is_trusted", *_tell(end))
            return LoadResult(id, "skipped_untrusted", (note,))
    if before != _seen_at(path):
        raise CourseError("SOURCE_CHANGED", f"{path}")
    module = await perform(import_module, replace(source))
    if not callable(factory := getattr(module, "default", None)):
        raise CourseError("INVALID_EXTENSION", id)
    recorder = _Recorder()
    script: list[_AddTool | _AddHook] = []
    try:
        await perform(factory, recorder)
    finally:
        script = recorder._finish()
    host._replay(id, script)
    return LoadResult(id, "active")


@dataclass(frozen=True, slots=True, eq=False)
class _Theatre:
    _registry: ToolRegistry
    _seconds: float
    _report: Callable[[HookDiagnostic], object]
    _played: list[str] = field(default_factory=list)
    _hooks: list[tuple[str, _AddHook]] = field(default_factory=list)

    def _replay(self, id: str, script: list[_AddTool | _AddHook]) -> None:
        if id in self._played:
            raise CourseError("DUPLICATE_EXTENSION", id)
        self._registry.register_all([c.tool for c in script if isinstance(c, _AddTool)])
        self._hooks.extend((id, c) for c in script if isinstance(c, _AddHook))
        self._played.append(id)

    def wrap_executor(self, core: ToolExecutor) -> ToolExecutor:
        return functools.partial(self._execute, core)

    async def _execute(
        self, core: ToolExecutor, call: ToolCall, ctx: ExecContext
    ) -> ToolResultMessage:
        hooks = list(self._hooks)
        for id, command in hooks:
            if command.hook == "before_tool_call":
                end = await _end_of(command.listener, _dup(call), self._seconds)
                match end:
                    case _Answered(None | Allow()):
                        continue
                    case _Answered(Deny(reason)):
                        return _no(call, ctx, "DENIED", id, str(reason))
                kind, message = _tell(end)
                await self._note(HookDiagnostic(id, "before_tool_call", kind, message))
                return _no(call, ctx, "HOOK_FAILED", id, kind)
        result = await _act(core, call, ctx)
        for id, command in hooks:
            if command.hook == "after_tool_result":
                end = await _end_of(command.listener, _dup(result), self._seconds)
                if not isinstance(end, _Answered):
                    await self._note(HookDiagnostic(id, "after_tool_result", *_tell(end)))
        return result

    async def _note(self, found: HookDiagnostic) -> None:
        await _end_of(self._report, found, None)


_V = TypeVar("_V", ToolCall, ToolResultMessage)


def _dup(value: _V) -> _V:
    """An equal value made of new parts, each frozen again by its own class."""
    if isinstance(value, ToolCall):
        return replace(value, arguments=thaw(value.arguments))
    return replace(value, content=copy.deepcopy(value.content), details=thaw(value.details))


def _no(call: ToolCall, ctx: ExecContext, code: str, id: str, reason: str) -> ToolResultMessage:
    reason = "".join("?" if "\ud800" <= char <= "\udfff" else char for char in reason)
    plain = error_result(call, code, reason, at=ctx.clock.now_ms())
    return replace(plain, details={"code": code, "extension_id": id, "reason": reason})


async def _act(core: ToolExecutor, call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
    try:
        answer: object = await core(_dup(call), ctx)
    except (Exception, SystemExit) as error:
        return error_result(call, "TOOL_FAILED", _tell(_Raised(error))[1], at=ctx.clock.now_ms())
    match answer:
        case ToolResultMessage(call_id=call.id, tool_name=call.name):
            with contextlib.suppress(Exception):
                return _dup(cast(ToolResultMessage, validate_message(answer)))
    return error_result(call, "BAD_OUTPUT", f"{type(answer)}", at=ctx.clock.now_ms())


def create_extension_host(
    registry: ToolRegistry, *, hook_timeout: float, report: Callable[[HookDiagnostic], object]
) -> ExtensionHost:
    """A new host."""
    return _Theatre(registry, hook_timeout, report)
