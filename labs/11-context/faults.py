"""Faults of chapter 11: each takes the right function and returns a plausibly wrong one."""

from __future__ import annotations

from dataclasses import replace

from pi_course.errors import CourseError
from pi_course.messages import ImageBlock, TextBlock, ThinkingBlock, ToolCall, ToolResultMessage
from pi_course.sessions import active_messages
from pi_course.values import canonical_json


def four_characters_a_token(estimate_tokens):
    """Divide the characters by four, as one does in English."""
    def faulty(value):
        return (len(value) + 3) // 4 if isinstance(value, str) else estimate_tokens(value)
    return faulty


def rounded_down(estimate_tokens):
    """Divide and drop the rest."""
    def faulty(value):
        return len(value.encode()) // 3 if isinstance(value, str) else estimate_tokens(value)
    return faulty


def only_text_counts(estimate_tokens):
    """Count what a message says, and forget what it thinks and asks for."""
    def faulty(value):
        return 0 if isinstance(value, (ToolCall, ThinkingBlock)) else estimate_tokens(value)
    return faulty


def hosts_part_counts(estimate_tokens):
    """Count the details of a result, which no model ever sees."""
    def faulty(value):
        if isinstance(value, ToolResultMessage):
            return estimate_tokens(value) + estimate_tokens(canonical_json(value.details).decode())
        return estimate_tokens(value)
    return faulty


def pictures_by_the_byte(estimate_tokens):
    """Count a picture as the text that its base64 is."""
    def faulty(value):
        if isinstance(value, ImageBlock):
            return estimate_tokens(TextBlock(value.data))
        return estimate_tokens(value)
    return faulty


def schemas_are_free(estimate_tokens):
    """Count a tool's name and description, and not the schema that is sent with them."""
    def faulty(value):
        if hasattr(value, "input_schema"):
            return estimate_tokens(value.name) + estimate_tokens(value.description)
        return estimate_tokens(value)
    return faulty


def prompt_is_trimmed(build_context):
    """Tidy the system prompt up a little."""
    def faulty(path, *, system_prompt="", **options):
        return build_context(path, system_prompt=system_prompt.strip(), **options)
    return faulty


def tools_are_free(build_context):
    """Leave the tools out of the sum: they are not messages."""
    def faulty(path, *, tools=(), **options):
        return build_context(path, **options)
    return faulty


def one_token_short(build_context):
    """Take "fits" to mean "less than"."""
    def faulty(path, *, max_tokens, **options):
        build_context(path, max_tokens=max_tokens, **options)
        return build_context(path, max_tokens=max(0, max_tokens - 1), **options)
    return faulty


def losses_are_silent(build_context):
    """Leave turns out and do not say so."""
    def faulty(path, **options):
        return replace(build_context(path, **options), dropped_entry_ids=(), reason=None)
    return faulty


def small_turns_slip_past(build_context):
    """Leave a turn out that has no room, and go on to older ones that have."""
    def faulty(path, **options):
        shown = build_context(path, **options)
        while shown.reason == "budget":
            lost = shown.dropped_entry_ids[-1]
            last = next(i for i, entry in enumerate(path) if entry.id == lost)
            first = last
            while first and path[first].payload["role"] != "user":
                first -= 1
            path = [*path[:first], *path[last + 1 :]]
            shown = build_context(path, **options)
        return shown
    return faulty


def reserve_is_forgotten(build_context):
    """Fill the whole window and leave no room for the answer."""
    def faulty(path, *, reserved_output=0, **options):
        build_context(path, reserved_output=min(reserved_output, 0), **options)
        return build_context(path, **options)
    return faulty


def too_small_is_empty(build_context):
    """Show nothing when the newest turn has no room."""
    def faulty(path, **options):
        try:
            return build_context(path, **options)
        except CourseError as error:
            if error.code != "CONTEXT_TOO_SMALL":
                raise
            return build_context([], **{**options, "max_tokens": 10**9})
    return faulty


def summaries_pile_up(build_context):
    """Show every summary on the path, not the last one only."""
    def faulty(path, **options):
        shown = build_context(path, **options)
        older = [i for i, entry in enumerate(path) if entry.kind == "compaction"][:-1]
        told = [build_context(path[: i + 1], **options).messages[0] for i in older]
        return replace(shown, messages=(*told, *shown.messages))
    return faulty


def kept_is_lost(build_context):
    """Begin after the compaction, and lose what it kept."""
    def faulty(path, **options):
        shown = build_context(path, **options)
        places = [i for i, entry in enumerate(path) if entry.kind == "compaction"]
        if not places:
            return shown
        after = len(active_messages(path[places[-1] :]))
        first = max(1, len(shown.messages) - after)
        return replace(shown, messages=(shown.messages[0], *shown.messages[first:]))
    return faulty


def cut_at_the_entry(build_context):
    """Begin exactly at the entry that a compaction names, be it in the middle of a call."""
    def faulty(path, **options):
        shown = build_context(path, **options)
        if path and path[-1].kind == "compaction":
            named = path[-1].payload["first_kept_id"]
            start = next(i for i, entry in enumerate(path) if entry.id == named)
            lost = tuple(entry.id for entry in path[:start])
            return replace(build_context(path[start:], **options), dropped_entry_ids=lost)
        return shown
    return faulty


def unknown_hides_nothing(build_context):
    """Go on as if there were no compaction when the entry that it names is not there."""
    def faulty(path, **options):
        try:
            return build_context(path, **options)
        except CourseError as error:
            if error.code != "UNKNOWN_ENTRY":
                raise
            return build_context([e for e in path if e.kind != "compaction"], **options)
    return faulty


def shown_as_recorded(build_context):
    """Show the messages of a session without a compaction exactly as they were recorded."""
    def faulty(path, **options):
        shown = build_context(path, **options)
        if shown.reason in (None, "repair"):
            return replace(shown, messages=tuple(active_messages(path)))
        return shown
    return faulty


def message_by_message(build_context):
    """Fill the room that is left with single messages of the next older turn."""
    def faulty(path, **options):
        shown = build_context(path, **options)
        size = options["estimate_tokens"]
        room = options["max_tokens"] - options.get("reserved_output", 0)
        room -= options.get("safety_margin", 0) + shown.used
        messages, used = shown.messages, shown.used
        older = [e for e in path if e.id in shown.dropped_entry_ids and e.kind == "message"]
        if shown.reason != "budget":
            return shown
        for message in reversed(active_messages(older)):
            if size(message) > room:
                break
            room, used = room - size(message), used + size(message)
            messages = (message, *messages)
        return replace(shown, messages=messages, used=used)
    return faulty
