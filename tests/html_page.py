"""HTML as its standard library's parser reads it: elements, attributes and the text in them."""

from __future__ import annotations

from collections.abc import Collection
from html.parser import HTMLParser


class Page(HTMLParser):
    """A parsed page. Text counts as that of the last element begun that is in `holders`."""

    def __init__(self, text: str, holders: Collection[str]) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self._holders = holders
        self._texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    @property
    def tags(self) -> list[str]:
        return [tag for tag, _ in self.found]

    def of(self, tag: str) -> list[str]:
        """The text of each such element."""
        return [text for found, text in self._texts if found == tag]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag in self._holders:
            self._texts.append((tag, ""))

    def handle_data(self, data: str) -> None:
        if self._texts:
            tag, text = self._texts[-1]
            self._texts[-1] = (tag, text + data)
