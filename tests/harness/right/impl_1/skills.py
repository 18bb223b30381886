"""pathlib throughout, the given helpers left alone, checks where they are needed."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from io import BytesIO
from pathlib import Path
from typing import TypedDict

SKILL_FILE = "SKILL.md"
MAX_SKILLS = 20
LINE_BYTES = 512  # one header line, its line ending included
HEADER_LINES = 32  # after the opening fence, the closing one included
HEADER_BYTES = 4096  # of those lines together
SKILL_BYTES = 8192  # the whole file
NAME_CHARACTERS = 64
DESCRIPTION_CHARACTERS = 160

FENCES = frozenset({b"---", b"---\n", b"---\r\n"})
BOM = b"\xef\xbb\xbf"
HEADER_BUFFER = len(BOM) + len(b"---\r\n") + HEADER_BYTES + 1  # enough to see one byte too many
OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp"})  # Unicode categories
NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")


class Header(TypedDict):
    """What a skill says about itself in its first lines."""

    name: str
    description: str


class SkillEntry(TypedDict):
    """One skill in the registry: never a body. `path` and `root` are real, absolute paths."""

    description: str
    path: str
    root: str


Registry = dict[str, SkillEntry]


def scan_skills(root: Path, *, limit: int = MAX_SKILLS) -> Registry:
    root = root.resolve()
    registry: Registry = {}
    for directory in sorted(root.iterdir()):
        if directory.is_symlink() and (directory.is_dir() or not directory.exists()):
            raise ValueError("技能路径越过宿主目录。")
        file = directory / SKILL_FILE
        if not directory.is_dir() or not (file.is_symlink() or file.exists()):
            continue
        path = file.resolve()
        if directory not in path.parents:
            raise ValueError("技能路径越过宿主目录。")
        meta = read_header(path)
        if meta["name"] != directory.name:
            raise ValueError(f"名称需与目录一致且唯一；最多{limit}项。")
        if len(registry) + 1 > limit:
            raise ValueError(f"名称需与目录一致且唯一；最多{limit}项。")
        registry[directory.name] = SkillEntry(
            description=meta["description"], path=str(path), root=str(root)
        )
    return registry


def build_system(registry: Registry, base: str) -> str:
    catalogue = ""
    for name, entry in sorted(registry.items(), key=lambda item: item[0]):
        catalogue += "- " + name + ": " + entry["description"] + "\n"
    if not catalogue:
        catalogue = "（无可用技能）\n"
    rule = "需要时用load_skill读取正文；技能不授予工具权限。"
    return base + "\n\n可用技能（仅目录）：\n" + catalogue + rule


def load_skill(name: str, registry: Registry) -> str:
    entry = registry.get(name) if isinstance(name, str) else None
    if entry is None:
        raise ValueError("未知技能名称。")
    path = Path(entry["path"]).resolve()
    if Path(entry["root"]) / name not in path.parents:
        raise ValueError("技能路径越过宿主目录。")
    if not path.is_file():
        raise FileNotFoundError(name)
    with path.open("rb") as stream:
        raw = stream.read(SKILL_BYTES + 1)
    if len(raw) > SKILL_BYTES:
        raise ValueError("技能超过8192字节；请拆分，不截断说明。")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("技能必须是UTF-8。") from None
    if text.isspace() or not text:
        raise ValueError("技能文件为空。")
    return text


def read_header(path: Path) -> Header:
    """Name and description from the header; what is behind the closing fence does not matter.

    Only these two single-line fields without quotes: a teaching subset, no YAML parser. The limits
    come first, the fields second; what does not fit is a ValueError.
    """
    fields: dict[str, str] = {}
    for line in _header_lines(path):
        key, colon, value = line.strip(" \t").partition(":")
        value = value.strip(" \t")
        if not colon or key not in Header.__annotations__ or key in fields:
            raise ValueError("只支持name/description两个单行字段。")
        if not value.strip() or value[0] in "\"'|>":
            raise ValueError("只支持name/description两个单行字段。")
        fields[key] = value
    name, description = fields.get("name", ""), fields.get("description", "")
    if (
        not NAME.fullmatch(name)
        or len(name) > NAME_CHARACTERS
        or not 1 <= len(description) <= DESCRIPTION_CHARACTERS
        or not _visible(description)
    ):
        raise ValueError("技能名称或描述无效。")
    return {"name": name, "description": description}


def read_start(path: Path, size: int) -> bytes:
    """The first `size` bytes of the regular file at `path`, or all it has if that is less.

    Opening never waits for a writer: a FIFO, a folder or a device is a ValueError at once.
    """
    descriptor = os.open(path, OPEN_FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("技能文件必须是普通文件。")
        data = b""
        while len(data) < size and (more := os.read(descriptor, size - len(data))):
            data += more
        return data
    finally:
        os.close(descriptor)


def _header_lines(path: Path) -> list[str]:
    """The lines between the fences; the limits are checked line by line, before any decoding."""
    stream = BytesIO(read_start(path, HEADER_BUFFER))
    if stream.readline(LINE_BYTES + 1).removeprefix(BOM) not in FENCES:
        raise ValueError("技能缺少frontmatter。")
    lines: list[str] = []
    total = 0
    for _ in range(HEADER_LINES):
        raw = stream.readline(LINE_BYTES + 1)
        total += len(raw)
        if not raw or len(raw) > LINE_BYTES or total > HEADER_BYTES:
            raise ValueError("技能头部无效或过长。")
        if raw in FENCES:
            return lines
        lines.append(_decoded(raw.removesuffix(b"\n").removesuffix(b"\r")))
    raise ValueError("技能头部未结束。")


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeError as error:
        raise ValueError("技能头部无效或过长。") from error


def _visible(text: str) -> bool:
    """No control, format (bidirectional marks are), line or paragraph separator characters."""
    return text.isprintable() or INVISIBLE.isdisjoint(map(unicodedata.category, text))
