"""Faults of chapter 06: one function a fault, each wraps one public name."""

import asyncio
from dataclasses import replace
from weakref import WeakKeyDictionary

from pi_course.errors import CourseError
from pi_course.messages import tool_result
from pi_course.signals import AbortSignal
from pi_course.values import deep_freeze, thaw


def sorted_names(names):
    """List the names in alphabetical order."""

    def faulty(self):
        return tuple(sorted(names(self)))

    return faulty


def live_specs(specs):
    """Give out the same list again and again, so that it grows in the hands of who has it."""
    lists = WeakKeyDictionary()

    def faulty(self):
        given = lists.setdefault(self, [])
        given[:] = specs(self)
        return given

    return faulty


def last_one_wins(register):
    """Let a second tool take the place of the first one of its name."""

    def faulty(self, tool):
        name = getattr(getattr(tool, "spec", None), "name", None)
        if name not in self.names():
            return register(self, tool)
        self.__init__([tool if old == name else self.get(old) for old in self.names()])

    return faulty


def one_by_one(register_all):
    """Register a group tool by tool and stop at the first bad one."""

    def faulty(self, tools):
        for tool in tools:
            register_all(self, (tool,))

    return faulty


def schema_not_checked(register):
    """Take a tool whose schema is unsound, as one that takes no arguments."""

    def faulty(self, tool):
        try:
            register(self, tool)
        except CourseError as error:
            if error.code != "INVALID_TOOL" or not hasattr(tool, "execute"):
                raise
            register(self, replace(tool, spec=replace(tool.spec, input_schema={"type": "object"})))

    return faulty


def paired_by_name_alone(create_executor):
    """Answer under the name of the tool and forget which call it was."""

    def faulty(registry, **options):
        executor = create_executor(registry, **options)

        async def execute(call, ctx):
            return replace(await executor(call, ctx), call_id=call.name)

        return execute

    return faulty


def run_first_check_later(create_executor):
    """Run the tool before its arguments are checked."""

    def faulty(registry, **options):
        executor = create_executor(registry, **options)

        async def execute(call, ctx):
            tool = registry.get(call.name)
            if tool is not None:
                await tool.execute(thaw(call.arguments), ctx)
            return await executor(call, ctx)

        return execute

    return faulty


def arguments_shared(get):
    """Hand the same argument dict to every run of a tool."""
    kept = {}

    def faulty(self, name):
        tool = get(self, name)
        if tool is None:
            return None
        return replace(
            tool, execute=lambda args, ctx: tool.execute(kept.setdefault(repr(args), args), ctx)
        )

    return faulty


def arguments_frozen(get):
    """Hand the frozen arguments of the call to the tool."""

    def faulty(self, name):
        tool = get(self, name)
        if tool is None:
            return None
        return replace(tool, execute=lambda args, ctx: tool.execute(deep_freeze(args), ctx))

    return faulty


def failure_raised(create_executor):
    """Let what a tool raises out of the executor."""

    def faulty(registry, **options):
        executor = create_executor(registry, **options)

        async def execute(call, ctx):
            result = await executor(call, ctx)
            if result.is_error and result.details == {"code": "TOOL_FAILED"}:
                raise RuntimeError(result.content[0].text)
            return result

        return execute

    return faulty


def junk_is_success(create_executor):
    """Take whatever a tool returns for an answer."""

    def faulty(registry, **options):
        executor = create_executor(registry, **options)

        async def execute(call, ctx):
            result = await executor(call, ctx)
            junk = result.is_error and result.details == {"code": "BAD_OUTPUT"}
            return replace(result, is_error=False, details=None) if junk else result

        return execute

    return faulty


def no_deadline(create_executor):
    """Wait for a tool for as long as it takes."""

    def faulty(registry, *, timeout=None, **options):
        return create_executor(registry, **options)

    return faulty


def abort_not_heard(create_executor):
    """Run the tool without looking at the signal of the run."""

    def faulty(registry, **options):
        executor = create_executor(registry, **options)

        async def execute(call, ctx):
            return await executor(call, replace(ctx, signal=AbortSignal()))

        return execute

    return faulty


def cancellation_swallowed(create_executor):
    """Turn a cancellation from outside into an ordinary error result."""

    def faulty(registry, **options):
        executor = create_executor(registry, **options)

        async def execute(call, ctx):
            try:
                return await executor(call, ctx)
            except asyncio.CancelledError:
                return tool_result(call, "cancelled", is_error=True, at=ctx.clock.now_ms())

        return execute

    return faulty


def cut_without_a_mark(create_executor):
    """Cut a long text and do not tell."""

    def faulty(registry, *, max_output=20_000, **options):
        executor = create_executor(registry, max_output=max_output, **options)

        async def execute(call, ctx):
            result = await executor(call, ctx)
            return replace(result, content=result.content[:1])

        return execute

    return faulty


def never_cut(create_executor):
    """Pass on every text whole, however long it is."""

    def faulty(registry, *, max_output=20_000, **options):
        return create_executor(registry, max_output=10**9, **options)

    return faulty


def order_of_finishing(execute_batch):
    """Return the results in the order in which they came in."""

    async def faulty(executor, calls, ctx, **options):
        came_in = []

        async def noting(call, ctx):
            result = await executor(call, ctx)
            came_in.append(result)
            return result

        answered = await execute_batch(noting, calls, ctx, **options)
        return came_in + [result for result in answered if result not in came_in]

    return faulty


def always_in_parallel(execute_batch):
    """Start all calls at once, whatever the mode says."""

    async def faulty(executor, calls, ctx, *, mode="parallel"):
        return await execute_batch(executor, calls, ctx)

    return faulty


def first_failure_ends_the_batch(execute_batch):
    """Give the whole batch up when one call fails."""

    async def faulty(executor, calls, ctx, **options):
        results = await execute_batch(executor, calls, ctx, **options)
        codes = [result.details and result.details.get("code") for result in results]
        end = codes.index("TOOL_FAILED") + 1 if "TOOL_FAILED" in codes else len(codes)
        return results[:end]

    return faulty
