"""A page of grades: plain, whole in itself, and without anything that runs or loads."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from course.grades import Batch
from course.render.pages import TEMPLATES
from course.render.plain import plain
from course.render.wording import count, items, number, red_items, remarks, score

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; }
th, td { padding: .2rem .8rem .2rem 0; text-align: start; vertical-align: top; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border-inline-start: 3px solid;
      padding-inline-start: 1rem; }
"""
HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{HASH}'; base-uri 'none'; form-action 'none'"


def html(batch: Batch) -> Iterator[bytes]:
    """The document as UTF-8, in parts of a few lines."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True, autoescape=True, finalize=visible,
    )
    page = environment.get_template("grades.html.j2")
    parts = page.generate(batch=batch, items=items, count=count, number=number, score=score,
                          red_items=red_items, remarks=remarks(batch), style=Markup(STYLE),
                          policy=POLICY)
    return map(str.encode, parts)


def visible(value: Any) -> Any:
    """Every value of the template on its way to the escaping that jinja2 does."""
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value
