"""Middleware: each gate is a link around the rest of the chain, and the core is the last link."""

from __future__ import annotations

import abc
import asyncio
import concurrent.futures
import contextlib
import copy
import dataclasses
import enum
import functools
import hashlib
import html
import inspect
import io
import operator
import os
import string
import threading
import unicodedata
from collections import ChainMap, deque
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import (
    Any,
    ClassVar,
    Literal,
    Protocol,
    TypeAlias,
    cast,
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
from pi_course.values import JSONValue, deep_freeze, thaw

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


LETTERS = frozenset(string.ascii_letters)
DIGITS = frozenset(string.digits)
QUOTES = frozenset("\"'|>[{&*!%@`")


class _Source(abc.ABC):
    """One kind of resource: where it lies in a root, and how it is read."""

    kind: ClassVar[Kind]

    def __init__(self, root: Path, order: int, limits: ResourceLimits) -> None:
        self.root, self.order, self.limits = root, order, limits

    @abc.abstractmethod
    def requests(self) -> Iterator[str]:
        """Paths below the root."""

    @abc.abstractmethod
    def read(self, request: str) -> Resource:
        """The resource at one of them."""

    def whole(self, name: str, request: str) -> Resource:
        path = contained(self.root, request)
        data = read_limited(path, self.limits.file_bytes)
        return self.make(name, "", path, self.root, data, decode(data))

    def make(
        self, name: str, about: str, path: Path, home: Path, data: bytes, body: str | None
    ) -> Resource:
        check(is_name(name), "INVALID_NAME", name)
        digest = hashlib.sha256(data).hexdigest()
        return Resource(self.kind, name, about, path, home, self.order, digest, body)


class _Instructions(_Source):
    kind = "instructions"

    def requests(self) -> Iterator[str]:
        if any(path.name == "AGENTS.md" for path in self.root.iterdir()):
            yield "AGENTS.md"

    def read(self, request: str) -> Resource:
        return self.whole("AGENTS", request)


class _Skills(_Source):
    kind = "skill"

    def requests(self) -> Iterator[str]:
        yield from below(self.root, "skills")

    def read(self, request: str) -> Resource:
        home = contained(self.root, request)
        names = [path.name for path in home.iterdir()] if home.is_dir() else []
        check("SKILL.md" in names, "INVALID_SKILL", request)
        path = contained(home, "SKILL.md")
        data = read_limited(path, self.limits.header_bytes, cut=True)
        header, rest = split_header(data, self.limits.header_bytes)
        used = data[: len(data) - len(rest)]
        return self.make(header["name"], header["description"], path, home, used, None)


class _Templates(_Source):
    kind = "template"

    def requests(self) -> Iterator[str]:
        for request in below(self.root, "prompts"):
            if request.endswith(".md") or request == "prompts":
                yield request

    def read(self, request: str) -> Resource:
        contained(self.root, request)
        folder, _, file = request.partition("/")
        check(bool(file), "INVALID_NAME", folder)
        return self.whole(file.removesuffix(".md"), request)


def check(condition: bool, code: str, message: str) -> None:
    """Raise unless the condition holds."""
    if not condition:
        raise CourseError(code, message)


def below(root: Path, folder: str) -> list[str]:
    """Visible entries of a folder of the root; the folder itself when it cannot be read."""
    if folder not in {path.name for path in root.iterdir()}:
        return []
    try:
        names = sorted(path.name for path in contained(root, folder).iterdir())
    except (CourseError, OSError):
        return [folder]
    return [f"{folder}/{name}" for name in names if not name.startswith(".")]


def is_name(text: str) -> bool:
    """Whether a text can be the name of a resource."""
    allowed = LETTERS | DIGITS
    return text[:1] in allowed and len(text) <= 64 and frozenset(text) <= allowed | set("._-")


def read_limited(path: Path, limit: int, *, cut: bool = False) -> bytes:
    """At most limit + 1 bytes of a regular file."""
    check(path.is_file(), "UNREADABLE", str(path))
    buffer = bytearray()
    try:
        with path.open("rb", buffering=0) as stream:
            while len(buffer) <= limit and (piece := stream.read(limit + 1 - len(buffer))):
                buffer += piece
    except OSError as error:
        raise CourseError("UNREADABLE", str(error)) from error
    check(cut or len(buffer) <= limit, "UNREADABLE", f"{path}: {limit}")
    return bytes(buffer)


def decode(data: bytes) -> str:
    """UTF-8 text without a BOM, lines ended by LF."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeError as error:
        raise CourseError("UNREADABLE", str(error)) from error


def split_header(data: bytes, limit: int) -> tuple[dict[str, str], bytes]:
    """The fields of the header and all bytes after it."""
    first, newline, rest = data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    check(first.removesuffix(b"\r") == b"---" and newline == b"\n", "INVALID_SKILL", "no header")
    fields: dict[str, str] = {}
    while True:
        check(bool(rest), "INVALID_SKILL", "no end of the header")
        line, newline, rest = rest.partition(b"\n")
        check(len(data) - len(rest) <= limit, "INVALID_SKILL", "the header is too long")
        if line == b"---" or (newline and line == b"---\r"):
            break
        text = decode(line.removesuffix(b"\r"))
        if not text.strip():
            continue
        key, colon, value = text.partition(":")
        good = key[:1] in LETTERS and frozenset(key) <= LETTERS | DIGITS | set("_-")
        check(good and bool(colon) and key not in fields, "INVALID_SKILL", text)
        fields[key] = value.strip(" \t")
    check(is_name(fields.get("name", "")), "INVALID_SKILL", "name")
    about = fields.get("description", "")
    hidden = [c for c in about if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")]
    plain = bool(about) and about[0] not in QUOTES and not hidden
    check(plain, "INVALID_SKILL", "description")
    return fields, rest


def discover_resources(
    roots: Iterable[Path], *, limits: ResourceLimits = DEFAULT_LIMITS
) -> Catalog:
    """The catalogue of all roots."""
    layers: list[dict[tuple[str, str], Resource]] = []
    notes: list[ResourceDiagnostic] = []
    paths = list(dict.fromkeys(os.path.realpath(root) for root in roots))
    for order, path in enumerate(paths):
        check(Path(path).is_dir(), "INVALID_ROOT", path)
        layer: dict[tuple[str, str], Resource] = {}
        for kind in (_Instructions, _Skills, _Templates):
            reader = kind(Path(path), order, limits)
            for request in reader.requests():
                try:
                    item = reader.read(request)
                except CourseError as error:
                    reason: Any = {"PATH_ESCAPE": "escape"}.get(error.code, "invalid")
                    place = Path(path) / request
                    notes.append(ResourceDiagnostic(reason, place, error.message))
                    continue
                twin = layer.setdefault((item.kind, item.name), item)
                same = twin.source == item.source
                check(same, "DUPLICATE_RESOURCE", f"{twin.source}, {item.source}")
        layers.append(layer)
    view = ChainMap(*layers)
    for layer in layers:
        for key, item in layer.items():
            if view[key] is not item:
                winner = view[key].source
                text = f"{item.source} is behind {winner}"
                notes.append(ResourceDiagnostic("shadowed", item.source, text, winner))
    by_kind: dict[str, list[Resource]] = {kind: [] for kind in KINDS}
    for key in sorted(view, key=operator.itemgetter(1)):
        by_kind[key[0]].append(view[key])
    rules, skills, templates = (tuple(by_kind[kind]) for kind in KINDS)
    return Catalog((*rules, *skills, *templates), rules, skills, templates, tuple(notes), limits)


def activate_skill(catalog: Catalog, name: str, *, resources: Sequence[str] = ()) -> ActivatedSkill:
    """The skill with its text and files."""
    index = {skill.name: skill for skill in catalog.skills}
    check(name in index, "UNKNOWN_SKILL", name)
    home = index[name].root
    check(os.path.realpath(home) == os.fspath(home), "PATH_ESCAPE", str(home))
    limit = catalog.limits.file_bytes
    path = contained(home, "SKILL.md")
    data = read_limited(path, limit)
    header, rest = split_header(data, catalog.limits.header_bytes)
    check(header["name"] == name, "SKILL_CHANGED", header["name"])

    def attach(request: str) -> SkillFile:
        place = contained(home, request)
        return SkillFile(request, place, decode(read_limited(place, limit)))

    return ActivatedSkill(
        name,
        home,
        path,
        decode(rest),
        tuple(map(attach, dict.fromkeys(resources))),
        hashlib.sha256(data).hexdigest(),
        index[name].digest,
    )


def render_template(template: Resource, args: Mapping[str, str], *, at: int) -> UserMessage:
    """The filled template as a message."""
    check(template.kind == "template", "INVALID_TEMPLATE", template.name)
    out: list[str] = []
    missing: list[str] = []
    wrong: list[str] = []
    rest = template.body or ""
    while True:
        before, braces, after = rest.partition("{{")
        if not braces:
            out.append(rest)
            break
        name, closing, tail = after.partition("}}")
        letters = LETTERS | {"_"}
        is_place = closing and name[:1] in letters and frozenset(name) <= letters | DIGITS
        if not is_place:
            out.append(before + "{")
            rest = "{" + after
            continue
        out.append(before)
        rest = tail
        if name not in args:
            missing.append(name)
        elif not isinstance(args[name], str):
            wrong.append(name)
        else:
            out.append(args[name])
    check(not missing, "MISSING_ARGUMENT", ", ".join(missing))
    check(not wrong, "INVALID_ARGUMENT", ", ".join(wrong))
    return user("".join(out), at=at)


def format_resource_context(catalog: Catalog, activated: Iterable[ActivatedSkill] = ()) -> str:
    """The prompt of the catalogue and the active skills."""
    queue: dict[str, ActivatedSkill] = {}
    for item in activated:
        check(item.name not in queue, "DUPLICATE_ACTIVATION", item.name)
        queue[item.name] = item
    for item in queue.values():
        entries = [(s.root, s.digest) for s in catalog.skills if s.name == item.name]
        check((item.root, item.entry) in entries, "FOREIGN_ACTIVATION", item.name)
    page = io.StringIO()

    def write(title: str, text: str) -> None:
        page.write(f"{chr(10) * 2 if page.tell() else ''}# {html.escape(title)}\n")
        page.write("\n".join(f"> {html.escape(line, quote=False)}" for line in text.split("\n")))

    for rules in catalog.instructions:
        write(f"Instructions {rules.name}", rules.body or "")
    for skill in catalog.skills:
        write(f"Skill {skill.name}", skill.description)
    for name in sorted(queue):
        write(f"Active skill {name}", queue[name].body)
        for file in sorted(queue[name].files, key=operator.attrgetter("request")):
            write(f"File {file.request.splitlines()} of {name}", file.content)
    return page.getvalue()


class Outcome(enum.Enum):
    """How a call into an extension ends."""

    VALUE = "value"
    ERROR = "error"
    TIMEOUT = "timeout"


async def visit(
    function: Callable[[Any], object], argument: object, seconds: float | None
) -> tuple[Outcome, Any]:
    """Call a foreign function, plain or async; wait no longer than `seconds`."""
    trip = asyncio.ensure_future(_trip(function, argument, seconds is not None))
    try:
        outcome, value = await asyncio.wait_for(asyncio.shield(trip), seconds)
    except TimeoutError:  # only of wait_for: _trip hands errors on as values
        return Outcome.TIMEOUT, TimeoutError(f"{seconds} s")
    finally:
        trip.cancel()
    if outcome is Outcome.ERROR and isinstance(value, KeyboardInterrupt | asyncio.CancelledError):
        raise value
    return outcome, value


async def _trip(
    function: Callable[[Any], object], argument: object, apart: bool
) -> tuple[Outcome, Any]:
    try:
        if apart:
            answer: concurrent.futures.Future[list[Any]] = concurrent.futures.Future()
            answer.set_running_or_notify_cancel()
            work = functools.partial(_deliver, answer, function, argument)
            threading.Thread(target=work, daemon=True).start()
            value, *errors = await asyncio.wrap_future(answer)
            if errors:
                return Outcome.ERROR, errors[0]
        else:
            value = function(argument)
        return Outcome.VALUE, (await value) if inspect.isawaitable(value) else value
    except (GeneratorExit, asyncio.CancelledError):
        raise
    except BaseException as error:
        return Outcome.ERROR, error


def _deliver(
    answer: concurrent.futures.Future[list[Any]], function: Callable[[Any], object], argument: Any
) -> None:
    try:
        answer.set_result([function(argument)])
    except BaseException as error:
        answer.set_result([None, error])


def describe(value: object) -> str:
    """Words for what came instead of an answer."""
    try:
        return f"{type(value).__name__}({value})"
    except Exception:
        return type(value).__name__


class _Context:
    def __init__(self) -> None:
        self._tools: deque[Tool] = deque()
        self._gates: deque[HookListener] = deque()
        self._observers: deque[HookListener] = deque()
        self._ended = False

    def register_tool(self, tool: Tool) -> None:
        check(not self._ended, "CONTEXT_CLOSED", "register_tool")
        self._tools.append(tool)

    def on(self, hook: HookName, listener: HookListener) -> None:
        check(not self._ended, "CONTEXT_CLOSED", "on")
        lists = {"before_tool_call": self._gates, "after_tool_result": self._observers}
        check(hook in lists and callable(listener), "INVALID_HOOK", str(hook))
        lists[hook].append(listener)


class _Host:
    __slots__ = ("_gates", "_ids", "_observers", "_registry", "_report", "_seconds")

    def __init__(self, registry: ToolRegistry, seconds: float, report: Any) -> None:
        self._registry, self._seconds, self._report = registry, seconds, report
        self._ids: frozenset[str] = frozenset()
        self._gates: tuple[tuple[str, HookListener], ...] = ()
        self._observers: tuple[tuple[str, HookListener], ...] = ()

    def wrap_executor(self, core: ToolExecutor) -> ToolExecutor:
        async def chain(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
            link: ToolExecutor = self._observed(core, self._observers)
            for owner, gate in reversed(self._gates):
                link = self._gated(owner, gate, link)
            return await link(call, ctx)

        return chain

    def _gated(self, owner: str, gate: HookListener, inner: ToolExecutor) -> ToolExecutor:
        async def link(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
            outcome, verdict = await visit(gate, private(call), self._seconds)
            if outcome is Outcome.VALUE:
                if verdict is None or isinstance(verdict, Allow):
                    return await inner(call, ctx)
                if isinstance(verdict, Deny):
                    return refuse(call, ctx, "DENIED", owner, verdict.reason)
            kind: Any = "bad_result" if outcome is Outcome.VALUE else outcome.value
            await self._tell(owner, "before_tool_call", kind, verdict)
            return refuse(call, ctx, "HOOK_FAILED", owner, kind)

        return link

    def _observed(
        self, core: ToolExecutor, observers: tuple[tuple[str, HookListener], ...]
    ) -> ToolExecutor:
        async def link(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
            fact = await establish(core, call, ctx)
            for owner, observer in observers:
                outcome, value = await visit(observer, reissue(call, fact), self._seconds)
                if outcome is not Outcome.VALUE:
                    await self._tell(owner, "after_tool_result", cast(Any, outcome.value), value)
            return reissue(call, fact)

        return link

    async def _tell(self, owner: str, hook: HookName, kind: FaultKind, value: object) -> None:
        await visit(self._report, HookDiagnostic(owner, hook, kind, describe(value)), None)


def private(call: ToolCall) -> ToolCall:
    """An equal call that shares nothing."""
    return ToolCall(call.id, call.name, deep_freeze(thaw(call.arguments)))


def reissue(call: ToolCall, fact: ToolResultMessage) -> ToolResultMessage:
    """An equal result that shares nothing."""
    blocks = [copy.copy(block) for block in fact.content]
    details = thaw(fact.details)
    return tool_result(call, blocks, is_error=fact.is_error, details=details, at=fact.timestamp)


def refuse(
    call: ToolCall, ctx: ExecContext, code: str, owner: str, reason: object
) -> ToolResultMessage:
    """The paired error result of a call that a gate did not let through."""
    legal = str(reason).encode("utf-8", "replace").decode("utf-8")
    details: JSONValue = {"code": code, "extension_id": owner, "reason": legal}
    now = ctx.clock.now_ms()
    return tool_result(call, f"{code}: {legal}", is_error=True, details=details, at=now)


async def establish(core: ToolExecutor, call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
    """What core answered, or the error that stands for what it did instead."""
    try:
        answer: Any = await core(private(call), ctx)
    except (Exception, SystemExit) as error:
        return error_result(call, "TOOL_FAILED", describe(error), at=ctx.clock.now_ms())
    try:
        check(isinstance(answer, ToolResultMessage), "BAD_OUTPUT", describe(answer))
        paired = (answer.call_id, answer.tool_name) == (call.id, call.name)
        check(paired, "BAD_OUTPUT", "the answer to another call")
        return reissue(call, answer)
    except Exception as error:
        return error_result(call, "BAD_OUTPUT", describe(error), at=ctx.clock.now_ms())


async def load_extension(
    source: ExtensionSource,
    *,
    is_trusted: Callable[[ExtensionSource], object],
    import_module: Callable[[ExtensionSource], object],
    host: ExtensionHost,
    timeout: float | None = None,
) -> LoadResult:
    """How the load ended."""
    check(bool(source.id.strip()) and source.id.isprintable(), "INVALID_SOURCE", "id")
    path = PurePosixPath(str(source.path))
    check(path.name != "" and "\0" not in str(path), "INVALID_SOURCE", "path")
    if not isinstance(host, _Host):
        raise CourseError("INVALID_HOST", describe(host))

    async def step(function: Callable[[Any], object], argument: object) -> Any:
        outcome, value = await visit(function, argument, timeout)
        if outcome is Outcome.TIMEOUT:
            raise CourseError("EXTENSION_TIMEOUT", f"{timeout} s") from value
        if outcome is Outcome.ERROR:
            raise CourseError("EXTENSION_FAILED", describe(value)) from value
        return value

    state = look_at(source.path)
    outcome, answer = await visit(is_trusted, dataclasses.replace(source), None)
    if outcome is not Outcome.VALUE or answer is not True:
        notes: list[HookDiagnostic] = []
        if outcome is Outcome.ERROR or not isinstance(answer, bool):
            kind: FaultKind = "error" if outcome is Outcome.ERROR else "bad_result"
            notes.append(HookDiagnostic(source.id, "is_trusted", kind, describe(answer)))
        return LoadResult(source.id, "skipped_untrusted", tuple(notes))
    check(look_at(source.path) == state, "SOURCE_CHANGED", str(source.path))
    module = await step(import_module, dataclasses.replace(source))
    check(callable(getattr(module, "default", None)), "INVALID_EXTENSION", source.id)
    context = _Context()
    try:
        await step(cast(Any, module).default, context)
    finally:
        context._ended = True
    check(source.id not in host._ids, "DUPLICATE_EXTENSION", source.id)
    host._registry.register_all(tuple(context._tools))
    host._ids |= {source.id}
    host._gates += tuple((source.id, gate) for gate in context._gates)
    host._observers += tuple((source.id, observer) for observer in context._observers)
    return LoadResult(source.id, "active")


def look_at(path: Path) -> tuple[str, str]:
    """Where a path leads and what is there."""
    real = os.path.realpath(path)
    with contextlib.suppress(OSError):
        if Path(real).is_file():
            return real, hashlib.sha256(Path(real).read_bytes()).hexdigest()
    return real, ""


def create_extension_host(
    registry: ToolRegistry, *, hook_timeout: float, report: Callable[[HookDiagnostic], object]
) -> ExtensionHost:
    """A new host."""
    return _Host(registry, hook_timeout, report)
