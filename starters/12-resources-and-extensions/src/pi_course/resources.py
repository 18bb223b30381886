"""Two borders: text reaches the model only on request, code runs only after it is trusted.

Data:       roots → discover → activate → format → the system prompt of build_context
Execution:  source → trusted? → import → factory, staged → commit → before, core, after

Where several error codes fit, any of them is right, unless an order is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from pi_course.messages import UserMessage
from pi_course.tools import Tool, ToolExecutor, ToolRegistry

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
    raise NotImplementedError("Lab 12.1 resource catalog 尚未实现")


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
    raise NotImplementedError("Lab 12.2 skill activation 尚未实现")


# Lab 12.3: the only ways into the model's sight


def render_template(template: Resource, args: Mapping[str, str], *, at: int) -> UserMessage:
    """One user message of time `at` (ms): the body with an argument in place of each {{name}}.

    A name is [A-Za-z_][A-Za-z0-9_]* and nothing around it; all other braces are text. Values go
    in as they are and are not looked into; arguments that have no place are ignored.
    Errors, in this order: INVALID_TEMPLATE (another kind), MISSING_ARGUMENT (no such key; lists
    all of them), INVALID_ARGUMENT (not a string), INVALID_MESSAGE (of user(): what comes out is
    no legal text, as with a lone surrogate in a value).
    """
    raise NotImplementedError("Lab 12.3 resource context 尚未实现")


def format_resource_context(catalog: Catalog, activated: Iterable[ActivatedSkill] = ()) -> str:
    """The system prompt for build_context; "" if there is nothing to say.

    Instructions; name and description of every skill; body and files of the active skills. An
    inactive body is nowhere. All that comes from files is escaped (& < > become &amp; &lt; &gt;),
    names of files too, and nothing else is changed: no text can end its section. The order of
    `activated`, and of files, makes no difference.
    Errors: DUPLICATE_ACTIVATION, FOREIGN_ACTIVATION (no skill here has its name, root and entry:
    its Resource's digest).
    """
    raise NotImplementedError("Lab 12.3 resource context 尚未实现")


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
    raise NotImplementedError("Lab 12.4 extension loading 尚未实现")


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
    raise NotImplementedError("Lab 12.4 extension loading 尚未实现")
