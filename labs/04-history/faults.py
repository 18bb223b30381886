"""Plausible bugs, each put on one public function of pi_course.history."""

from __future__ import annotations

import dataclasses
import json
from functools import wraps
from itertools import pairwise


def second_result_flagged(check_history):
    """Want every result directly behind an assistant message, the second of two calls too."""

    @wraps(check_history)
    def faulty(messages):
        from pi_course.history import Problem

        history = tuple(messages)
        pairs = enumerate(pairwise(history), start=1)
        late = [
            Problem("MISPLACED_RESULT", index, message.call_id)
            for index, (before, message) in pairs
            if message.role == before.role == "tool_result"
        ]
        return [*check_history(history), *late]

    return faulty


def names_not_compared(check_history):
    """Pair a result with its call by the id alone."""

    @wraps(check_history)
    def faulty(messages):
        history = tuple(messages)
        blocks = [block for message in history for block in message.content]
        names = {block.id: block.name for block in blocks if block.type == "tool_call"}
        return check_history(
            dataclasses.replace(message, tool_name=names.get(message.call_id, message.tool_name))
            if message.role == "tool_result"
            else message
            for message in history
        )

    return faulty


def first_problem_only(check_history):
    """Stop looking when something has been found."""

    @wraps(check_history)
    def faulty(messages):
        return check_history(messages)[:1]

    return faulty


def lost_results_appended(repair_history):
    """Put the made-up results at the end of the history, all together."""

    @wraps(repair_history)
    def faulty(messages, *, at=0):
        from pi_course.history import SYNTHETIC

        given = tuple(messages)
        repair = repair_history(given, at=at)
        made_up = [
            message
            for message in repair.messages
            if getattr(message, "details", None) == SYNTHETIC and message not in given
        ]
        others = [message for message in repair.messages if message not in made_up]
        return dataclasses.replace(repair, messages=(*others, *made_up))

    return faulty


def lost_results_succeed(repair_history):
    """Tell the model that a call without a result went well."""

    @wraps(repair_history)
    def faulty(messages, *, at=0):
        from pi_course.history import SYNTHETIC

        repair = repair_history(messages, at=at)
        return dataclasses.replace(
            repair,
            messages=tuple(
                dataclasses.replace(message, is_error=False)
                if getattr(message, "details", None) == SYNTHETIC
                else message
                for message in repair.messages
            ),
        )

    return faulty


def finishing_order_kept(repair_history):
    """Leave the results of parallel calls in the order in which the tools finished."""

    @wraps(repair_history)
    def faulty(messages, *, at=0):
        given = tuple(messages)
        repair = repair_history(given, at=at)
        repaired = list(repair.messages)
        places = [i for i, message in enumerate(repaired) if message.role == "tool_result"]
        results = [repaired[i] for i in places]
        results.sort(key=lambda result: given.index(result) if result in given else len(given))
        for place, result in zip(places, results, strict=True):
            repaired[place] = result
        return dataclasses.replace(repair, messages=tuple(repaired))

    return faulty


def words_between_dropped(repair_history):
    """Close the gap between a call and its late result by leaving out what stands in it."""

    @wraps(repair_history)
    def faulty(messages, *, at=0):
        given = tuple(messages)
        kept = []
        for index, message in enumerate(given):
            later = given[index + 1 : index + 2]
            if not (message.role == "user" and later and later[0].role == "tool_result"):
                kept.append(message)
        return repair_history(kept, at=at)

    return faulty


def first_result_wins(repair_history):
    """Keep the first result of a call, made up or not."""

    @wraps(repair_history)
    def faulty(messages, *, at=0):
        kept, answered = [], set()
        for message in messages:
            if message.role == "assistant":
                answered.clear()
            if message.role != "tool_result" or message.call_id not in answered:
                kept.append(message)
            if message.role == "tool_result":
                answered.add(message.call_id)
        return repair_history(kept, at=at)

    return faulty


def one_result_an_id(repair_history):
    """Keep the results in a dict by call id, for the whole history."""

    @wraps(repair_history)
    def faulty(messages, *, at=0):
        given = tuple(messages)
        last = {m.call_id: i for i, m in enumerate(given) if m.role == "tool_result"}
        kept = [
            message
            for index, message in enumerate(given)
            if message.role != "tool_result" or last[message.call_id] == index
        ]
        return repair_history(kept, at=at)

    return faulty


def aborted_dropped_first(repair_history):
    """Drop the aborted messages before the results are paired, so these look for another call."""

    @wraps(repair_history)
    def faulty(messages, *, at=0):
        dropped = ("error", "aborted")
        return repair_history([m for m in messages if getattr(m, "stop", "") not in dropped], at=at)

    return faulty


def stamped_again(repair_history):
    """Make the lost results anew, with a new time, at every repair."""

    @wraps(repair_history)
    def faulty(messages, *, at=0):
        from pi_course.history import SYNTHETIC

        repair = repair_history(messages, at=at)
        return dataclasses.replace(
            repair,
            messages=tuple(
                dataclasses.replace(message, timestamp=at)
                if getattr(message, "details", None) == SYNTHETIC
                else message
                for message in repair.messages
            ),
        )

    return faulty


def arguments_as_an_object(to_provider):
    """Send the arguments of a chat call as the object that they are."""

    @wraps(to_provider)
    def faulty(messages, dialect):
        wire = to_provider(messages, dialect)
        for message in wire:
            for call in message.get("tool_calls", ()):
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        return wire

    return faulty


def one_message_a_result(to_provider):
    """Send every result in a user message of its own, as the chat dialect does."""

    @wraps(to_provider)
    def faulty(messages, dialect):
        wire = to_provider(messages, dialect)
        if dialect != "blocks":
            return wire
        return [
            {"role": message["role"], "content": content}
            for message in wire
            for content in (
                [[block] for block in message["content"]]
                if message["content"][0]["type"] == "tool_result"
                else [message["content"]]
            )
        ]

    return faulty


def repaired_on_the_way(to_provider):
    """Repair what is illegal while writing it, so that nobody learns of it."""

    @wraps(to_provider)
    def faulty(messages, dialect):
        from pi_course.history import repair_history

        return to_provider(repair_history(messages).messages, dialect)

    return faulty
