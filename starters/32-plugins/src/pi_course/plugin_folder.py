"""Where a plugin lies on this disk: the folder, its manifest, and files that are only files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pi_course.plugin_manifest import Manifest, parse_manifest

MANIFEST_FILE = "plugin.json"


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin folder whose manifest and entry paths are in order; its code is still unread."""

    manifest: Manifest
    manifest_sha256: str
    folder: Path = field(repr=False)


def load_plugin(
    root: Path, name: str, *, parse: Callable[[bytes], Manifest] = parse_manifest
) -> Plugin:
    """Return the plugin `name` in the folder `root`: manifest and paths checked, no code touched.

    `name` is judged before it becomes a path; `parse` turns the bytes of plugin.json into a
    Manifest, and that must carry the same name. Each entry must lie inside the plugin folder
    when every link is followed, be reached without any link at all, and be a file that
    read_plain_file reads. `root` itself may be a link.

    Codes of CourseError, beside those of `parse`; no message holds an absolute path:
    INVALID_NAME        `name` is no plugin name (PLUGIN_NAME, MAX_NAME), or not the manifest's
    MANIFEST_NOT_FOUND  no such folder, or in it no plugin.json that read_plain_file reads
    INVALID_SCHEMA      plugin.json has more than MAX_BYTES bytes (they are not all read)
    ENTRY_ESCAPE        the plugin folder is a link or lies outside `root`; an entry is missing,
                        outside, behind a link, or no plain file
    """
    raise NotImplementedError("实现 Plugin 权限声明校验")


def read_plain_file(path: Path, most: int) -> bytes:
    """Return the bytes of a file that is only a file: regular, with one name, not behind a link.

    What is opened is what is judged, so nothing can be swapped in between, and opening never
    waits (a FIFO would). CourseError NOT_PLAIN for a link, a folder, a FIFO, a device, a second
    hard link, and what is missing or cannot be read; TOO_LARGE for more than `most` bytes, of
    which no more than `most` + 1 are read.
    """
    raise NotImplementedError("实现 Plugin 权限声明校验")
