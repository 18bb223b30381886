"""The members of a tar stream, one header after the other, forward only.

The standard library's tarfile seeks, keeps every member and takes seconds over a crafted header;
a reader that only lists members and hands out a few of them is short enough to be sure of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from course.submission import MIB, MOST_BYTES, Kind, Rejected

BLOCK = 512
CHUNK = 64 * 1024
LARGEST_HEADER = CHUNK  # a long name, or extended attributes
DAMAGED = "the archive is damaged, or no tar archive"
KINDS = {
    **dict.fromkeys(("0", "\0", "7", "S"), Kind.FILE),
    "5": Kind.FOLDER,
    **dict.fromkeys(("1", "2"), Kind.LINK),
}


class Source(Protocol):
    """Anything that gives at most so many bytes, and none at its end."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True)
class Member:
    """What a header says of a member, not yet believed."""

    name: str
    kind: Kind
    size: int
    mode: int
    sparse: bool


class Tarball:
    """Iterate for members; `content` gives the bytes of the current one, or some of them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._read = 0
        self._left = 0  # of the current member, with its padding

    def __iter__(self) -> Iterator[Member]:
        extended: dict[str, str] = {}
        while header := self._header():
            size = _number(header[124:136])
            kind = chr(header[156])
            if kind in "xgLK":
                data = self._exactly(size, LARGEST_HEADER)
                self._exactly(-size % BLOCK, BLOCK)
                extended |= _extension(kind, data)
                continue
            size = _pax_size(extended, size)
            self._left = size + -size % BLOCK
            name = extended.get("path") or _text(_full_name(header))
            sparse = kind == "S" or any(key.startswith("GNU.sparse") for key in extended)
            known = KINDS.get(kind, Kind.SPECIAL)
            known = Kind.FOLDER if known is Kind.FILE and name.endswith("/") else known
            yield Member(name, known, size, _number(header[100:108]), sparse)
            self._skip()
            extended = {}

    def content(self, member: Member, most: int) -> bytes:
        """At most `most` bytes of the member that was yielded last."""
        data = self._exactly(min(member.size, most), most)
        self._left -= len(data)
        return data

    def _header(self) -> bytes:
        block = self._some(BLOCK)
        if not block or not any(block):
            return b""
        plain = block[:148] + b" " * 8 + block[156:]
        if len(block) < BLOCK or sum(plain) != _number(block[148:156]):
            raise Rejected(DAMAGED)
        return block

    def _skip(self) -> None:
        while self._left:
            self._left -= len(self._exactly(min(self._left, CHUNK), CHUNK))

    def _exactly(self, size: int, most: int) -> bytes:
        if size > most:
            raise Rejected("the archive has a header of absurd length")
        data = self._some(size)
        if len(data) < size:
            raise Rejected("the archive ends too soon; it was not sent whole")
        return data

    def _some(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size and (part := self._source.read(size - len(data))):
            data += part
        self._read += len(data)
        if self._read > MOST_BYTES:
            raise Rejected(f"the archive unpacks to more than {MOST_BYTES // MIB} MiB")
        return bytes(data)


def _full_name(header: bytes) -> bytes:
    name = header[:100].split(b"\0")[0]
    prefix = header[345:500].split(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return prefix + b"/" + name if prefix else name


def _extension(kind: str, data: bytes) -> dict[str, str]:
    """What a header before the member's own says of it. Global ones say nothing that matters."""
    if kind in "LK":
        return {"path": _text(data.split(b"\0")[0])} if kind == "L" else {}
    return dict(_records(data)) if kind == "x" else {}


def _records(data: bytes) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(data):
        length, space, _ = data[at : at + 20].partition(b" ")
        end = at + (int(length) if length.isdigit() else 0)
        key, equals, value = data[at + len(length) + 1 : end].partition(b"=")
        if not space or not equals or not value.endswith(b"\n"):
            raise Rejected(DAMAGED)
        yield _text(key), _text(value[:-1])
        at = end


def _pax_size(extended: dict[str, str], size: int) -> int:
    said = extended.get("size", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 20 else size


def _number(field: bytes) -> int:
    """Octal digits, or with the first bit set a binary number."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.strip(b" \0").split(b"\0")[0].strip()
    if any(digit not in b"01234567" for digit in digits):
        raise Rejected(DAMAGED)
    return int(digits or b"0", 8)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
