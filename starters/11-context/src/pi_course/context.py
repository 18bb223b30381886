"""What a model gets to see: the newest part of a session that fits into its window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pi_course.messages import Message
from pi_course.schema import ToolSpec
from pi_course.sessions import Entry

IMAGE_TOKENS = 1_200
MESSAGE_TOKENS = 4

Estimator: TypeAlias = Callable[[object], int]


@dataclass(frozen=True, slots=True)
class Compaction:
    """What the payload of a "compaction" entry says: `summary` tells all that came before.

    What came before is every entry of the path before the one with the id `first_kept_id`.
    """

    summary: str
    first_kept_id: str


@dataclass(frozen=True, slots=True)
class Projection:
    """What one request shows a model, and what of the path it does not show.

    `used` is the estimate for prompt, tools and messages together. `dropped_entry_ids` name, in
    path order, the "message" entries left out, and `reason` is None if there are none, else the
    first of these that is true: "budget", a turn had no room; "compaction", a summary stands for
    them; "repair", they are what repair_history takes away.
    """

    system_prompt: str
    messages: tuple[Message, ...]
    used: int
    dropped_entry_ids: tuple[str, ...]
    reason: str | None


def estimate_tokens(value: object) -> int:
    """Return about how many tokens `value` takes: a third of its UTF-8 bytes, rounded up.

    That is near the truth for Chinese and on the safe side for English. `value` is a text, a
    block, a message (its blocks and MESSAGE_TOKENS), a tool's spec, or JSON. An image counts
    IMAGE_TOKENS, however many bytes it has.
    """
    raise NotImplementedError("Lab 11.1 token estimate 尚未实现")


def build_context(
    path: Sequence[Entry],
    *,
    max_tokens: int,
    system_prompt: str = "",
    tools: Sequence[ToolSpec] = (),
    reserved_output: int = 0,
    safety_margin: int = 0,
    estimate_tokens: Estimator = estimate_tokens,
) -> Projection:
    """Return the newest turns of `path` for which used + reserve + margin ≤ max_tokens.

    With room for everything the messages are those of repair_history(active_messages(path)): a
    legal history. A turn is a user message with all that follows it up to the next one; a turn is
    shown whole or not at all. Always there, or CONTEXT_TOO_SMALL: the system prompt, unchanged;
    the tools; the newest turn; the summary of the last compaction, as a user message before all
    others. Then older turns, the newest first, up to the first one that has no room.

    The last compaction on the path hides what is before the entry that it names, other summaries
    too. But an answer with calls and the results of these calls are never parted: named in the
    middle of them, it keeps them all.

    `estimate_tokens` is asked about the prompt, unless that is empty, each tool and each message;
    the answers are added up. Nothing else is looked at: same arguments, same projection. Codes
    besides: UNKNOWN_ENTRY (a compaction names no entry that is before it on this path),
    INVALID_ENTRY (its payload), INVALID_BUDGET (a size or an estimate is no int from 0 up).
    """
    raise NotImplementedError("Lab 11.2 context projection 尚未实现")
