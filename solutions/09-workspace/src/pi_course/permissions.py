"""May this call run? A policy answers, and a gate in front of the executor holds to the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from pi_course.messages import ToolCall, ToolResultMessage
from pi_course.schema import ToolSpec
from pi_course.tools import PASSING, ExecContext, ToolExecutor, ToolRegistry, error_result
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
        words: list[object] = [self._by_permission.get(spec.permission, "deny")]
        for rule in self._rules:
            try:
                word = rule(spec, args)
                words.append("allow" if word is None else word)
            except PASSING:
                raise
            except BaseException:
                words.append("deny")
        return max(map(_decision, words), key=STRICTNESS.index)


def gate(
    executor: ToolExecutor, registry: ToolRegistry, policy: PermissionPolicy, ask: Ask | None = None
) -> ToolExecutor:
    """An executor that hands a call to `executor` once it is allowed, and to nobody before.

    "ask" is put to the coroutine function ask(call, spec); only the answer True allows. No `ask`,
    any other answer, an error in it or in the policy, or an abort while it is pending: denied.
    What is denied never starts; its result is an error with details {"code": "DENIED"}. A name
    that is not in `registry` has nothing to run: `executor` answers it (UNKNOWN_TOOL).
    """

    async def guarded(call: ToolCall, ctx: ExecContext) -> ToolResultMessage:
        tool = registry.get(call.name)
        if tool is None or await _is_allowed(policy, ask, tool.spec, call, ctx):
            return await executor(call, ctx)
        reason = f"{call.name} needs the permission {tool.spec.permission!r} and did not get it"
        return error_result(call, "DENIED", reason, at=ctx.clock.now_ms())

    return guarded


def _decision(word: object) -> Decision:
    return next((known for known in STRICTNESS if type(word) is str and word == known), "deny")


async def _is_allowed(
    policy: PermissionPolicy, ask: Ask | None, spec: ToolSpec, call: ToolCall, ctx: ExecContext
) -> bool:
    try:
        decision = policy.decide(spec, call.arguments)
        if decision == "ask" and ask is not None:
            return await _answer(ask(call, spec), ctx)
        return decision == "allow"
    except PASSING:
        raise
    except BaseException:
        return False


async def _answer(question: Awaitable[bool], ctx: ExecContext) -> bool:
    pending = asyncio.ensure_future(question)
    abort = asyncio.ensure_future(ctx.signal.wait())
    try:
        await asyncio.wait({pending, abort}, return_when=asyncio.FIRST_COMPLETED)
        return pending.done() and not pending.cancelled() and pending.result() is True
    finally:
        pending.cancel()
        abort.cancel()
