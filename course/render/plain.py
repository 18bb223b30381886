"""What other people wrote, made harmless to look at. Every sink starts here, then escapes."""

from __future__ import annotations

import unicodedata

DANGEROUS = ("Cc", "Cf", "Cs", "Zl", "Zp", "Co")


def plain(text: str) -> str:
    """The text with everything that could move a cursor, colour or reorder a line made visible."""
    if text.isprintable():  # nothing that is printable is dangerous, and most text is
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" or not _dangerous(char) else _escaped(char)
        for char in text
    )


def line(text: str) -> str:
    """The text as one line: line ends and tabs are made visible too."""
    return plain(text).replace("\n", "\\n").replace("\t", "\\t")


def shortened(text: str, most: int) -> str:
    """The text, or its first `most` characters and how many more there were."""
    left = len(text) - most
    return text if left <= 0 else f"{text[:most]}… [{left:,} more characters]"


def _dangerous(char: str) -> bool:
    return unicodedata.category(char) in DANGEROUS or _no_character(ord(char))


def _no_character(code: int) -> bool:
    """Code points that Unicode keeps out of interchange, and XML out of documents."""
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def _escaped(char: str) -> str:
    code = ord(char)
    if code < 256:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
