"""Small values passed along: results that are Ok or Bad, a ledger, a clock task as the deadline."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import hashlib
import html
import inspect
import io
import os
import re
import string
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
from pathlib import Path, PurePosixPath
from typing import (
    Any,
    Generic,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
)
from xml.sax import saxutils

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
from pi_course.values import deep_freeze, thaw

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


T = TypeVar("T")


@dataclass(frozen=True)
class Ok(Generic[T]):
    """It went well."""

    value: T


@dataclass(frozen=True)
class Bad:
    """It did not."""

    kind: str
    message: str
    cause: BaseException | None = None


@dataclass
class Ledger:
    """What has been found so far; the first of a key stays."""

    limits: ResourceLimits
    resources: dict[str, Resource] = field(default_factory=dict)
    notes: list[ResourceDiagnostic] = field(default_factory=list)

    def enter(self, page: Mapping[str, Resource]) -> None:
        """Add all that one root offers."""
        for key in page.keys() & self.resources.keys():
            loser, winner = page[key], self.resources[key]
            message = f"{key}: {winner.source} is used, {loser.source} is not"
            self.notes.append(ResourceDiagnostic("shadowed", loser.source, message, winner.source))
        self.resources = {**page, **self.resources}

    def catalog(self) -> Catalog:
        """All of it as a value."""
        rank = KINDS.index
        rows = sorted(self.resources.values(), key=lambda row: (rank(row.kind), row.name))
        split: dict[str, list[Resource]] = {"instructions": [], "skill": [], "template": []}
        for row in rows:
            split[row.kind].append(row)
        rules, skills, templates = map(tuple, split.values())
        notes = sorted(self.notes, key=lambda note: (note.kind, str(note.source)))
        return Catalog(tuple(rows), rules, skills, templates, tuple(notes), self.limits)


def discover_resources(
    roots: Iterable[Path], *, limits: ResourceLimits = DEFAULT_LIMITS
) -> Catalog:
    """The catalogue of all roots."""
    ledger = Ledger(limits)
    done: list[Path] = []
    for root in map(Path, roots):
        if not root.is_dir():
            raise CourseError("INVALID_ROOT", f"{root} is no folder")
        if any(root.samefile(other) for other in done):
            continue
        page: dict[str, Resource] = {}
        home = root.resolve()
        for kind, request in claims(home):
            match attempt(kind, home, request, len(done), limits):
                case Ok(value=resource):
                    key = f"{resource.kind}:{resource.name}"
                    if page.setdefault(key, resource).source != resource.source:
                        raise CourseError("DUPLICATE_RESOURCE", f"{key} twice in {root}")
                case Bad(kind=reason, message=message):
                    ledger.notes.append(
                        ResourceDiagnostic(cast(Any, reason), home / request, message)
                    )
        ledger.enter(page)
        done.append(root)
    return ledger.catalog()


def claims(home: Path) -> Iterator[tuple[Kind, str]]:
    """What could be a resource: its kind and its path below the root."""
    top = {entry.name for entry in os.scandir(home)}
    if "AGENTS.md" in top:
        yield "instructions", "AGENTS.md"
    kinds: dict[str, Kind] = {"skills": "skill", "prompts": "template"}
    for folder, kind in kinds.items():
        if folder in top:
            for name in children(home, folder):
                if name is None:
                    yield kind, folder
                elif name[0] != "." and (kind == "skill" or name.endswith(".md")):
                    yield kind, f"{folder}/{name}"


def children(home: Path, folder: str) -> list[str] | list[None]:
    """The names in a folder; a single None if they cannot be had."""
    try:
        return sorted(entry.name for entry in os.scandir(contained(home, folder)))
    except (OSError, CourseError):
        return [None]


def attempt(
    kind: Kind, home: Path, request: str, order: int, limits: ResourceLimits
) -> Ok[Resource] | Bad:
    """The resource, or why there is none."""
    try:
        return Ok(resource_at(kind, home, request, order, limits))
    except CourseError as error:
        return Bad("escape" if error.code == "PATH_ESCAPE" else "invalid", str(error))
    except OSError as error:
        return Bad("invalid", type(error).__name__)


def resource_at(
    kind: Kind, home: Path, request: str, order: int, limits: ResourceLimits
) -> Resource:
    """The resource that a root has at this place."""
    path = contained(home, request)
    if kind != "skill":
        name = PurePosixPath(request).stem if request.endswith(".md") else ""
        require(fits(name), "INVALID_NAME", request)
        whole = Bytes.of(path, limits.file_bytes)
        return Resource(kind, name, "", path, home, order, whole.digest, whole.text)
    names = {entry.name for entry in os.scandir(path)}
    require("SKILL.md" in names, "INVALID_SKILL", f"no SKILL.md in {request}")
    source = contained(path, "SKILL.md")
    front, _ = Bytes.of(source, limits.header_bytes, more=True).split(limits.header_bytes)
    name, about = front.title()
    return Resource(kind, name, about, source, path, order, front.digest, None)


def require(condition: object, code: str, message: str) -> None:
    """A CourseError unless the condition holds."""
    if not condition:
        raise CourseError(code, message)


def fits(name: str) -> bool:
    """Whether this can be a name."""
    head, tail = name[:1], name[1:64]
    return (
        name == head + tail
        and head.isascii()
        and head.isalnum()
        and all(char.isascii() and (char.isalnum() or char in "._-") for char in tail)
    )


class Bytes(bytes):
    """Bytes of a file that know their digest and their text."""

    @classmethod
    def of(cls, path: Path, limit: int, *, more: bool = False) -> Bytes:
        """The content of a regular file of no more than `limit` bytes."""
        require(path.is_file(), "UNREADABLE", f"{path} is not a regular file")
        try:
            with path.open("rb") as stream:
                data = cls(stream.read(limit + 1))
        except OSError as error:
            raise CourseError("UNREADABLE", f"{path}: {error}") from error
        require(more or len(data) <= limit, "UNREADABLE", f"{path} is larger than {limit}")
        return data

    @property
    def digest(self) -> str:
        """SHA-256 in hex."""
        return hashlib.sha256(self).hexdigest()

    @property
    def text(self) -> str:
        """As text."""
        try:
            return self.removeprefix(b"\xef\xbb\xbf").decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise CourseError("UNREADABLE", f"byte {error.start} is not UTF-8") from error

    def split(self, limit: int) -> tuple[Bytes, Bytes]:  # type: ignore[override]
        """The header with both fences, and what is behind it."""
        lines = io.BytesIO(self)
        lines.seek(3 if self[:3] == b"\xef\xbb\xbf" else 0)
        opening = lines.readline()
        require(opening in (b"---\n", b"---\r\n"), "INVALID_SKILL", "the first line is not ---")
        while line := lines.readline():
            if line.removesuffix(b"\n").removesuffix(b"\r" * line.endswith(b"\n")) == b"---":
                end = lines.tell()
                require(end <= limit, "INVALID_SKILL", f"the header is larger than {limit}")
                return Bytes(self[:end]), Bytes(self[end:])
        raise CourseError("INVALID_SKILL", "the header does not end")

    def title(self) -> tuple[str, str]:
        """Name and description that a header gives."""
        pairs: dict[str, str] = {}
        for line in self.text.split("\n")[1:]:
            if line == "---" or not line.strip():
                continue
            key, colon, value = line.partition(":")
            legal = set(key) <= set(string.ascii_letters + string.digits + "_-")
            legal = legal and key[:1].isalpha() and bool(colon)
            require(legal and key not in pairs, "INVALID_SKILL", f"the line {line!r}")
            pairs[key] = value.strip(" \t")
        name, about = pairs.get("name", ""), pairs.get("description", "")
        require(fits(name), "INVALID_SKILL", f"the name {name!r}")
        unseen = any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") for c in about)
        plain = about and about[0] not in "\"'|>[{&*!%@`" and not unseen
        require(plain, "INVALID_SKILL", f"the description {about!r}")
        return name, about


def activate_skill(catalog: Catalog, name: str, *, resources: Sequence[str] = ()) -> ActivatedSkill:
    """The skill with its text and files."""
    skill = dict(zip((s.name for s in catalog.skills), catalog.skills, strict=True)).get(name)
    if skill is None:
        raise CourseError("UNKNOWN_SKILL", f"{name!r} is not listed")
    require(os.path.realpath(skill.root) == str(skill.root), "PATH_ESCAPE", "the folder is a link")
    path = contained(skill.root, "SKILL.md")
    everything = Bytes.of(path, catalog.limits.file_bytes)
    front, body = everything.split(catalog.limits.header_bytes)
    require(front.title()[0] == name, "SKILL_CHANGED", f"{path} has another name")
    files: tuple[SkillFile, ...] = ()
    for number, request in enumerate(resources):
        if request not in resources[:number]:
            place = contained(skill.root, request)
            content = Bytes.of(place, catalog.limits.file_bytes).text
            files += (SkillFile(request, place, content),)
    return ActivatedSkill(name, skill.root, path, body.text, files, everything.digest, skill.digest)


def render_template(template: Resource, args: Mapping[str, str], *, at: int) -> UserMessage:
    """The filled template as a message."""
    require(template.kind == "template", "INVALID_TEMPLATE", f"{template.kind} {template.name}")
    body = template.body or ""
    spans = [(m.start(), m.end(), m[1]) for m in re.finditer(r"\{\{([a-zA-Z_]\w*)\}\}", body, re.A)]
    lacking = [name for _, _, name in spans if name not in args]
    require(not lacking, "MISSING_ARGUMENT", f"{lacking}")
    require(
        all(isinstance(args[name], str) for _, _, name in spans), "INVALID_ARGUMENT", "not a text"
    )
    for start, end, name in reversed(spans):
        body = body[:start] + args[name] + body[end:]
    return user(body, at=at)


def format_resource_context(catalog: Catalog, activated: Iterable[ActivatedSkill] = ()) -> str:
    """The prompt of the catalogue and the active skills."""
    active: list[ActivatedSkill] = []
    for item in activated:
        require(all(item.name != other.name for other in active), "DUPLICATE_ACTIVATION", item.name)
        owners = [s for s in catalog.skills if (s.name, s.root) == (item.name, item.root)]
        require(owners and owners[0].digest == item.entry, "FOREIGN_ACTIVATION", item.name)
        active.append(item)
    paragraphs: list[str] = []

    def say(heading: str, text: str) -> None:
        safe = html.escape(text, quote=False)
        paragraphs.append(f"<section heading={saxutils.quoteattr(heading)}>\n{safe}\n</section>")

    for rules in catalog.instructions:
        say(f"Instructions ({rules.name})", rules.body or "")
    if catalog.skills:
        say("Skills", "\n".join(f"{s.name} - {s.description}" for s in catalog.skills))
    for item in sorted(active, key=lambda item: item.name):
        say(f"Skill {item.name}", item.body)
        for file in sorted(item.files, key=lambda file: file.request):
            say(f"File {file.request} of skill {item.name}", file.content)
    return "\n\n".join(paragraphs)


class Ambassador:
    """Takes one argument to foreign code and brings back Ok or Bad."""

    def __init__(self, function: Callable[[Any], object], seconds: float | None = None) -> None:
        self.function = function
        self.seconds = seconds

    async def __call__(self, argument: object) -> Ok[Any] | Bad:
        journey = asyncio.ensure_future(self.travel(argument))
        waiting: set[asyncio.Future[Any]] = {journey}
        if self.seconds is not None:
            waiting.add(asyncio.ensure_future(asyncio.sleep(self.seconds)))
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        if not journey.done():
            return Bad("timeout", f"it took more than {self.seconds} s")
        match journey.result():
            case Bad(cause=KeyboardInterrupt() | asyncio.CancelledError() as error):
                raise error
            case result:
                return result

    async def travel(self, argument: object) -> Ok[Any] | Bad:
        if self.seconds is None:
            result = self.meet(argument)
        else:
            loop = asyncio.get_running_loop()
            back: asyncio.Queue[Ok[Any] | Bad] = asyncio.Queue()

            def go() -> None:
                met = self.meet(argument)
                with contextlib.suppress(RuntimeError):
                    loop.call_soon_threadsafe(back.put_nowait, met)

            threading.Thread(target=go, daemon=True).start()
            result = await back.get()
        match result:
            case Ok(value) if inspect.isawaitable(value):
                try:
                    return Ok(await value)
                except (asyncio.CancelledError, GeneratorExit):
                    raise
                except BaseException as error:
                    return self.trouble(error)
        return result

    def meet(self, argument: object) -> Ok[Any] | Bad:
        try:
            return Ok(self.function(argument))
        except BaseException as error:
            return self.trouble(error)

    @staticmethod
    def trouble(error: BaseException) -> Bad:
        try:
            return Bad("error", f"{type(error).__qualname__}: {error}", error)
        except Exception:
            return Bad("error", type(error).__qualname__, error)


class Desk:
    """What the factory sees of the host."""

    def __init__(self) -> None:
        self.__tools: list[Tool] = []
        self.__hooks: list[tuple[str, HookListener]] = []
        self.__shut = False

    def register_tool(self, tool: Tool) -> None:
        require(not self.__shut, "CONTEXT_CLOSED", "too late for a tool")
        self.__tools.append(tool)

    def on(self, hook: HookName, listener: HookListener) -> None:
        require(not self.__shut, "CONTEXT_CLOSED", "too late for a hook")
        known = hook == "before_tool_call" or hook == "after_tool_result"
        require(known and callable(listener), "INVALID_HOOK", f"{hook}")
        self.__hooks.append((hook, listener))

    def _clear(self) -> tuple[list[Tool], list[tuple[str, HookListener]]]:
        """Shut the desk and take what lies on it."""
        self.__shut = True
        return self.__tools[:], self.__hooks[:]


class House:
    """The host."""

    def __init__(self, registry: ToolRegistry, seconds: float, report: Any) -> None:
        self._registry = registry
        self._ambassador = functools.partial(Ambassador, seconds=seconds)
        self._press = Ambassador(report)
        self._guests: dict[str, list[tuple[str, HookListener]]] = {}

    def wrap_executor(self, core: ToolExecutor) -> ToolExecutor:
        return Wrapped(self, core)


class Wrapped:
    """core with the hooks of a house around it."""

    def __init__(self, house: House, core: ToolExecutor) -> None:
        self.house = house
        self.core = core

    async def __call__(self, call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
        hooks = [
            (name, id, listener)
            for id, listeners in self.house._guests.items()
            for name, listener in listeners
        ]
        for _, id, listener in filter(lambda hook: hook[0] == "before_tool_call", hooks):
            refused = await self.gate(id, listener, call, ctx)
            if refused is not None:
                return refused
        outcome = await self.outcome(call, ctx)
        for _, id, listener in filter(lambda hook: hook[0] == "after_tool_result", hooks):
            match await self.house._ambassador(listener)(self.again(call, outcome)):
                case Bad(kind, message):
                    await self.publish(id, "after_tool_result", kind, message)
        return self.again(call, outcome)

    async def gate(
        self, id: str, listener: HookListener, call: ToolCall, ctx: ExecContext
    ) -> ToolResultMessage | None:
        answer = await self.house._ambassador(listener)(replace(call))
        code, reason = "HOOK_FAILED", "bad_result"
        match answer:
            case Ok(None) | Ok(Allow()):
                return None
            case Ok(Deny(reason=why)):
                code, reason = "DENIED", f"{why}".encode("utf-8", "replace").decode()
            case Ok(other):
                message = f"a {type(other).__name__} instead of a decision"
                await self.publish(id, "before_tool_call", reason, message)
            case Bad(kind, message):
                reason = kind
                await self.publish(id, "before_tool_call", kind, message)
        result = error_result(call, code, reason, at=ctx.clock.now_ms())
        return replace(result, details={"code": code, "extension_id": id, "reason": reason})

    async def outcome(self, call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
        code, words = "BAD_OUTPUT", "core answered something else"
        try:
            result: Any = await self.core(replace(call), ctx)
        except (Exception, SystemExit) as error:
            code, words = "TOOL_FAILED", Ambassador.trouble(error).message
        else:
            try:
                if (result.call_id, result.tool_name) == (call.id, call.name):
                    return self.again(call, result)
            except Exception as error:
                words = Ambassador.trouble(error).message
        return error_result(call, code, words, at=ctx.clock.now_ms())

    async def publish(self, id: str, hook: HookName, kind: str, message: str) -> None:
        await self.house._press(HookDiagnostic(id, hook, cast(FaultKind, kind), message))

    @staticmethod
    def again(call: ToolCall, result: ToolResultMessage) -> ToolResultMessage:
        blocks = tuple(map(copy.copy, result.content))
        details = deep_freeze(thaw(result.details))
        at = result.timestamp
        return tool_result(call, blocks, is_error=result.is_error, details=details, at=at)


async def load_extension(
    source: ExtensionSource,
    *,
    is_trusted: Callable[[ExtensionSource], object],
    import_module: Callable[[ExtensionSource], object],
    host: ExtensionHost,
    timeout: float | None = None,
) -> LoadResult:
    """How the load ended."""
    require(source.id.strip() and source.id.isprintable(), "INVALID_SOURCE", "the id")
    named = Path(source.path).name and "\0" not in f"{source.path}"
    require(named, "INVALID_SOURCE", "the path")
    if not isinstance(host, House):
        raise CourseError("INVALID_HOST", "a host must come from create_extension_host")
    print_before = fingerprint(source)
    match await Ambassador(is_trusted)(replace(source)):
        case Ok(value) if value is True:
            pass
        case Ok(value) if value is False:
            return LoadResult(source.id, "skipped_untrusted")
        case Ok(value):
            note = HookDiagnostic(source.id, "is_trusted", "bad_result", type(value).__name__)
            return LoadResult(source.id, "skipped_untrusted", (note,))
        case Bad(message=message):
            note = HookDiagnostic(source.id, "is_trusted", "error", message)
            return LoadResult(source.id, "skipped_untrusted", (note,))
    require(fingerprint(source) == print_before, "SOURCE_CHANGED", f"{source.path}")
    module = took(await Ambassador(import_module, timeout)(replace(source)))
    factory = getattr(module, "default", None)
    require(callable(factory), "INVALID_EXTENSION", f"{source.id} has no default")
    desk = Desk()
    try:
        took(await Ambassador(cast(Any, factory), timeout)(desk))
    finally:
        tools, hooks = desk._clear()
    require(source.id not in host._guests, "DUPLICATE_EXTENSION", source.id)
    host._registry.register_all(tools)
    host._guests[source.id] = hooks
    return LoadResult(source.id, "active")


def took(result: Ok[T] | Bad) -> T:
    """The value, or the error of a load."""
    if isinstance(result, Ok):
        return result.value
    code = "EXTENSION_TIMEOUT" if result.kind == "timeout" else "EXTENSION_FAILED"
    raise CourseError(code, result.message) from result.cause


def fingerprint(source: ExtensionSource) -> tuple[str, str]:
    """Which file, and what is in it."""
    real = Path(os.path.realpath(source.path))
    try:
        return str(real), Bytes(real.read_bytes()).digest if real.is_file() else "no file"
    except OSError as error:
        return str(real), type(error).__name__


def create_extension_host(
    registry: ToolRegistry, *, hook_timeout: float, report: Callable[[HookDiagnostic], object]
) -> ExtensionHost:
    """A new host."""
    return House(registry, hook_timeout, report)
