"""One JSON document on stdout, as UTF-8 whatever the locale says."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from course.grades import Batch

LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def document(value: Any) -> bytes:
    """The value as one JSON line in UTF-8.

    Half a character (a lone surrogate), which strict readers refuse even when it is escaped,
    becomes the visible text of its escape.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return LONE_SURROGATE.sub(lambda half: f"\\\\u{ord(half[0]):04x}", text).encode() + b"\n"


def results(batch: Batch) -> Iterator[bytes]:
    """results.json: the document course.grade/1, one submission a part."""
    yield document(batch.head_json()).removesuffix(b"}\n") + b', "submissions": ['
    for number, grade in enumerate(batch.grades):
        yield b", " * bool(number) + document(grade.to_json()).rstrip(b"\n")
    yield b"]}\n"


def show(value: Any) -> None:
    """Write the document to stdout."""
    show_parts((document(value),))


def show_parts(parts: Iterable[bytes]) -> None:
    """Write a document that comes in parts to stdout."""
    sys.stdout.flush()
    sys.stdout.buffer.writelines(parts)
    sys.stdout.buffer.flush()
