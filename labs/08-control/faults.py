"""Faults of chapter 08: one function a fault, each wraps one public name."""

import asyncio
from dataclasses import replace
from weakref import WeakKeyDictionary, WeakSet

from pi_course.errors import CourseError
from pi_course.messages import ToolResultMessage


def history_forgotten(init):
    """Show the model only what was said since the last prompt."""

    class Forgetful:
        def __init__(self, model):
            self.model = model

        def stream(self, context, signal):
            users = [i for i, message in enumerate(context.messages) if message.role == "user"]
            context = replace(context, messages=context.messages[users[-1] :])
            return self.model.stream(context, signal)

    def faulty(self, model, executor, **settings):
        init(self, Forgetful(model), executor, **settings)

    return faulty


def second_prompt_waits(prompt):
    """Let a second prompt wait until the first one is done."""
    locks = WeakKeyDictionary()

    async def faulty(self, text):
        async with locks.setdefault(self, asyncio.Lock()):
            return await prompt(self, text)

    return faulty


def no_end_for_failed_tools(subscribe):
    """Tell of the end of a tool only when it went well."""

    def faulty(self, listener):
        def heard(event):
            if not (event.kind == "tool_end" and event.data["is_error"]):
                listener(event)

        return subscribe(self, heard)

    return faulty


def one_try_for_all_listeners(subscribe):
    """Stop delivering an event at the first listener that raises."""
    rooms = WeakKeyDictionary()

    def faulty(self, listener):
        if self not in rooms:
            room = rooms[self] = []
            subscribe(self, lambda event: [hear(event) for hear in tuple(room)])
        rooms[self].append(listener)
        return lambda: listener in rooms[self] and rooms[self].remove(listener)

    return faulty


def listeners_changed_while_told(subscribe):
    """Go through the very list that a listener may shorten."""
    rooms = WeakKeyDictionary()

    def deliver(room, event):
        failed = None
        for hear in room:
            try:
                hear(event)
            except Exception as error:
                failed = error
        if failed is not None:
            raise failed

    def faulty(self, listener):
        if self not in rooms:
            room = rooms[self] = []
            subscribe(self, lambda event: deliver(room, event))
        rooms[self].append(listener)
        return lambda: listener in rooms[self] and rooms[self].remove(listener)

    return faulty


def busy_after_a_cancellation(prompt):
    """Forget to say that the run is over when it was cancelled."""
    stuck = WeakSet()

    async def faulty(self, text):
        if self in stuck:
            raise CourseError("BUSY", "a run is going on")
        try:
            return await prompt(self, text)
        except asyncio.CancelledError:
            stuck.add(self)
            raise

    return faulty


def skipped_calls_unanswered(prompt):
    """Give the calls that steering skips no result at all."""

    def is_skipped(message):
        return isinstance(message, ToolResultMessage) and message.details == {"code": "SKIPPED"}

    async def faulty(self, text):
        result = await prompt(self, text)
        kept = tuple(message for message in result.messages if not is_skipped(message))
        return replace(result, messages=kept)

    return faulty


def steering_waits_for_the_end(steer):
    """Take steering for a follow-up."""

    def faulty(self, text):
        self.follow_up(text)

    return faulty


def steering_kills_what_runs(steer):
    """Stop the whole run when the user says something."""

    def faulty(self, text):
        self.abort(text)
        steer(self, text)

    return faulty


def follow_up_at_once(follow_up):
    """Take a follow-up for steering."""

    def faulty(self, text):
        self.steer(text)

    return faulty


def follow_ups_in_one_go(prompt):
    """Leave it to the model to sort several follow-ups out: say them together."""

    async def faulty(self, text):
        waiting = self.abort()
        if len(waiting) > 1:
            self.follow_up("\n".join(waiting))
        elif waiting:
            self.steer(*waiting)
        return await prompt(self, text)

    return faulty


def queue_dropped_at_the_end(prompt):
    """Throw away what is still waiting when a run is over."""

    async def faulty(self, text):
        try:
            return await prompt(self, text)
        finally:
            self.abort()

    return faulty


def abort_not_heard(abort):
    """Take the queue back and let the run go on."""

    def faulty(self, reason=""):
        return ()

    return faulty


def second_abort_refused(abort):
    """Refuse to abort what was aborted before."""
    aborted = WeakSet()

    def faulty(self, reason=""):
        if self in aborted:
            raise CourseError("NOT_RUNNING", "aborted already")
        aborted.add(self)
        return abort(self, reason)

    return faulty


def queue_kept_by_abort(abort):
    """Leave the queue as it is when the run is aborted."""

    def faulty(self, reason=""):
        waiting = abort(self, reason)
        for text in waiting:
            self.follow_up(text)
        return waiting

    return faulty
