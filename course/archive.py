"""The entries of a zip or tar archive that nobody has vouched for. Nothing is ever extracted.

Members are read one after the other, only those with a wanted name, and never more of one than
may be taken. What an archive says about its own sizes is not believed.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import stat
import struct
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import IO

from course.submission import (
    LARGEST_TAKEN,
    MIB,
    MOST_MEMBERS,
    Entry,
    Kind,
    Rejected,
    checked_path,
    passed_over,
    shown,
)
from course.tarball import Source, Tarball

LARGEST_DIRECTORY = 8 * MIB  # of a zip: 65,535 members with long names
XZ_MEMORY = 128 * MIB
PLAIN = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}  # the others unpack without a bound
OTHERS = {
    b"Rar!": "a .rar archive",
    b"7z\xbc\xaf": "a .7z archive",
    b"\x28\xb5\x2f\xfd": "a .zst archive",
}


def archive_entries(file: IO[bytes], wanted: Sequence[str]) -> Iterator[Entry]:
    """The members of an archive but for those that are passed over; Rejected if it is none."""
    start = file.read(512)
    file.seek(0)
    for magic, what in OTHERS.items():
        if start.startswith(magic):
            raise Rejected(f"this is {what}; send a folder, a .zip or a .tar.gz")
    if start.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_entries(file, wanted)
    if start.startswith(b"\x1f\x8b"):
        return _tar_entries(gzip.GzipFile(fileobj=file), wanted)
    if start.startswith(b"BZh"):
        return _tar_entries(bz2.BZ2File(file), wanted)
    if start.startswith(b"\xfd7zXZ\x00"):
        return _tar_entries(Unxz(file), wanted)
    if start[257:262] == b"ustar" or (start and not any(start)):  # nothing but zeros: empty
        return _tar_entries(file, wanted)
    raise Rejected("this is no Python file, folder, .zip or .tar archive")


class Unxz:
    """An .xz stream, unpacked within bounded memory: lzma.LZMAFile takes no bound."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self._unpacker = lzma.LZMADecompressor(memlimit=XZ_MEMORY)

    def read(self, size: int, /) -> bytes:
        while not self._unpacker.eof:
            hungry = self._unpacker.needs_input
            packed = self._source.read(64 * 1024) if hungry else b""
            if hungry and not packed:
                raise EOFError("the .xz stream ends too soon")
            if data := self._unpacker.decompress(packed, size):
                return data
        return b""


def _tar_entries(source: Source, wanted: Sequence[str]) -> Iterator[Entry]:
    names = {PurePosixPath(want).name for want in wanted}
    archive = Tarball(source)
    for count, member in enumerate(archive):
        if count >= MOST_MEMBERS:
            raise Rejected(f"more than {MOST_MEMBERS:,} members; send only your own work")
        path = checked_path(member.name)
        if not path or _is_passed_over(path, wanted):
            continue
        data = None
        if member.kind is Kind.FILE and PurePosixPath(path).name in names:
            data = archive.content(member, LARGEST_TAKEN + 1)
        yield Entry(path, member.kind, member.size, member.mode, 1, member.sparse, data)


def _zip_entries(file: IO[bytes], wanted: Sequence[str]) -> Iterator[Entry]:
    names = {PurePosixPath(want).name for want in wanted}
    _check_directory(file)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if len(members) > MOST_MEMBERS:
            raise Rejected(f"more than {MOST_MEMBERS:,} members; send only your own work")
        for member in members:
            path = checked_path(member.orig_filename)
            if not path or _is_passed_over(path, wanted):
                continue
            kind = _zip_kind(member)
            data = None
            if kind is Kind.FILE and PurePosixPath(path).name in names:
                data = _zip_content(archive, member)
            yield Entry(path, kind, member.file_size, member.external_attr >> 16, data=data)


def _check_directory(file: IO[bytes]) -> None:
    """Refuse a table of contents that would not fit into memory before it is read."""
    size = file.seek(0, 2)
    file.seek(max(0, size - 66 * 1024))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < 22:
        raise Rejected("the .zip archive ends too soon; it was not sent whole")
    length = struct.unpack_from("<I", tail, at + 12)[0]
    if length > LARGEST_DIRECTORY or tail.find(b"PK\x06\x07", max(0, at - 20), at) >= 0:
        raise Rejected("the .zip archive has too many members; send only your own work")
    file.seek(0)


def _zip_kind(member: zipfile.ZipInfo) -> Kind:
    mode = member.external_attr >> 16
    if member.create_system == 3 and stat.S_IFMT(mode):
        kinds = {stat.S_IFREG: Kind.FILE, stat.S_IFDIR: Kind.FOLDER, stat.S_IFLNK: Kind.LINK}
        kind = kinds.get(stat.S_IFMT(mode), Kind.SPECIAL)
        if kind is not Kind.FILE:
            return kind
    return Kind.FOLDER if member.orig_filename.endswith(("/", "\\")) else Kind.FILE


def _zip_content(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.flag_bits & 1:
        raise Rejected(f"{shown(member.filename)} is locked with a password")
    if member.compress_type not in PLAIN:
        raise Rejected(f"{shown(member.filename)} is packed in an unusual way; use plain .zip")
    with archive.open(member) as content:
        return content.read(LARGEST_TAKEN + 1)


def _is_passed_over(path: str, wanted: Sequence[str]) -> bool:
    return any(passed_over(part, wanted) for part in path.split("/"))
