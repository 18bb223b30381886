"""Markdown: rendered by GitHub's own parser and by markdown-it, then read as HTML."""

from __future__ import annotations

from collections.abc import Callable

import cmarkgfm  # type: ignore[import-untyped]
import pytest
from cmarkgfm.cmark import Options  # type: ignore[import-untyped]
from hypothesis import given
from markdown_it import MarkdownIt

from course.grades import Batch
from course.render.markdown import inline, markdown
from course.render.plain import line, plain
from course.render.wording import red_items
from tests.arbitrary import HOSTILE, anything, batches, everything_hostile, ordinary, quickly, whole
from tests.html_page import Page

OURS = {"h1", "h2", "table", "thead", "tbody", "tr", "th", "td", "blockquote", "p", "ul", "li",
        "code", "pre"}
Renderer = Callable[[str], str]


def by_github(text: str) -> str:
    """cmark-gfm with every extension on and raw HTML let through."""
    return str(cmarkgfm.github_flavored_markdown_to_html(text, Options.CMARK_OPT_UNSAFE))


def by_markdown_it(text: str) -> str:
    """A second implementation, with links made of bare addresses."""
    return str(MarkdownIt("gfm-like", {"html": True}).render(text))


both = pytest.mark.parametrize("renderer", [by_github, by_markdown_it])


def read(text: str) -> Page:
    return Page(text, {"h1", "h2", "td", "pre", "p", "li"})


def texts(page: Page, tag: str) -> list[str]:
    return [text.strip() for text in page.of(tag)]


def seen(text: str) -> str:
    """What a reader sees of a text on one line: spaces alone would not be seen."""
    spaces = "\\x20" * len(text) if not text.strip(" ") else ""
    return (spaces or line(text).replace("|", "\\x7c")).strip()


@both
@quickly
@given(batch=batches())
def test_everything_is_shown_and_nothing_is_obeyed(renderer: Renderer, batch: Batch) -> None:
    """Only our own elements: no link, no image, no HTML; every name and block comes back."""
    page = read(renderer(whole(markdown(batch)).decode()))
    assert set(page.tags) <= OURS
    assert page.tags.count("h1") == 1 and page.tags.count("h2") == len(batch.grades)
    names = [seen(grade.name) for grade in batch.grades]
    assert texts(page, "td")[: 4 * len(names) : 4] == names
    red = [item for grade in batch.grades for item in red_items(batch, grade)]
    assert texts(page, "pre") == [plain(item.text).strip() for item in red]


@both
@quickly
@given(text=anything)
def test_inline_text_is_one_run_of_text_anywhere(renderer: Renderer, text: str) -> None:
    """In a paragraph, a heading and a cell it is what it was."""
    if not text:
        return
    for before, after, tag in (("x ", " x", "p"), ("# ", "", "h1"), ("|a|\n|-|\n| ", " |", "td")):
        page = read(renderer(f"{before}{inline(text)}{after}\n"))
        assert set(page.tags) <= OURS
        (found,) = texts(page, tag)
        assert (found[2:-2] if tag == "p" else found).strip() == seen(text)


@both
def test_every_hostile_text_in_every_field(renderer: Renderer) -> None:
    """One section each, and nothing more."""
    page = read(renderer(whole(markdown(everything_hostile())).decode()))
    assert set(page.tags) <= OURS and page.tags.count("h2") == len(HOSTILE)


def test_what_a_class_looks_like() -> None:
    """It can be read as it is, too."""
    text = whole(markdown(ordinary())).decode()
    assert "| ben | failed | 2 | 3 |" in text and "## ben: failed, 2 of 3 points" in text
    assert "does not agree: lines keep their order" in text
