"""HTML: read back by html.parser, and by a real browser that would run a script."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from course.grades import Batch
from course.render.html import POLICY, html
from course.render.plain import plain
from course.render.wording import red_items, score
from tests.arbitrary import batches, everything_hostile, ordinary, quickly, whole
from tests.html_page import Page

ELEMENTS = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "strong",
            "table", "thead", "tbody", "tr", "th", "td", "a", "section", "pre"}
ATTRIBUTES = {"lang", "charset", "http-equiv", "content", "name", "scope", "href", "id"}
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
               None)


def check(page: Page, batch: Batch) -> None:
    """Only our elements and attributes, links only inside the page, every text as it was."""
    assert {tag for tag, _ in page.found} <= ELEMENTS
    assert {name for _, attributes in page.found for name in attributes} <= ATTRIBUTES
    links = [attributes["href"] for tag, attributes in page.found if tag == "a"]
    assert links == [f"#s{number}" for number in range(1, len(batch.grades) + 1)]
    policies = [a["content"] for tag, a in page.found if a.get("http-equiv")]
    assert policies == [POLICY] and "script-src" not in POLICY and "default-src 'none'" in POLICY
    assert page.of("a") == [plain(grade.name) for grade in batch.grades]
    assert [text.strip("\n") for text in page.of("h2")] == [
        f"{plain(g.name)}: {g.status}, {score(g)}".strip("\n") for g in batch.grades]
    blocks = [plain(item.text) for grade in batch.grades for item in red_items(batch, grade)]
    assert [text.strip("\n") for text in page.of("pre")] == [text.strip("\n") for text in blocks]


@quickly
@given(batches())
def test_nothing_in_a_grade_becomes_markup(batch: Batch) -> None:
    """The parser of the standard library finds our page around their words."""
    data = whole(html(batch))
    check(Page(data.decode(), ELEMENTS), batch)
    assert not set(map(chr, (0, 0x1B, 0x202E, 0xFEFF))) & set(data.decode())


def test_every_hostile_text_in_every_field() -> None:
    """All of them on one page."""
    batch = everything_hostile()
    check(Page(whole(html(batch)).decode(), ELEMENTS), batch)


@pytest.mark.skipif(BROWSER is None, reason="NOT RUN: no browser (apt-get install chromium)")
def test_a_browser_shows_the_page_and_runs_nothing(tmp_path: Path) -> None:
    """Its document, written out again, has no script, no image and the title that we gave it."""
    batch = replace(everything_hostile(), chapter="12")
    (tmp_path / "grades.html").write_bytes(whole(html(batch)))
    page = dump(tmp_path / "grades.html", tmp_path)
    assert [text.strip() for text in page.of("title")] == ["Grades of chapter 12"]
    check(page, batch)


@pytest.mark.skipif(BROWSER is None, reason="NOT RUN: no browser (apt-get install chromium)")
def test_a_browser_would_have_run_a_script(tmp_path: Path) -> None:
    """The test above can fail: without escaping and policy the title changes."""
    path = tmp_path / "evil.html"
    path.write_text("<title>fine</title><script>document.title = 'owned'</script>")
    assert dump(path, tmp_path).of("title") == ["owned"]
    path.write_text(f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
                    "<title>fine</title><script>document.title = 'owned'</script>")
    assert dump(path, tmp_path).of("title") == ["fine"]


def dump(path: Path, home: Path) -> Page:
    """The document as the browser has it after loading."""
    command = [BROWSER or "", "--headless", "--no-sandbox", "--disable-gpu",
               "--disable-dev-shm-usage",
               f"--user-data-dir={home / 'profile'}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, check=True, timeout=120,
                          env={**os.environ, "HOME": str(home)})
    return Page(done.stdout.decode(), {*ELEMENTS, "script"})


def test_what_a_class_looks_like() -> None:
    """Names, points, and why a lab is red."""
    text = whole(html(ordinary())).decode()
    assert "2 of 3 points" in text and "does not agree: lines keep their order" in text
