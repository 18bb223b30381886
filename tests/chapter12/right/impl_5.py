"""All candidates first, then one sort that decides winners and order; workers answer by events."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import inspect
import io
import itertools
import operator
import os
import re
import string
import threading
import unicodedata
from collections import defaultdict
from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from pathlib import Path
from typing import (
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    cast,
    get_args,
)
from xml.sax import saxutils

from pi_course.containment import contained
from pi_course.errors import CourseError
from pi_course.messages import (
    ToolCall,
    ToolResultMessage,
    UserMessage,
    from_json,
    text,
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


class Candidate(NamedTuple):
    """What a root offers, with the keys that the sort needs."""

    rank: int
    name: str
    order: int
    resource: Resource


def discover_resources(
    roots: Iterable[Path], *, limits: ResourceLimits = DEFAULT_LIMITS
) -> Catalog:
    """The catalogue of all roots."""
    candidates: list[Candidate] = []
    remarks: list[ResourceDiagnostic] = []
    known: dict[Path, int] = {}
    for given in roots:
        root = Path(given).resolve()
        if not root.is_dir():
            raise CourseError("INVALID_ROOT", str(given))
        if root not in known:
            known[root] = len(known)
            for offer in offers_of(root, known[root], limits):
                if isinstance(offer, ResourceDiagnostic):
                    remarks.append(offer)
                else:
                    candidates.append(offer)
    candidates.sort(key=lambda item: item[:3])
    refuse_twins(candidates)
    chosen: list[Resource] = []
    for _, group in itertools.groupby(candidates, key=lambda item: item[:2]):
        winner, *losers = dict.fromkeys(item.resource for item in group)
        chosen.append(winner)
        for loser in losers:
            words = f"{loser.source} after {winner.source}"
            remarks.append(ResourceDiagnostic("shadowed", loser.source, words, winner.source))
    views = defaultdict(list)
    for resource in chosen:
        views[resource.kind].append(resource)
    return Catalog(
        tuple(chosen),
        tuple(views["instructions"]),
        tuple(views["skill"]),
        tuple(views["template"]),
        tuple(remarks),
        limits,
    )


def refuse_twins(candidates: Sequence[Candidate]) -> None:
    """Neighbours with the same keys are from one root; they may only be one file."""
    for one, two in itertools.pairwise(candidates):
        if one[:3] == two[:3] and one.resource.source != two.resource.source:
            raise CourseError("DUPLICATE_RESOURCE", f"{one.resource.source} {two.resource.source}")


def offers_of(
    root: Path, order: int, limits: ResourceLimits
) -> Iterator[Candidate | ResourceDiagnostic]:
    """Everything in a root that claims to be a resource, or what is wrong with it."""
    for kind, request in requests_in(root):
        try:
            resource = open_request(kind, root, request, order, limits)
        except (CourseError, OSError) as error:
            reason: Literal["escape", "invalid"] = "invalid"
            if isinstance(error, CourseError) and error.code == "PATH_ESCAPE":
                reason = "escape"
            yield ResourceDiagnostic(reason, root / request, str(error))
        else:
            yield Candidate(KINDS.index(kind), resource.name, order, resource)


def requests_in(root: Path) -> list[tuple[Kind, str]]:
    """(kind, path below the root)."""
    found: list[tuple[Kind, str]] = []
    for entry in sorted(root.iterdir()):
        if entry.name == "AGENTS.md":
            found.append(("instructions", entry.name))
        if entry.name in ("skills", "prompts"):
            kind: Kind = "skill" if entry.name == "skills" else "template"
            try:
                children = sorted(contained(root, entry.name).iterdir())
            except (CourseError, OSError):
                found.append((kind, entry.name))
                continue
            for child in children:
                wanted = child.suffix == ".md" or kind == "skill"
                if wanted and not child.name.startswith("."):
                    found.append((kind, f"{entry.name}/{child.name}"))
    return found


def open_request(
    kind: Kind, root: Path, request: str, order: int, limits: ResourceLimits
) -> Resource:
    """The resource that a request leads to."""
    place = contained(root, request)
    if kind == "skill":
        if "SKILL.md" not in (child.name for child in place.iterdir()):
            raise CourseError("INVALID_SKILL", "no SKILL.md")
        file = contained(place, "SKILL.md")
        scan = HeaderScan(limits.header_bytes)
        scan.feed(first_bytes(file, limits.header_bytes + 1))
        digest = hashlib.sha256(scan.header).hexdigest()
        return Resource(kind, scan.name, scan.description, file, place, order, digest, None)
    label = place_label(request)
    data = all_bytes(place, limits.file_bytes)
    digest = hashlib.sha256(data).hexdigest()
    return Resource(kind, label, "", place, root, order, digest, as_text(data))


def place_label(request: str) -> str:
    """The name that a file name gives to its resource."""
    file = request.rpartition("/")[2]
    if not file.endswith(".md") or not well_named(file[:-3]):
        raise CourseError("INVALID_NAME", file)
    return file[:-3]


def well_named(text: str) -> bool:
    """[A-Za-z0-9][A-Za-z0-9._-]{0,63}"""
    stripped = text.replace(".", "").replace("_", "").replace("-", "")
    return (
        text.isascii()
        and 1 <= len(text) <= 64
        and text[0].isalnum()
        and (stripped.isalnum() or not stripped)
    )


def first_bytes(path: Path, count: int) -> bytes:
    """At most `count` bytes."""
    if not path.is_file():
        raise CourseError("UNREADABLE", path.name)
    try:
        with path.open("rb") as stream:
            return stream.read(count)
    except OSError as error:
        raise CourseError("UNREADABLE", path.name) from error


def all_bytes(path: Path, limit: int) -> bytes:
    """All bytes, if they are not too many."""
    data = first_bytes(path, limit + 1)
    if len(data) > limit:
        raise CourseError("UNREADABLE", f"{path.name} > {limit}")
    return data


def as_text(data: bytes) -> str:
    """UTF-8 without BOM, CRLF as LF."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CourseError("UNREADABLE", "UTF-8") from error
    return text.replace("\r\n", "\n")


class HeaderScan:
    """A machine with three states that eats lines."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.state = self.opening
        self.fields: dict[str, str] = {}
        self.header = b""

    def feed(self, data: bytes) -> None:
        """Eat all of the header; INVALID_SKILL if it is none."""
        stream = io.BytesIO(data)
        if data.startswith(b"\xef\xbb\xbf"):
            stream.seek(3)
        for line in iter(stream.readline, b""):
            if stream.tell() > self.limit:
                break
            if self.state == self.closed:
                break
            self.state = self.state(line)
            if self.state == self.closed:
                self.header = data[: stream.tell()]
        if self.state != self.closed:
            raise CourseError("INVALID_SKILL", "the header has no end in its limits")
        self.judge()

    def opening(self, line: bytes) -> Any:
        if line not in (b"---\n", b"---\r\n"):
            raise CourseError("INVALID_SKILL", "no header")
        return self.inside

    def inside(self, line: bytes) -> Any:
        if line in (b"---\n", b"---\r\n", b"---"):
            return self.closed
        try:
            text = line.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            raise CourseError("INVALID_SKILL", "the header is not UTF-8") from None
        if text.strip():
            key, colon, value = text.partition(":")
            legal = key.isascii() and key[:1].isalpha() and re.fullmatch(r"[\w-]+", key)
            if not colon or not legal or key in self.fields:
                raise CourseError("INVALID_SKILL", text)
            self.fields[key] = value.strip(" \t")
        return self.inside

    def closed(self, line: bytes) -> Any:
        return self.closed

    def judge(self) -> None:
        categories = {unicodedata.category(char) for char in self.description}
        good = (
            well_named(self.name)
            and self.description != ""
            and not self.description.startswith(tuple("\"'|>[{&*!%@`"))
            and not categories & {"Cc", "Cf", "Zl", "Zp"}
        )
        if not good:
            raise CourseError("INVALID_SKILL", "name or description")

    @property
    def name(self) -> str:
        return self.fields.get("name", "")

    @property
    def description(self) -> str:
        return self.fields.get("description", "")


def activate_skill(catalog: Catalog, name: str, *, resources: Sequence[str] = ()) -> ActivatedSkill:
    """The skill with its text and files."""
    skill = {item.name: item for item in catalog.skills}.get(name)
    if skill is None:
        raise CourseError("UNKNOWN_SKILL", name)
    if Path(os.path.realpath(skill.root)) != skill.root:
        raise CourseError("PATH_ESCAPE", str(skill.root))

    @functools.cache
    def read(request: str) -> tuple[Path, bytes]:
        path = contained(skill.root, request)
        return path, all_bytes(path, catalog.limits.file_bytes)

    path, data = read("SKILL.md")
    scan = HeaderScan(catalog.limits.header_bytes)
    scan.feed(data)
    if scan.name != name:
        raise CourseError("SKILL_CHANGED", scan.name)
    files: list[SkillFile] = []
    for request in resources:
        if all(file.request != request for file in files):
            files.append(SkillFile(request, read(request)[0], as_text(read(request)[1])))
    return ActivatedSkill(
        name=name,
        root=skill.root,
        source=path,
        body=as_text(data[len(scan.header) :]),
        files=tuple(files),
        digest=hashlib.sha256(data).hexdigest(),
        entry=skill.digest,
    )


class Filling(string.Template):
    """string.Template with {{name}} and nothing else."""

    delimiter = "{{"
    pattern = r"""
        \{\{(?:
            (?P<escaped>(?!)) |
            (?P<named>[A-Za-z_][A-Za-z0-9_]*)\}\} |
            (?P<braced>(?!)) |
            (?P<invalid>(?!))
        )
    """
    flags = re.VERBOSE


def render_template(template: Resource, args: Mapping[str, str], *, at: int) -> UserMessage:
    """The filled template as a message."""
    if template.kind != "template":
        raise CourseError("INVALID_TEMPLATE", template.name)
    filling = Filling(template.body or "")
    names = filling.get_identifiers()
    if not set(names) <= set(args):
        raise CourseError("MISSING_ARGUMENT", str(sorted(set(names) - set(args))))
    values = {name: args[name] for name in names}
    if {type(value) for value in values.values()} - {str}:
        raise CourseError("INVALID_ARGUMENT", template.name)
    return user(filling.substitute(values), at=at)


def format_resource_context(catalog: Catalog, activated: Iterable[ActivatedSkill] = ()) -> str:
    """The prompt of the catalogue and the active skills."""
    items = sorted(activated, key=operator.attrgetter("name"))
    for one, two in itertools.pairwise(items):
        if one.name == two.name:
            raise CourseError("DUPLICATE_ACTIVATION", one.name)
    entries = {skill.name: (skill.root, skill.digest) for skill in catalog.skills}
    for item in items:
        if entries.get(item.name) != (item.root, item.entry):
            raise CourseError("FOREIGN_ACTIVATION", item.name)
    blocks = [element("instructions", i.name, i.body or "") for i in catalog.instructions]
    blocks += [element("skill", s.name, s.description) for s in catalog.skills]
    for item in items:
        blocks.append(element("active_skill", item.name, item.body))
        files = sorted(item.files, key=operator.attrgetter("request"))
        blocks += [element("skill_file", f"{item.name}/{f.request}", f.content) for f in files]
    return "\n\n".join(blocks)


ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def element(tag: str, name: str, text: str) -> str:
    """One section of the prompt."""
    attribute = saxutils.quoteattr(name)
    return f"<{tag} name={attribute}>\n{text.translate(ESCAPES)}\n</{tag}>"


class Visit:
    """A call into foreign code. `fault` is None when it gave a value in time."""

    def __init__(self, function: Callable[[Any], object]) -> None:
        self.function = function
        self.value: Any = None
        self.error: BaseException | None = None
        self.fault: FaultKind | None = None
        self.over = False

    async def to(self, argument: object, seconds: float | None) -> Visit:
        """Pay the visit."""
        loop = asyncio.get_running_loop()
        finished = asyncio.Event()
        follow: list[asyncio.Task[None]] = []

        def arrived(good: bool, value: Any) -> None:
            if good and inspect.isawaitable(value) and not self.over:
                follow.append(loop.create_task(wait_for_it(value)))
            else:
                settle(good, value)

        def settle(good: bool, value: Any) -> None:
            if not self.over:
                self.over = True
                self.value, self.error = (value, None) if good else (None, value)
                finished.set()

        async def wait_for_it(value: Any) -> None:
            try:
                settle(True, await value)
            except asyncio.CancelledError as error:
                settle(False, error)
                raise
            except BaseException as error:
                settle(False, error)

        def work(deliver: Callable[[bool, Any], object]) -> None:
            try:
                value = self.function(argument)
            except BaseException as error:
                deliver(False, error)
            else:
                deliver(True, value)

        def from_afar(good: bool, value: Any) -> None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(arrived, good, value)

        if seconds is None:
            work(arrived)
        else:
            threading.Thread(target=work, args=(from_afar,), daemon=True).start()
        try:
            await asyncio.wait_for(finished.wait(), seconds)
        except TimeoutError:
            if not self.over:
                self.fault, self.error = "timeout", TimeoutError(f"{seconds} s")
        finally:
            self.over = True
            for task in follow:
                task.cancel()
        if self.error is not None and self.fault is None:
            if isinstance(self.error, (KeyboardInterrupt, asyncio.CancelledError)):
                raise self.error
            self.fault = "error"
        return self

    def must_be(self, *kinds: type) -> Visit:
        """Call any other answer a bad result."""
        if self.fault is None and not isinstance(self.value, kinds):
            self.fault, self.error = "bad_result", TypeError(type(self.value).__name__)
        return self

    @property
    def words(self) -> str:
        try:
            return f"{type(self.error).__name__}: {self.error}"
        except Exception:
            return type(self.error).__name__


class Stage:
    """The context of an extension that is being loaded."""

    def __init__(self) -> None:
        self._items: list[tuple[str, Any]] = []
        self._live = True

    def register_tool(self, tool: Tool) -> None:
        self._add("tool", tool)

    def on(self, hook: HookName, listener: HookListener) -> None:
        if self._live and (hook not in get_args(HookName) or not callable(listener)):
            raise CourseError("INVALID_HOOK", str(hook))
        self._add(hook, listener)

    def _add(self, what: str, item: object) -> None:
        if not self._live:
            raise CourseError("CONTEXT_CLOSED", what)
        self._items.append((what, item))

    def _of(self, what: str) -> list[Any]:
        return [item for kind, item in self._items if kind == what]


class Host(ExtensionHost):
    """The host; everything but wrap_executor is for this module."""

    def __init__(self, registry: ToolRegistry, seconds: float, report: Any) -> None:
        self._registry = registry
        self._seconds = seconds
        self._report = report
        self._active: list[tuple[str, Stage]] = []

    def _activate(self, id: str, stage: Stage) -> None:
        if any(id == other for other, _ in self._active):
            raise CourseError("DUPLICATE_EXTENSION", id)
        self._registry.register_all(stage._of("tool"))
        self._active = [*self._active, (id, stage)]

    def wrap_executor(self, core: ToolExecutor) -> ToolExecutor:
        async def execute(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
            active = self._active
            for id, stage in active:
                for gate in stage._of("before_tool_call"):
                    copied = ToolCall(call.id, call.name, thaw(call.arguments))
                    visit = await Visit(gate).to(copied, self._seconds)
                    visit.must_be(Allow, Deny, type(None))
                    if visit.fault:
                        await self._tell(id, "before_tool_call", visit)
                        return blocked(call, "HOOK_FAILED", id, visit.fault, ctx)
                    if isinstance(visit.value, Deny):
                        return blocked(call, "DENIED", id, visit.value.reason, ctx)
            fact = await self._perform(core, call, ctx)
            for id, stage in active:
                for observer in stage._of("after_tool_result"):
                    copied_fact = from_json(to_json(fact))
                    visit = await Visit(observer).to(copied_fact, self._seconds)
                    if visit.fault:
                        await self._tell(id, "after_tool_result", visit)
            return fact

        return execute

    async def _tell(self, id: str, hook: HookName, visit: Visit) -> None:
        found = HookDiagnostic(id, hook, cast(FaultKind, visit.fault), visit.words)
        await Visit(self._report).to(found, None)

    async def _perform(
        self, core: ToolExecutor, call: ToolCall, ctx: ExecContext
    ) -> ToolResultMessage:
        try:
            fact: Any = await core(ToolCall(call.id, call.name, thaw(call.arguments)), ctx)
        except (SystemExit, Exception) as error:
            words = type(error).__name__
            return error_result(call, "TOOL_FAILED", words, at=ctx.clock.now_ms())
        try:
            copied = cast(ToolResultMessage, from_json(to_json(fact)))
            if (copied.call_id, copied.tool_name) != (call.id, call.name):
                raise ValueError(copied.call_id)
        except Exception as error:
            words = type(error).__name__
            return error_result(call, "BAD_OUTPUT", words, at=ctx.clock.now_ms())
        return copied


def blocked(
    call: ToolCall, code: str, id: str, reason: object, ctx: ExecContext
) -> ToolResultMessage:
    """The paired error result of a call that did not get through."""
    legal = str(reason).encode("utf-8", "ignore").decode()
    content = [text(f"{code} by {id}: {legal}")]
    details: dict[str, JSONValue] = {"code": code, "extension_id": id, "reason": legal}
    return tool_result(call, content, is_error=True, details=details, at=ctx.clock.now_ms())


async def load_extension(
    source: ExtensionSource,
    *,
    is_trusted: Callable[[ExtensionSource], object],
    import_module: Callable[[ExtensionSource], object],
    host: ExtensionHost,
    timeout: float | None = None,
) -> LoadResult:
    """How the load ended."""
    if not (source.id.isprintable() and source.id.strip()):
        raise CourseError("INVALID_SOURCE", repr(source.id))
    if "\0" in str(source.path) or not Path(source.path).name:
        raise CourseError("INVALID_SOURCE", repr(source.path))
    if not isinstance(host, Host):
        raise CourseError("INVALID_HOST", repr(type(host)))
    picture = photograph(source.path)
    question = await Visit(is_trusted).to(ExtensionSource(source.id, source.path), None)
    question.must_be(bool)
    if question.fault:
        note = HookDiagnostic(source.id, "is_trusted", question.fault, question.words)
        return LoadResult(source.id, "skipped_untrusted", (note,))
    if question.value is False:
        return LoadResult(source.id, "skipped_untrusted", ())
    if photograph(source.path) != picture:
        raise CourseError("SOURCE_CHANGED", repr(source.path))
    stage = Stage()
    try:
        module = await demand(import_module, ExtensionSource(source.id, source.path), timeout)
        factory = getattr(module, "default", None)
        if not callable(factory):
            raise CourseError("INVALID_EXTENSION", source.id)
        await demand(factory, stage, timeout)
    finally:
        stage._live = False
    host._activate(source.id, stage)
    return LoadResult(source.id, "active", ())


async def demand(function: Callable[[Any], object], argument: object, seconds: float | None) -> Any:
    """The value of a call that must succeed."""
    visit = await Visit(function).to(argument, seconds)
    if visit.fault:
        codes = {"timeout": "EXTENSION_TIMEOUT", "error": "EXTENSION_FAILED"}
        raise CourseError(codes[visit.fault], visit.words) from visit.error
    return visit.value


def photograph(path: Path) -> tuple[str, bytes]:
    """Where a path leads, and the content there."""
    real = os.path.realpath(path)
    try:
        return real, Path(real).read_bytes() if Path(real).is_file() else b""
    except OSError:
        return real, b""


def create_extension_host(
    registry: ToolRegistry, *, hook_timeout: float, report: Callable[[HookDiagnostic], object]
) -> ExtensionHost:
    """A new host."""
    return Host(registry, hook_timeout, report)
