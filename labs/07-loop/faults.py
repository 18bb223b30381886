"""Faults of chapter 07: one function a fault, each wraps one public name."""

from dataclasses import replace
from itertools import count

from pi_course.messages import AssistantMessage, ToolResultMessage, calls_of


class _Retold:
    """A model whose contexts and events are changed on the way."""

    def __init__(self, model, context=lambda c: c, event=lambda e: e):
        self.model, self.context, self.event = model, context, event

    async def stream(self, context, signal):
        async for event in self.model.stream(self.context(context), signal):
            yield self.event(event)


def deltas_not_told(ask_model):
    """Tell of an answer only when it is whole."""

    async def faulty(model, context, *, emit, **rest):
        def tell(event):
            if event.kind != "message_delta":
                emit(event)

        return await ask_model(model, context, emit=tell, **rest)

    return faulty


def failed_answer_not_ended(ask_model):
    """Send message_end only for an answer that went well."""

    async def faulty(model, context, *, emit, **rest):
        def tell(event):
            message = event.data.get("message") or {"stop": ""}
            if event.kind != "message_end" or message["stop"] not in ("error", "aborted"):
                emit(event)

        return await ask_model(model, context, emit=tell, **rest)

    return faulty


def model_failure_raised(ask_model):
    """Raise what the model raised."""

    async def faulty(*args, **rest):
        answer = await ask_model(*args, **rest)
        if answer.stop == "error":
            raise RuntimeError(answer.error)
        return answer

    return faulty


def abort_drops_the_text(ask_model):
    """Keep nothing of an answer that was aborted."""

    async def faulty(*args, **rest):
        answer = await ask_model(*args, **rest)
        return replace(answer, content=()) if answer.stop == "aborted" else answer

    return faulty


def history_changed(run_agent):
    """Append the new messages to the caller's list."""

    async def faulty(model, history, executor, **rest):
        result = await run_agent(model, history, executor, **rest)
        if isinstance(history, list):
            history.extend(result.messages)
        return result

    return faulty


def history_not_shown(run_agent):
    """Show the model only the new messages from the second turn on."""

    async def faulty(model, history, executor, **rest):
        def cut(context):
            new = context.messages[len(history) :]
            return replace(context, messages=new) if new else context

        return await run_agent(_Retold(model, context=cut), history, executor, **rest)

    return faulty


def results_before_the_answer(run_agent):
    """Record the results of the first turn before the answer that asked for them."""

    async def faulty(*args, **rest):
        result = await run_agent(*args, **rest)
        made = [m for m in result.messages[1:] if isinstance(m, ToolResultMessage)]
        if not made:
            return result
        others = [m for m in result.messages if m not in made]
        return replace(result, messages=(*made, *others))

    return faulty


def one_call_too_many(run_agent):
    """Count the calls only after they were made."""

    async def faulty(*args, limits, **rest):
        limits = replace(limits, max_calls=limits.max_calls + 1)
        return await run_agent(*args, limits=limits, **rest)

    return faulty


def one_turn_too_many(run_agent):
    """Look at max_turns only after a turn."""

    async def faulty(*args, limits, **rest):
        limits = replace(limits, max_turns=limits.max_turns + 1)
        return await run_agent(*args, limits=limits, **rest)

    return faulty


def pending_calls_left_open(run_agent):
    """Stop at a limit without a word to the calls that are still open."""

    async def faulty(*args, **rest):
        result = await run_agent(*args, **rest)
        kept = list(result.messages)
        while result.stop == "limit" and kept and isinstance(kept[-1], ToolResultMessage):
            kept.pop()
        return replace(result, messages=tuple(kept))

    return faulty


def cut_calls_executed(run_agent):
    """Take a call for whole because its JSON is."""

    async def faulty(model, *args, **rest):
        def tell(event):
            return replace(event, stop="stop") if event.stop == "length" else event

        return await run_agent(_Retold(model, event=tell), *args, **rest)

    return faulty


def failed_answer_not_recorded(run_agent):
    """End the run on an error and forget what the model had said."""

    async def faulty(*args, **rest):
        result = await run_agent(*args, **rest)
        return replace(result, messages=result.messages[:-1]) if result.stop == "error" else result

    return faulty


def aborted_results_dropped(run_agent):
    """Throw the results of the turn away in which the abort came."""

    async def faulty(*args, **rest):
        result = await run_agent(*args, **rest)
        kept = list(result.messages)
        while result.stop == "aborted" and kept and not calls_of(kept[-1]):
            kept.pop()
        return replace(result, messages=tuple(kept))

    return faulty


def abort_not_heard(run_agent):
    """Run with a signal of its own."""

    async def faulty(*args, signal=None, **rest):
        return await run_agent(*args, **rest)

    return faulty


def late_updates_told(run_agent):
    """Pass on what a tool reports, also when it was given up."""

    async def faulty(model, history, executor, *, emit=None, **rest):
        from pi_course.loop import RunEvent

        async def telling(call, ctx):
            def update(text):
                if emit is not None:
                    emit(RunEvent("tool_update", {"id": call.id, "text": text}))

            return await executor(call, replace(ctx, update=update))

        return await run_agent(model, history, telling, emit=emit, **rest)

    return faulty


def clock_of_the_machine(run_agent):
    """Take the time from a clock that goes on between two runs."""
    ticks = count(1_000)

    class Machine:
        def now_ms(self):
            return next(ticks)

    async def faulty(*args, clock, **rest):
        return await run_agent(*args, clock=Machine(), **rest)

    return faulty


def assistant_continued(run_agent):
    """Ask again when the last word was the model's own."""

    async def faulty(model, history, executor, **rest):
        if history and isinstance(history[-1], AssistantMessage) and len(history) > 1:
            history = history[:-1]
        return await run_agent(model, history, executor, **rest)

    return faulty


def follow_up_too_early(run_agent):
    """Ask the inbox as if the run were always about to end."""

    async def faulty(*args, inbox=None, **rest):
        early = None if inbox is None else lambda idle: inbox(True)
        return await run_agent(*args, inbox=early, **rest)

    return faulty
