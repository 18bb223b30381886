"""Functions and closures only: a host is what its closures remember."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
import os
import re
import stat
import threading
import types
import unicodedata
import weakref
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import (
    Any,
    Literal,
    Protocol,
    TypeAlias,
    cast,
)

from pi_course.containment import contained
from pi_course.errors import CourseError
from pi_course.messages import (
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    from_json,
    to_json,
    tool_result,
    user,
)
from pi_course.tools import ExecContext, Tool, ToolExecutor, ToolRegistry, error_result
from pi_course.values import JSONValue, thaw

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


Rule = Callable[[str], bool]
Ending = tuple[str, Any]  # "value", "error" or "late", and what belongs to it
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_STAGES: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def discover_resources(
    roots: Iterable[Path], *, limits: ResourceLimits = DEFAULT_LIMITS
) -> Catalog:
    """The catalogue of all roots."""
    reals: list[Path] = []
    for root in roots:
        real = Path(root).resolve()
        if not real.is_dir():
            raise CourseError("INVALID_ROOT", str(root))
        reals += [] if real in reals else [real]
    gathered = [_gather(root, order, limits) for order, root in enumerate(reals)]
    claims: dict[tuple[str, str], list[Resource]] = {}
    for offers, _ in gathered:
        for offer in offers:
            claims.setdefault((offer.kind, offer.name), []).append(offer)
    lost = [
        ResourceDiagnostic("shadowed", loser.source, f"{first.source} is first", first.source)
        for first, *losers in claims.values()
        for loser in losers
    ]
    bad = [problem for _, problems in gathered for problem in problems]
    ranks = {kind: rank for rank, kind in enumerate(KINDS)}
    winners = sorted((c[0] for c in claims.values()), key=lambda r: (ranks[r.kind], r.name))

    def only(kind: str) -> tuple[Resource, ...]:
        return tuple(filter(lambda winner: winner.kind == kind, winners))

    return Catalog(
        resources=tuple(winners),
        instructions=only("instructions"),
        skills=only("skill"),
        templates=only("template"),
        diagnostics=(*bad, *lost),
        limits=limits,
    )


def _gather(
    root: Path, order: int, limits: ResourceLimits
) -> tuple[list[Resource], list[ResourceDiagnostic]]:
    offers: list[Resource] = []
    problems: list[ResourceDiagnostic] = []

    def attempt(request: str, read: Callable[[], Resource]) -> None:
        try:
            offer = read()
        except (CourseError, OSError) as error:
            out = getattr(error, "code", "") == "PATH_ESCAPE"
            kind: Any = "escape" if out else "invalid"
            problems.append(ResourceDiagnostic(kind, root / request, str(error)))
            return
        for other in offers:
            if (other.kind, other.name) == (offer.kind, offer.name):
                if other.source == offer.source:
                    return
                raise CourseError("DUPLICATE_RESOURCE", f"{other.source}, {offer.source}")
        offers.append(offer)

    def plain(kind: Kind, name: str, request: str) -> Resource:
        if not _LABEL.match(name):
            raise CourseError("INVALID_NAME", name)
        path = contained(root, request)
        data = _bytes(path, limits.file_bytes, strict=True)
        return Resource(kind, name, "", path, root, order, _sha(data), _text(data))

    def skill(request: str) -> Resource:
        home = contained(root, request)
        if "SKILL.md" not in _listing(home):
            raise CourseError("INVALID_SKILL", request)
        path = contained(home, "SKILL.md")
        data = _bytes(path, limits.header_bytes, strict=False)
        fields, end = _frontmatter(data, limits.header_bytes)
        name, about = fields
        return Resource("skill", name, about, path, home, order, _sha(data[:end]), None)

    top = _listing(root)
    if "AGENTS.md" in top:
        attempt("AGENTS.md", lambda: plain("instructions", "AGENTS", "AGENTS.md"))
    for folder, ending in (("skills", ""), ("prompts", ".md")):
        if folder not in top:
            continue
        try:
            inside = _listing(contained(root, folder))
        except (CourseError, OSError) as error:
            out = getattr(error, "code", "") == "PATH_ESCAPE"
            where: Any = "escape" if out else "invalid"
            problems.append(ResourceDiagnostic(where, root / folder, str(error)))
            continue
        for entry in inside:
            if entry.startswith(".") or not entry.endswith(ending):
                continue
            request = f"{folder}/{entry}"
            if ending:
                attempt(request, partial(plain, "template", entry[:-3], request))
            else:
                attempt(request, partial(skill, request))
    return offers, problems


def _listing(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries)


def _bytes(path: Path, limit: int, *, strict: bool) -> bytes:
    if not stat.S_ISREG(path.stat().st_mode):
        raise CourseError("UNREADABLE", f"{path} is not a file")
    data = b""
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            while len(data) <= limit and (more := os.read(descriptor, limit + 1 - len(data))):
                data += more
        finally:
            os.close(descriptor)
    except OSError as error:
        raise CourseError("UNREADABLE", str(error)) from error
    if strict and len(data) > limit:
        raise CourseError("UNREADABLE", f"{path} is over {limit} bytes")
    return data


def _sha(data: bytes) -> str:
    return hashlib.new("sha256", data).hexdigest()


def _text(data: bytes) -> str:
    try:
        decoded = data.decode()
    except UnicodeDecodeError as error:
        raise CourseError("UNREADABLE", str(error)) from error
    return "\n".join(decoded.removeprefix("\ufeff").split("\r\n"))


def _frontmatter(data: bytes, limit: int) -> tuple[tuple[str, str], int]:
    """(name, description) and where the header ends."""

    def no(why: str) -> CourseError:
        return CourseError("INVALID_SKILL", why)

    position = 3 if data[:3] == b"\xef\xbb\xbf" else 0
    found: dict[str, str] = {}
    state = "before"
    while state != "after":
        stop = data.find(b"\n", position)
        line = data[position:] if stop < 0 else data[position:stop].removesuffix(b"\r")
        position = len(data) if stop < 0 else stop + 1
        if position > limit:
            raise no("too long")
        if line == b"---":
            if state == "before" and stop < 0:
                raise no("only a fence")
            state = "inside" if state == "before" else "after"
        elif state == "before" or stop < 0:
            raise no("no fence")
        elif line.strip():
            try:
                key, colon, value = line.decode("utf-8").partition(":")
            except UnicodeDecodeError:
                raise no("not UTF-8") from None
            if not (colon and _KEY.match(key)) or found.setdefault(key, value) is not value:
                raise no(f"{key!r}")
    name = found.get("name", "").strip(" \t")
    about = found.get("description", "").strip(" \t")
    rules: tuple[tuple[str, Rule], ...] = (
        (name, lambda text: bool(_LABEL.match(text))),
        (about, bool),
        (about, lambda text: text[0] not in "\"'|>[{&*!%@`"),
        (about, lambda text: not any(map(_hidden, text))),
    )
    for text, rule in rules:
        if not rule(text):
            raise no(f"{text!r}")
    return (name, about), position


def _hidden(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"}


def activate_skill(catalog: Catalog, name: str, *, resources: Sequence[str] = ()) -> ActivatedSkill:
    """The skill with its text and files."""
    entries = [skill for skill in catalog.skills if skill.name == name]
    if not entries:
        raise CourseError("UNKNOWN_SKILL", name)
    (entry,) = entries
    if entry.root.resolve() != entry.root:
        raise CourseError("PATH_ESCAPE", str(entry.root))
    most = catalog.limits.file_bytes

    def fetch(request: str) -> tuple[Path, bytes]:
        path = contained(entry.root, request)
        return path, _bytes(path, most, strict=True)

    source, data = fetch("SKILL.md")
    (now, _), end = _frontmatter(data, catalog.limits.header_bytes)
    if now != name:
        raise CourseError("SKILL_CHANGED", now)
    files = []
    for request in sorted(set(resources), key=list(resources).index):
        path, content = fetch(request)
        files.append(SkillFile(request, path, _text(content)))
    return ActivatedSkill(
        name, entry.root, source, _text(data[end:]), tuple(files), _sha(data), entry.digest
    )


def render_template(template: Resource, args: Mapping[str, str], *, at: int) -> UserMessage:
    """The filled template as a message."""
    if template.kind != "template":
        raise CourseError("INVALID_TEMPLATE", template.kind)
    pieces = list(_pieces(template.body or ""))
    names = [name for _, name in pieces if name]
    absent = sorted({name for name in names if name not in args})
    if absent:
        raise CourseError("MISSING_ARGUMENT", ", ".join(absent))
    values = {name: args[name] for name in names}
    if not all(isinstance(value, str) for value in values.values()):
        raise CourseError("INVALID_ARGUMENT", template.name)
    return user("".join(text + values.get(name, "") for text, name in pieces), at=at)


def _pieces(body: str) -> Iterator[tuple[str, str]]:
    """Text and the name of the place behind it; the last name is empty."""
    start = 0
    for place in re.finditer(r"{{([A-Za-z_][A-Za-z0-9_]*)}}", body):
        yield body[start : place.start()], place.group(1)
        start = place.end()
    yield body[start:], ""


def format_resource_context(catalog: Catalog, activated: Iterable[ActivatedSkill] = ()) -> str:
    """The prompt of the catalogue and the active skills."""
    wanted = list(activated)
    names = [item.name for item in wanted]
    if len(names) != len(set(names)):
        raise CourseError("DUPLICATE_ACTIVATION", ", ".join(sorted(names)))

    def is_ours(item: ActivatedSkill) -> bool:
        return any(
            (s.name, s.root, s.digest) == (item.name, item.root, item.entry) for s in catalog.skills
        )

    if strangers := [item.name for item in wanted if not is_ours(item)]:
        raise CourseError("FOREIGN_ACTIVATION", ", ".join(strangers))

    def safe(words: str) -> str:
        return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    def part(tag: str, title: str, words: str) -> str:
        quoted = safe(title).replace('"', "&quot;").replace("\n", "&#10;")
        return f'<{tag} name="{quoted}">\n{safe(words)}\n</{tag}>'

    def parts() -> Iterator[str]:
        for item in catalog.instructions:
            yield part("instructions", item.name, item.body or "")
        for item in catalog.skills:
            yield part("skill", item.name, item.description)
        for active in sorted(wanted, key=lambda skill: skill.name):
            yield part("active_skill", active.name, active.body)
            for file in sorted(active.files, key=lambda file: file.request):
                yield part("skill_file", f"{active.name}/{file.request}", file.content)

    return "\n\n".join(parts())


async def load_extension(
    source: ExtensionSource,
    *,
    is_trusted: Callable[[ExtensionSource], object],
    import_module: Callable[[ExtensionSource], object],
    host: ExtensionHost,
    timeout: float | None = None,
) -> LoadResult:
    """How the load ended."""
    id_is_good = source.id.strip() and source.id.isprintable()
    if not id_is_good or not Path(source.path).name or "\0" in str(source.path):
        raise CourseError("INVALID_SOURCE", repr(source))
    open_stage = _STAGES.get(host) if _can_be_key(host) else None
    if open_stage is None:
        raise CourseError("INVALID_HOST", repr(host))

    def copy_of_source() -> ExtensionSource:
        return ExtensionSource(source.id, source.path)

    async def must(function: Callable[[Any], object], argument: object) -> Any:
        ending, value = await _bounded(function, argument, timeout)
        if ending == "value":
            return value
        if ending == "late":
            raise CourseError("EXTENSION_TIMEOUT", source.id)
        raise CourseError("EXTENSION_FAILED", _words(value)) from value

    then = _state_of(source.path)
    ending, answer = await _bounded(is_trusted, copy_of_source(), None)
    if (ending, answer) == ("value", False) and answer is False:
        return LoadResult(source.id, "skipped_untrusted")
    if ending != "value" or answer is not True:
        kind: FaultKind = "error" if ending == "error" else "bad_result"
        note = HookDiagnostic(source.id, "is_trusted", kind, _words(answer))
        return LoadResult(source.id, "skipped_untrusted", (note,))
    if _state_of(source.path) != then:
        raise CourseError("SOURCE_CHANGED", source.id)
    factory = getattr(await must(import_module, copy_of_source()), "default", None)
    if not callable(factory):
        raise CourseError("INVALID_EXTENSION", source.id)
    context, close, commit = open_stage(source.id)
    try:
        await must(factory, context)
    finally:
        close()
    commit()
    return LoadResult(source.id, "active")


def _can_be_key(host: object) -> bool:
    try:
        weakref.ref(host)
        hash(host)
    except TypeError:
        return False
    return True


def _state_of(path: Path) -> tuple[Path, str]:
    real = Path(os.path.realpath(path))
    try:
        return real, _sha(real.read_bytes()) if real.is_file() else ""
    except OSError:
        return real, ""


def _words(value: object) -> str:
    if not isinstance(value, BaseException):
        return f"it answered {type(value).__name__}"
    try:
        return f"{type(value).__name__}: {value}"
    except Exception:
        return type(value).__name__


async def _bounded(
    function: Callable[[Any], object], argument: object, seconds: float | None
) -> Ending:
    """How a call into a stranger's function ends, by a race of its end and a timer."""
    loop = asyncio.get_running_loop()
    race: asyncio.Future[Ending] = loop.create_future()

    def finish(ending: Ending) -> None:
        if not race.done():
            race.set_result(ending)

    def from_thread(ending: Ending) -> None:
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(proceed, ending)

    def proceed(ending: Ending) -> None:
        kind, value = ending
        if race.done():
            return
        if kind == "value" and inspect.isawaitable(value):
            running.append(asyncio.ensure_future(_awaited(value)))
            running[0].add_done_callback(settled)
        else:
            finish(ending)

    def settled(task: asyncio.Future[Ending]) -> None:
        if task.cancelled():
            finish(("error", asyncio.CancelledError()))
        else:
            finish(task.result())

    running: list[asyncio.Future[Ending]] = []
    timer = None
    if seconds is None:
        proceed(_called(function, argument))
    else:
        timer = loop.call_later(seconds, finish, ("late", None))
        work = lambda: from_thread(_called(function, argument))  # noqa: E731
        threading.Thread(target=work, daemon=True).start()
    try:
        kind, value = await race
    finally:
        if timer:
            timer.cancel()
        for task in running:
            task.cancel()
    if kind == "error" and isinstance(value, (KeyboardInterrupt, asyncio.CancelledError)):
        raise value
    return kind, value


def _called(function: Callable[[Any], object], argument: object) -> Ending:
    try:
        return "value", function(argument)
    except BaseException as error:
        return "error", error


async def _awaited(value: Any) -> Ending:
    try:
        return "value", await value
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:
        return "error", error


def create_extension_host(
    registry: ToolRegistry, *, hook_timeout: float, report: Callable[[HookDiagnostic], object]
) -> ExtensionHost:
    """A new host."""
    active: dict[str, list[tuple[str, HookListener]]] = {}

    def open_stage(extension_id: str) -> tuple[Any, Callable[[], None], Callable[[], None]]:
        tools: list[Tool] = []
        hooks: list[tuple[str, HookListener]] = []
        closed = threading.Event()

        def alive() -> None:
            if closed.is_set():
                raise CourseError("CONTEXT_CLOSED", extension_id)

        def register_tool(tool: Tool) -> None:
            alive()
            tools.append(tool)

        def on(hook: HookName, listener: HookListener) -> None:
            alive()
            if hook not in ("before_tool_call", "after_tool_result") or not callable(listener):
                raise CourseError("INVALID_HOOK", str(hook))
            hooks.append((hook, listener))

        def commit() -> None:
            if extension_id in active:
                raise CourseError("DUPLICATE_EXTENSION", extension_id)
            registry.register_all(list(tools))
            active[extension_id] = list(hooks)

        context = types.SimpleNamespace(register_tool=register_tool, on=on)
        return context, closed.set, commit

    async def ask(owner: str, hook: HookName, listener: HookListener, argument: object) -> Ending:
        ending, value = await _bounded(listener, argument, hook_timeout)
        fine = ending == "value"
        if hook == "before_tool_call" and not isinstance(value, (Allow, Deny, types.NoneType)):
            fine = False
        if fine:
            return "value", value
        kinds: dict[str, FaultKind] = {"value": "bad_result", "late": "timeout", "error": "error"}
        found = HookDiagnostic(owner, hook, kinds[ending], _words(value))
        await _bounded(report, found, None)
        return kinds[ending], value

    def wrap_executor(core: ToolExecutor) -> ToolExecutor:
        async def wrapped(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
            listeners = [(o, h, f) for o, hooks in active.items() for h, f in hooks]
            for owner, hook, listener in listeners:
                if hook != "before_tool_call":
                    continue
                ending, verdict = await ask(owner, "before_tool_call", listener, _again(call))
                if ending != "value":
                    return _refusal(call, ctx, owner, "HOOK_FAILED", ending)
                if isinstance(verdict, Deny):
                    return _refusal(call, ctx, owner, "DENIED", f"{verdict.reason}")
            fact = await _performed(core, call, ctx)
            for owner, hook, listener in listeners:
                if hook == "after_tool_result":
                    await ask(owner, "after_tool_result", listener, _twin(call, fact))
            return _twin(call, fact)

        return wrapped

    host = _Host()
    host.wrap_executor = wrap_executor
    _STAGES[host] = open_stage
    return host


class _Host:
    __slots__ = ("__weakref__", "wrap_executor")

    wrap_executor: Callable[[ToolExecutor], ToolExecutor]


def _again(call: ToolCall) -> ToolCall:
    return ToolCall(call.id, call.name, thaw(call.arguments))


def _twin(call: ToolCall, fact: ToolResultMessage) -> ToolResultMessage:
    return cast(ToolResultMessage, from_json(to_json(fact)))


def _refusal(
    call: ToolCall, ctx: ExecContext, owner: str, code: str, reason: str
) -> ToolResultMessage:
    legal = reason.encode("utf-8", "replace").decode("utf-8")
    details: JSONValue = {"code": code, "extension_id": owner, "reason": legal}
    words = TextBlock(f"{code}: {legal}")
    return tool_result(call, [words], is_error=True, details=details, at=ctx.clock.now_ms())


async def _performed(core: ToolExecutor, call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
    try:
        answer: Any = await core(_again(call), ctx)
    except (Exception, SystemExit) as error:
        return error_result(call, "TOOL_FAILED", _words(error), at=ctx.clock.now_ms())
    with contextlib.suppress(Exception):
        twin = _twin(call, answer)
        if (twin.role, twin.call_id, twin.tool_name) == ("tool_result", call.id, call.name):
            return twin
    return error_result(call, "BAD_OUTPUT", _words(answer), at=ctx.clock.now_ms())
