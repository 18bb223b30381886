"""Two borders: text reaches the model only on request, code runs only after it is trusted.

Data:       roots → discover → activate → format → the system prompt of build_context
Execution:  source → trusted? → import → factory, staged → commit → before, core, after

Where several error codes fit, any of them is right, unless an order is given.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
import os
import re
import threading
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, get_args
from xml.sax import saxutils

from pi_course.containment import contained
from pi_course.errors import CourseError
from pi_course.messages import ToolCall, ToolResultMessage, UserMessage, tool_result, user
from pi_course.tools import ExecContext, Tool, ToolExecutor, ToolRegistry, error_result

Kind: TypeAlias = Literal["instructions", "skill", "template"]
KINDS: tuple[Kind, ...] = ("instructions", "skill", "template")


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """How many bytes, counted on disk, a skill's header and a file that is read whole may have.

    A header is counted with all that stands before the body: a BOM, both lines `---`, line ends.
    """

    header_bytes: int = 4_096
    file_bytes: int = 65_536


DEFAULT_LIMITS = ResourceLimits()


@dataclass(frozen=True, slots=True)
class Resource:
    """What a root offers under its identity, kind and name.

    source: the real path of its file. root: the real folder that its files may not leave, for a
    skill its own. root_order: which of the different roots it is from. description: a skill's,
    else "". digest: SHA-256 (hex) of the bytes that were used of the file: a skill's header, as
    ResourceLimits counts it, else all. body: the text (CRLF is read as LF), None for a skill.
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

    source is where it lies in the (real) root, links not followed; of a skill, its folder or its
    SKILL.md. Of a loser, source and winner are the two real paths, as in Resource.
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
        """Nothing; the same for a hook. INVALID_HOOK: no such hook, or nothing to call.

        Hooks of one name are asked one after the other, in the order of registration.
        """


class ExtensionHost(Protocol):
    """All that the rest of the program sees of its extensions."""

    def wrap_executor(self, core: ToolExecutor) -> ToolExecutor:
        """An executor: before hooks, core, after hooks, as create_extension_host has it.

        Each call asks all hooks that are active by then, also those of extensions loaded later
        than this. They are asked one after the other, in the order of registration.
        Lab 12.4 is done while this still gives back `core` as it is; lab 12.5 fills it in.
        """


# Lab 12.1: what is there


def discover_resources(
    roots: Iterable[Path], *, limits: ResourceLimits = DEFAULT_LIMITS
) -> Catalog:
    """The catalogue of `roots`: of each kind + name the first in the caller's order wins.

    A root may hold AGENTS.md (instructions:AGENTS), skills/<folder>/SKILL.md (skill:<the name in
    its header>) and prompts/<name>.md (template:<name>), spelt exactly so. A header is a line
    `---`, lines `key: value` of plain text with name and description among them, a line `---`.
    Lines end in LF or CRLF, blank ones are passed over. A key twice, a line of another form, an
    empty or unprintable description: no header. Names: [A-Za-z0-9][A-Za-z0-9._-]{0,63}. Of a
    skill only the header is kept. Links are followed while they stay inside the root, for a
    SKILL.md inside its folder. Whatever else lies in skills/ is a bad skill; only names that
    begin with a dot are passed over.

    Sorted by kind as in KINDS, then by name. A file that is no use (no header, not UTF-8, over
    `limits`, …) costs only itself: it is a diagnostic "invalid" or, where a link leads out,
    "escape". A loser is a diagnostic "shadowed". Roots that are one real folder count once.
    Errors: INVALID_ROOT (no such folder), DUPLICATE_RESOURCE (kind + name twice in one root).
    """
    winners: dict[tuple[Kind, str], Resource] = {}
    diagnostics: list[ResourceDiagnostic] = []
    distinct = dict.fromkeys(Path(os.path.realpath(root)) for root in roots)
    for order, root in enumerate(distinct):
        for identity, resource in _read_root(root, order, limits, diagnostics).items():
            winner = winners.setdefault(identity, resource)
            if winner is not resource:
                lost = f"{':'.join(identity)} is taken from {winner.source}"
                diagnostics.append(
                    ResourceDiagnostic("shadowed", resource.source, lost, winner.source)
                )
    listed = sorted(winners.values(), key=lambda item: (KINDS.index(item.kind), item.name))
    of = {kind: tuple(item for item in listed if item.kind == kind) for kind in KINDS}
    return Catalog(
        tuple(listed), of["instructions"], of["skill"], of["template"], tuple(diagnostics), limits
    )


def _read_root(
    root: Path, order: int, limits: ResourceLimits, diagnostics: list[ResourceDiagnostic]
) -> dict[tuple[Kind, str], Resource]:
    if not root.is_dir():
        raise CourseError("INVALID_ROOT", f"no such folder: {root}")
    found: dict[tuple[Kind, str], Resource] = {}
    for kind, request in _requests(root):
        try:
            resource = _read_resource(kind, root, request, order, limits)
        except CourseError as error:
            reason: Literal["escape", "invalid"]
            reason = "escape" if error.code == "PATH_ESCAPE" else "invalid"
            diagnostics.append(ResourceDiagnostic(reason, root / request, error.message))
            continue
        other = found.setdefault((kind, resource.name), resource)
        if other.source != resource.source:  # two links to one file are no conflict
            where = f"{other.source} and {resource.source}"
            raise CourseError("DUPLICATE_RESOURCE", f"{kind}:{resource.name} is in {where}")
    return found


# A wildcard in each, because only then names are compared with what the folder really lists.
_PLACES: Mapping[Kind, str] = {
    "instructions": "[A]GENTS.md",
    "skill": "skills/*",
    "template": "prompts/*.md",
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _requests(root: Path) -> Iterator[tuple[Kind, str]]:
    for kind, pattern in _PLACES.items():
        for path in sorted(root.glob(pattern)):
            if not path.name.startswith("."):
                yield kind, path.relative_to(root).as_posix()


def _read_resource(
    kind: Kind, root: Path, request: str, order: int, limits: ResourceLimits
) -> Resource:
    place = contained(root, request)
    if kind == "skill":
        if not list(place.glob("[S]KILL.md")):
            raise CourseError("INVALID_SKILL", "there is no file named exactly SKILL.md")
        source = contained(place, "SKILL.md")
        data = _read(source, limits.header_bytes, whole=False)
        name, description, size = _header(data, limits)
        return Resource(kind, name, description, source, place, order, _digest(data[:size]), None)
    name = (root / request).stem
    if not _NAME.fullmatch(name):
        raise CourseError("INVALID_NAME", f"{name!r} is no name")
    data = _read(place, limits.file_bytes)
    return Resource(kind, name, "", place, root, order, _digest(data), _decode(data))


_HEADER = re.compile(rb"(?:\xef\xbb\xbf)?---\r?\n((?:.*\n)*?)---(?:\r?\n|\Z)")
_FIELD = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):[ \t]*(.*?)[ \t]*")
_UNSEEN = {"Cc", "Cf", "Zl", "Zp"}  # controls, marks of direction, separators of lines


def _header(data: bytes, limits: ResourceLimits) -> tuple[str, str, int]:
    """Name, description and size of the header that `data` starts with."""
    found = _HEADER.match(data)
    if found is None or found.end() > limits.header_bytes:
        raise CourseError("INVALID_SKILL", f"no header in {limits.header_bytes} bytes")
    fields: dict[str, str] = {}
    for line in filter(str.strip, _decode(found[1]).split("\n")):
        field = _FIELD.fullmatch(line)
        if field is None or field[1] in fields:
            raise CourseError("INVALID_SKILL", f"no `key: value`, or a second one: {line!r}")
        fields[field[1]] = field[2]
    name, description = fields.get("name", ""), fields.get("description", "")
    if not _NAME.fullmatch(name):
        raise CourseError("INVALID_SKILL", f"{name!r} is no name")
    unseen = _UNSEEN & {unicodedata.category(char) for char in description}
    if not description or description[0] in "\"'|>[{&*!%@`" or unseen:
        raise CourseError("INVALID_SKILL", "the description is not plain text on its line")
    return name, description, found.end()


def _read(path: Path, limit: int, *, whole: bool = True) -> bytes:
    """The bytes of a file; of one beyond `limit` one byte more than that, or else an error."""
    if not path.is_file():
        raise CourseError("UNREADABLE", f"{path.name} is not a regular file")
    try:
        with path.open("rb", buffering=0) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise CourseError("UNREADABLE", f"{path.name}: {error.strerror}") from error
    if whole and len(data) > limit:
        raise CourseError("UNREADABLE", f"{path.name} has more than {limit} bytes")
    return data


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise CourseError("UNREADABLE", "the text is not UTF-8") from error


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# Lab 12.2: one skill, on request


def activate_skill(catalog: Catalog, name: str, *, resources: Sequence[str] = ()) -> ActivatedSkill:
    """The skill `name` of the catalogue with its text, and every file asked for, once, in order.

    A request is a path below the skill's folder; neither its text nor a link may lead out. "Once"
    goes by its text: `a.md` and `./a.md` are two requests. The header must still say `name`. The
    body is all that follows the header; in body and files CRLF is read as LF.
    Errors: UNKNOWN_SKILL, SKILL_CHANGED (another name), INVALID_SKILL (no header), UNREADABLE (no
    regular file, over catalog.limits, not UTF-8); those of contained(): INVALID_PATH, NOT_FOUND,
    PATH_ESCAPE (also when the folder itself has become a link).
    """
    skill = next((item for item in catalog.skills if item.name == name), None)
    if skill is None:
        raise CourseError("UNKNOWN_SKILL", f"{name!r} is in no catalogue entry")
    if os.path.realpath(skill.root) != str(skill.root):
        raise CourseError("PATH_ESCAPE", f"{skill.root} is in another place now")
    limit = catalog.limits.file_bytes
    source = contained(skill.root, "SKILL.md")
    data = _read(source, limit)
    name_now, _, size = _header(data, catalog.limits)
    if name_now != name:
        raise CourseError("SKILL_CHANGED", f"{source} is the skill {name_now!r} now")
    body = _decode(data[size:])
    files = []
    for request in dict.fromkeys(resources):
        path = contained(skill.root, request)
        files.append(SkillFile(request, path, _decode(_read(path, limit))))
    return ActivatedSkill(
        name, skill.root, source, body, tuple(files), _digest(data), entry=skill.digest
    )


# Lab 12.3: the only ways into the model's sight


_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}")


def render_template(template: Resource, args: Mapping[str, str], *, at: int) -> UserMessage:
    """One user message of time `at` (ms): the body with an argument in place of each {{name}}.

    A name is [A-Za-z_][A-Za-z0-9_]* and nothing around it; all other braces are text. Values go
    in as they are and are not looked into; arguments that have no place are ignored.
    Errors, in this order: INVALID_TEMPLATE (another kind), MISSING_ARGUMENT (no such key; lists
    all of them), INVALID_ARGUMENT (not a string), INVALID_MESSAGE (of user(): what comes out is
    no legal text, as with a lone surrogate in a value).
    """
    if template.kind != "template" or template.body is None:
        raise CourseError("INVALID_TEMPLATE", f"{template.kind}:{template.name} is no template")
    names = dict.fromkeys(_PLACEHOLDER.findall(template.body))
    if missing := [name for name in names if name not in args]:
        raise CourseError("MISSING_ARGUMENT", f"{template.name} needs {', '.join(missing)}")
    if wrong := [name for name in names if not isinstance(args[name], str)]:
        raise CourseError("INVALID_ARGUMENT", f"{template.name}: no text in {', '.join(wrong)}")
    return user(_PLACEHOLDER.sub(lambda place: args[place[1]], template.body), at=at)


def format_resource_context(catalog: Catalog, activated: Iterable[ActivatedSkill] = ()) -> str:
    """The system prompt for build_context; "" if there is nothing to say.

    Instructions; name and description of every skill; body and files of the active skills. An
    inactive body is nowhere. All that comes from files is escaped (& < > become &amp; &lt; &gt;),
    names of files too, and nothing else is changed: no text can end its section. The order of
    `activated`, and of files, makes no difference.
    Errors: DUPLICATE_ACTIVATION, FOREIGN_ACTIVATION (no skill here has its name, root and entry:
    its Resource's digest).
    """
    active = sorted(activated, key=lambda skill: skill.name)
    if len({skill.name for skill in active}) < len(active):
        raise CourseError("DUPLICATE_ACTIVATION", "a skill is active twice")
    listed = {(skill.name, skill.root, skill.digest) for skill in catalog.skills}
    for skill in active:
        if (skill.name, skill.root, skill.entry) not in listed:
            raise CourseError("FOREIGN_ACTIVATION", f"{skill.name} is not from this catalogue")
    sections = [_section("instructions", i.name, i.body or "") for i in catalog.instructions]
    sections += [_section("skill", s.name, s.description) for s in catalog.skills]
    for skill in active:
        sections.append(_section("active_skill", skill.name, skill.body))
        for file in sorted(skill.files, key=lambda file: file.request):
            sections.append(_section("skill_file", f"{skill.name}/{file.request}", file.content))
    return "\n\n".join(sections)


def _section(tag: str, name: str, text: str) -> str:
    return f"<{tag} name={saxutils.quoteattr(name)}>\n{saxutils.escape(text)}\n</{tag}>"


# Lab 12.4: trust, then import, then all or nothing


async def load_extension(
    source: ExtensionSource,
    *,
    is_trusted: Callable[[ExtensionSource], object],
    import_module: Callable[[ExtensionSource], object],
    host: ExtensionHost,
    timeout: float | None = None,
) -> LoadResult:
    """Either "active" with all that the extension registers, or "skipped_untrusted", nothing run.

    In this order: check source and host, is_trusted(source), look whether the path has changed,
    import_module(source), call the module's attribute `default` with an ExtensionContext, commit
    all that it registered at once. The three may be plain or async. Trust is the answer True,
    nothing else; an is_trusted that raises, or answers no bool, is a diagnostic. The path need not
    exist: import_module knows what it means. `timeout` (seconds, None: no limit) is for import and
    factory, plain or async, each on its own; a person who is asked for trust has no limit.

    Errors, in the order of the steps, after which registry and hooks are as they were:
    INVALID_SOURCE (id empty, blank or unprintable; path empty, i.e. Path(), or with a NUL),
    INVALID_HOST (not from create_extension_host), SOURCE_CHANGED (between just before is_trusted
    and just after it, the real path or the bytes of the file there; of a folder, or of what does
    not exist, only the real path counts), EXTENSION_FAILED (import or factory raised, SystemExit
    too), EXTENSION_TIMEOUT, INVALID_EXTENSION (no `default` to call), DUPLICATE_EXTENSION (the id
    is active), DUPLICATE_TOOL, INVALID_TOOL. KeyboardInterrupt and cancellation pass through.
    """
    if not _is_complete(source):
        raise CourseError("INVALID_SOURCE", "an extension needs an id and a path")
    if not isinstance(host, _Host):
        raise CourseError("INVALID_HOST", "the host is not from create_extension_host")
    asked_about = _fingerprint(source.path)
    fault, answer = await _attempt(is_trusted, replace(source), expect=bool)
    if fault:
        doubt = HookDiagnostic(source.id, "is_trusted", fault, _describe(answer))
        return LoadResult(source.id, "skipped_untrusted", (doubt,))
    if answer is False:
        return LoadResult(source.id, "skipped_untrusted")
    if _fingerprint(source.path) != asked_about:
        raise CourseError("SOURCE_CHANGED", f"{source.path} is not what trust was asked for")
    module = await _demand(import_module, replace(source), timeout)
    factory = getattr(module, "default", None)
    if not callable(factory):
        raise CourseError("INVALID_EXTENSION", f"{source.id} has no `default` to call")
    staging = _Staging()
    try:
        await _demand(factory, staging, timeout)
    finally:
        staging._closed = True
    host._commit(source.id, staging)
    return LoadResult(source.id, "active")


def _is_complete(source: ExtensionSource) -> bool:
    named = source.id.strip() != "" and source.id.isprintable()
    return named and Path(source.path).name != "" and "\0" not in str(source.path)


def _fingerprint(path: Path) -> tuple[str, str | None]:
    real = os.path.realpath(path)
    with contextlib.suppress(OSError):
        return real, _digest(Path(real).read_bytes()) if Path(real).is_file() else None
    return real, None


class _Staging:
    """The context of one factory: what it registers waits here, where nobody else looks."""

    def __init__(self) -> None:
        self._tools: list[Tool] = []
        self._hooks: list[tuple[HookName, HookListener]] = []
        self._closed = False

    def register_tool(self, tool: Tool) -> None:
        self._must_be_open()
        self._tools.append(tool)

    def on(self, hook: HookName, listener: HookListener) -> None:
        self._must_be_open()
        if hook not in get_args(HookName) or not callable(listener):
            raise CourseError("INVALID_HOOK", f"{hook!r} with {listener!r}")
        self._hooks.append((hook, listener))

    def _must_be_open(self) -> None:
        if self._closed:
            raise CourseError("CONTEXT_CLOSED", "this extension has ended loading")


async def _demand(function: _Foreign, argument: object, timeout: float | None) -> Any:
    fault, value = await _attempt(function, argument, timeout=timeout)
    if fault:
        code = "EXTENSION_TIMEOUT" if fault == "timeout" else "EXTENSION_FAILED"
        raise CourseError(code, _describe(value)) from value
    return value


_Foreign: TypeAlias = Callable[[Any], object]
_Answer: TypeAlias = tuple[FaultKind | None, Any]


async def _attempt(
    function: _Foreign, argument: object, *, timeout: float | None = None, expect: Any = object
) -> _Answer:
    """(None, value) of function(argument), plain or async, or (fault, exception).

    Plain functions with a time limit run in a thread: nothing else gets past a time.sleep.
    """
    task = asyncio.ensure_future(_settle(function, argument, in_thread=timeout is not None))
    try:
        await asyncio.wait({task}, timeout=timeout)
    finally:
        task.cancel()
    if not task.done():
        return "timeout", TimeoutError(f"no answer within {timeout} s")
    fault, value = task.result()
    if fault and isinstance(value, KeyboardInterrupt | asyncio.CancelledError):
        raise value
    if not fault and not isinstance(value, expect):
        return "bad_result", TypeError(f"{type(value).__name__} is no answer")
    return fault, value


async def _settle(function: _Foreign, argument: object, *, in_thread: bool) -> _Answer:
    fault, value = await _apart(function, argument) if in_thread else _call(function, argument)
    try:
        return fault, await value if inspect.isawaitable(value) else value
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:
        return "error", error


def _apart(function: _Foreign, argument: object) -> Awaitable[_Answer]:
    answer: Future[_Answer] = Future()
    answer.set_running_or_notify_cancel()
    threading.Thread(
        target=lambda: answer.set_result(_call(function, argument)), daemon=True
    ).start()
    return asyncio.wrap_future(answer)


def _call(function: _Foreign, argument: object) -> _Answer:
    try:
        return None, function(argument)
    except BaseException as error:
        return "error", error


def _describe(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def create_extension_host(
    registry: ToolRegistry, *, hook_timeout: float, report: Callable[[HookDiagnostic], object]
) -> ExtensionHost:
    """A host: its extensions put tools into `registry` and hooks around the executors it wraps.

    A wrapped executor asks all before hooks, runs core, shows the result to all after hooks; of
    one kind one after the other, in the order of registration. Each hook gets a frozen copy of its
    own (a new object, also than core's and the caller's) and `hook_timeout` seconds; then the
    waiting ends, not the hook. Faults go to `report`, whose own faults change nothing.

    Before hooks are a gate that fails closed: after Deny, an exception (SystemExit too), a timeout
    or an answer that is no HookDecision nothing else runs, and the result is an error paired with
    the call, details {"code": "DENIED" or "HOOK_FAILED", "extension_id", "reason"}: of a Deny its
    reason, of a fault the FaultKind. Its text, all that the model sees, holds code and reason. A
    Deny is no fault. After hooks are observers: each runs once for every result of core, good or
    bad, whatever the others do, and the result stays as it is. Core runs once; if it raises
    (SystemExit too) the result is an error with code TOOL_FAILED in its details, if it answers no
    result of this call BAD_OUTPUT. KeyboardInterrupt and cancellation pass through.
    """
    return _Host(registry, hook_timeout, report)


class _Host:
    def __init__(self, registry: ToolRegistry, timeout: float, report: _Foreign) -> None:
        self._registry = registry
        self._timeout = timeout
        self._report = report
        self._hooks: dict[str, tuple[tuple[HookName, HookListener], ...]] = {}

    def _commit(self, extension_id: str, staging: _Staging) -> None:
        """Nothing; all that is staged takes effect. What can fail comes before any change."""
        if extension_id in self._hooks:
            raise CourseError("DUPLICATE_EXTENSION", f"{extension_id!r} is active already")
        self._registry.register_all(staging._tools)
        self._hooks[extension_id] = tuple(staging._hooks)

    def wrap_executor(self, core: ToolExecutor) -> ToolExecutor:
        async def execute(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
            gates = self._listeners("before_tool_call")
            observers = self._listeners("after_tool_result")
            for owner, gate in gates:
                fault, verdict = await self._ask("before_tool_call", owner, gate, replace(call))
                if fault:
                    return _blocked(call, ctx, "HOOK_FAILED", owner, fault)
                if isinstance(verdict, Deny):
                    return _blocked(call, ctx, "DENIED", owner, verdict.reason)
            result = await _run(core, call, ctx)
            for owner, observer in observers:
                await self._ask("after_tool_result", owner, observer, _copy(call, result))
            return result

        return execute

    def _listeners(self, hook: HookName) -> list[tuple[str, HookListener]]:
        return [
            (owner, listener)
            for owner, hooks in self._hooks.items()
            for name, listener in hooks
            if name == hook
        ]

    async def _ask(
        self, hook: HookName, owner: str, listener: HookListener, argument: object
    ) -> _Answer:
        expect = HookDecision if hook == "before_tool_call" else object
        answer = await _attempt(listener, argument, timeout=self._timeout, expect=expect)
        if fault := answer[0]:
            diagnostic = HookDiagnostic(owner, hook, fault, _describe(answer[1]))
            await _attempt(self._report, diagnostic)
        return answer


def _blocked(
    call: ToolCall, ctx: ExecContext, code: str, owner: str, reason: str
) -> ToolResultMessage:
    reason = reason.encode("utf-8", "replace").decode() if isinstance(reason, str) else ""
    result = error_result(call, code, reason, at=ctx.clock.now_ms())
    return replace(result, details={"code": code, "extension_id": owner, "reason": reason})


async def _run(core: ToolExecutor, call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
    try:
        result: Any = await core(replace(call), ctx)
    except (Exception, SystemExit) as error:
        return error_result(call, "TOOL_FAILED", _describe(error), at=ctx.clock.now_ms())
    with contextlib.suppress(Exception):
        if (result.call_id, result.tool_name) == (call.id, call.name):
            return _copy(call, result)
    return error_result(call, "BAD_OUTPUT", "core did not answer this call", at=ctx.clock.now_ms())


def _copy(call: ToolCall, result: ToolResultMessage) -> ToolResultMessage:
    """The same result, content and details made anew and frozen, so that nothing is shared."""
    return tool_result(
        call, result.content, is_error=result.is_error, details=result.details, at=result.timestamp
    )
