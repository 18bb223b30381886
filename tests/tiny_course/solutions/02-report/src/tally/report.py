"""Reports about counted words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tally.counter import count_words

Listener = Callable[[str], None]


@dataclass
class Report:
    """A text's words, most frequent first; listeners hear of each line."""

    words: Mapping[str, int]
    listeners: list[Listener] = field(default_factory=list)

    def top(self, most: int) -> list[str]:
        """The `most` most frequent words; equal ones in alphabetical order."""
        ranked = sorted(self.words, key=lambda word: (-self.words[word], word))
        return ranked[:most]

    def lines(self) -> list[str]:
        """One line a word, in the order of top; each listener hears every line once."""
        written = [_line(word, self.words[word]) for word in self.top(len(self.words))]
        for listener in self.listeners:
            for line in written:
                listener(line)
        return written


def report_on(text: str) -> Report:
    """The report on a text. ValueError for one without words."""
    words = count_words(text)
    if not words:
        raise ValueError("no words")
    return Report(words)


def _line(word: str, times: int) -> str:
    return f"{word} {times}"
