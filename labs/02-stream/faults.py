"""Faults of chapter 02: each takes the right function and returns a plausibly wrong one."""

from __future__ import annotations

import json
from dataclasses import fields, replace


def index_is_ignored(collect):
    """Append every piece of text to the one text block that there surely is."""

    async def faulty(events, *rest, **options):
        async def merged():
            async for event in events:
                yield replace(event, index=0) if event.type == "text_delta" else event

        return await collect(merged(), *rest, **options)

    return faulty


def end_means_done(collect):
    """Take the end of the stream for a done that was not sent."""

    async def faulty(events, *rest, **options):
        async def ended():
            event = None
            async for event in events:
                yield event
            if event is not None:
                yield replace(event, type="done", stop="stop")

        return await collect(ended(), *rest, **options)

    return faulty


def failure_loses_the_text(collect):
    """Start the error draft afresh, without the text that had come."""

    async def faulty(*args, **options):
        draft = await collect(*args, **options)
        return replace(draft, blocks=()) if draft.stop == "error" else draft

    return faulty


def stray_pieces_are_dropped(collect):
    """Drop pieces of arguments whose call was never announced."""

    async def faulty(events, *rest, **options):
        async def tidy():
            known = set()
            async for event in events:
                known |= {event.index} if event.type == "toolcall_start" else set()
                if event.type != "toolcall_delta" or event.index in known:
                    yield event

        return await collect(tidy(), *rest, **options)

    return faulty


def unreadable_becomes_empty(collect):
    """Call the tool with {} when its arguments are no JSON."""

    async def faulty(events, *rest, **options):
        async def repaired():
            texts = {}
            async for event in events:
                if event.type == "toolcall_delta":
                    texts[event.index] = texts.get(event.index, "") + event.text
                    continue
                for index, text in texts.items() if event.type == "done" else ():
                    try:
                        json.loads(text)
                    except ValueError:
                        continue
                    yield replace(event, type="toolcall_delta", index=index, text=text)
                yield event

        return await collect(repaired(), *rest, **options)

    return faulty


def length_is_like_any_stop(collect):
    """Read "no arguments yet" as "no arguments", although the answer was cut for length."""

    async def faulty(events, *rest, **options):
        stops = []

        async def relabelled():
            async for event in events:
                stops.append(event.stop)
                yield replace(event, stop="tool_use") if event.stop == "length" else event

        draft = await collect(relabelled(), *rest, **options)
        return replace(draft, stop="length") if stops[-1:] == ["length"] else draft

    return faulty


def empty_is_incomplete(collect):
    """Leave out a call that has no arguments."""

    async def faulty(*args, **options):
        draft = await collect(*args, **options)
        kept = tuple(block for block in draft.blocks if getattr(block, "arguments", True))
        return replace(draft, blocks=kept)

    return faulty


def arguments_stay_plain(collect):
    """Hand over what json.loads returned, for anybody to change."""

    async def faulty(*args, **options):
        draft = await collect(*args, **options)

        def plain(block):
            if not hasattr(block, "arguments"):
                return block
            return replace(block, arguments={**block.arguments})

        return replace(draft, blocks=tuple(map(plain, draft.blocks)))

    return faulty


def read_past_the_end(collect):
    """Read the stream to its end and let the last terminal event decide."""

    async def faulty(events, *rest, **options):
        async def reordered():
            last = None
            async for event in events:
                if event.type in ("done", "error"):
                    last = event
                else:
                    yield event
            if last is not None:
                yield last

        return await collect(reordered(), *rest, **options)

    return faulty


def abort_is_ignored(collect):
    """Forget to hand the signal on."""

    async def faulty(events, on_delta=None, *, signal=None):
        return await collect(events, on_delta)

    return faulty


def abort_between_events_only(collect):
    """Look at the signal when an event comes, but not while none comes."""

    class Peek:
        def __init__(self, signal):
            self.signal = signal

        def __getattr__(self, name):
            return getattr(self.signal, name)

        async def wait(self):
            await type(self.signal)().wait()

    async def faulty(events, on_delta=None, *, signal=None):
        return await collect(events, on_delta, signal=signal and Peek(signal))

    return faulty


def one_live_draft(collect):
    """Show the same draft every time and keep writing into it."""

    async def faulty(events, on_delta=None, **options):
        live = []

        def show(draft):
            live.append(draft)
            for field in fields(draft):
                object.__setattr__(live[0], field.name, getattr(draft, field.name))
            on_delta(live[0])

        return await collect(events, on_delta and show, **options)

    return faulty


def deltas_at_the_end(collect):
    """Report all deltas when the stream is over."""

    async def faulty(events, on_delta=None, **options):
        drafts = []
        final = await collect(events, drafts.append, **options)
        for draft in drafts if on_delta else ():
            on_delta(draft)
        return final

    return faulty


def wait_does_not_wait(wait):
    """Return at once, set or not."""

    async def faulty(self):
        return None

    return faulty


def reason_is_dropped(abort):
    """Set the signal and forget why."""

    def faulty(self, reason=""):
        abort(self)

    return faulty


def cut_becomes_done(decode_events):
    """End a stream that was cut as if it had ended well."""

    def faulty(chunks):
        for event in decode_events(chunks):
            yield replace(event, type="done", stop="stop") if event.type == "error" else event

    return faulty


def a_chunk_is_a_message(decode_events):
    """Decode every chunk by itself, as they seem to come one message each."""

    def faulty(chunks):
        event = None
        for chunk in chunks:
            for event in decode_events([chunk]):
                if event.type != "error":
                    yield event
        if event is not None and event.type == "error":
            yield event

    return faulty


def reading_goes_on_after_done(decode_events):
    """Yield whatever else is sent after the terminal event."""

    def faulty(chunks):
        chunks = list(chunks)
        yield from decode_events(chunks)
        rest = b"".join(chunks).partition(b'"done"')[2].partition(b"\n\n")[2]
        if rest:
            yield from decode_events([rest])

    return faulty


def strange_messages_are_skipped(decode_events):
    """Skip a message that is not JSON, as the next one may be fine."""

    def faulty(chunks):
        def readable(frame):
            try:
                return json.loads(frame.removeprefix(b"data: ")) is not None
            except ValueError:
                return False

        frames = b"".join(chunks).split(b"\n\n")
        yield from decode_events(frame + b"\n\n" for frame in frames if readable(frame))

    return faulty


def contexts_are_forgotten(stream):
    """Play without keeping what the model was asked."""

    def faulty(self, context, signal):
        events = stream(self, context, signal)
        self.contexts.clear()
        return events

    return faulty


def scripted_failure_is_an_end(stream):
    """End the stream where the script wants an exception."""

    def faulty(self, context, signal):
        async def quiet():
            try:
                async for event in stream(self, context, signal):
                    yield event
            except OSError:
                return

        return quiet()

    return faulty
