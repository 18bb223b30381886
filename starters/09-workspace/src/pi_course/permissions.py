"""May this call run? A policy answers, and a gate in front of the executor holds to the answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from pi_course.messages import ToolCall
from pi_course.schema import ToolSpec
from pi_course.tools import ToolExecutor, ToolRegistry
from pi_course.values import JSONValue

Decision: TypeAlias = Literal["allow", "ask", "deny"]
Rule: TypeAlias = Callable[[ToolSpec, Mapping[str, JSONValue]], Decision | None]
Ask: TypeAlias = Callable[[ToolCall, ToolSpec], Awaitable[bool]]

STRICTNESS: tuple[Decision, ...] = ("allow", "ask", "deny")
DEFAULTS: Mapping[str, Decision] = {
    "read": "allow", "write": "ask", "execute": "ask", "network": "ask",
}


class PermissionPolicy:
    """What each permission is worth, and rules that look closer; the strictest word counts."""

    def __init__(
        self, by_permission: Mapping[str, Decision] = DEFAULTS, rules: Sequence[Rule] = ()
    ) -> None:
        """A policy of `by_permission` (a permission missing in it is denied) and of `rules`.

        A rule gets the spec and the frozen arguments, not validated yet, and returns a decision,
        or None when the call is none of its business.
        """
        self._by_permission = dict(by_permission)
        self._rules = tuple(rules)

    def decide(self, spec: ToolSpec, args: Mapping[str, JSONValue]) -> Decision:
        """The strictest of what the permission of `spec` and all rules say; it never raises.

        A rule can only take away, never give back. One that raises or returns anything else says
        "deny".
        """
        raise NotImplementedError("Lab 09.2 workspace and gate 尚未实现")


def gate(
    executor: ToolExecutor, registry: ToolRegistry, policy: PermissionPolicy, ask: Ask | None = None
) -> ToolExecutor:
    """An executor that hands a call to `executor` once it is allowed, and to nobody before.

    "ask" is put to the coroutine function ask(call, spec); only the answer True allows. No `ask`,
    any other answer, an error in it or in the policy, or an abort while it is pending: denied.
    What is denied never starts; its result is an error with details {"code": "DENIED"}. A name
    that is not in `registry` has nothing to run: `executor` answers it (UNKNOWN_TOOL).
    """
    raise NotImplementedError("Lab 09.2 workspace and gate 尚未实现")
