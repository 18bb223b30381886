"""Words and how often they stand in a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

_WORD = re.compile(r"[a-z]+")


def count_words(text: str) -> dict[str, int]:
    """Each word of the text in lower case with how often it stands there."""
    # Hyphens and digits end a word.
    return dict(Counter(_each_word(text)))


def _each_word(text: str) -> Iterator[str]:
    yield from _WORD.findall(text.lower())
