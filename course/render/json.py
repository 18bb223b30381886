"""One JSON document on stdout, as UTF-8 whatever the locale says."""

from __future__ import annotations

import json
import sys
from typing import Any


def document(value: Any) -> bytes:
    """The value as one JSON line. Lone surrogates stay escaped, everything else is UTF-8."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def show(value: Any) -> None:
    """Write the document to stdout."""
    sys.stdout.flush()
    sys.stdout.buffer.write(document(value))
    sys.stdout.buffer.flush()
