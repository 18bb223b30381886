"""Reports about counted words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Listener = Callable[[str], None]


@dataclass
class Report:
    """A text's words, most frequent first; listeners hear of each line."""

    words: Mapping[str, int]
    listeners: list[Listener] = field(default_factory=list)

    def top(self, most: int) -> list[str]:
        """The `most` most frequent words; equal ones in alphabetical order."""
        raise NotImplementedError("Lab 02.1 top words 尚未实现")

    def lines(self) -> list[str]:
        """One line a word, in the order of top; each listener hears every line once."""
        raise NotImplementedError("Lab 02.2 report lines 尚未实现")


def report_on(text: str) -> Report:
    """The report on a text. ValueError for one without words."""
    raise NotImplementedError("Lab 02.1 top words 尚未实现")
