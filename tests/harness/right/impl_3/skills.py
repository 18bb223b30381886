"""A class a skill: each looks after its own folder, header and text."""

import codecs
import os
from pathlib import Path
from stat import S_ISREG


class SkillError(ValueError):
    """What the host says of a skill."""


class Header:
    """The lines between the fences, one after the other."""

    def __init__(self, raw):
        self.rest = raw
        self.fields = {}

    def line(self):
        line, self.rest = self.rest.partition(b"\n")[0], self.rest.partition(b"\n")[2]
        return line.removesuffix(b"\r")

    def read(self):
        self.rest = self.rest.removeprefix(codecs.BOM_UTF8)
        if self.line() != b"---":
            raise SkillError("技能缺少frontmatter。")
        room = 4096
        for _ in range(32):
            before = len(self.rest)
            line = self.line()
            size = before - len(self.rest)
            room -= size
            if not size or size > 512 or room < 0:
                raise SkillError("技能头部无效或过长。")
            if line == b"---":
                return self.checked()
            self.add(line)
        raise SkillError("技能头部未结束。")

    def add(self, line):
        try:
            text = line.decode("utf-8", "strict")
        except UnicodeDecodeError as error:
            raise SkillError("技能头部无效或过长。") from error
        key, found, value = text.partition(":")
        key, value = key.lstrip(" \t"), value.strip(" \t")
        if not found or key not in ("name", "description") or key in self.fields or not value:
            raise SkillError("只支持name/description两个单行字段。")
        if value.startswith(('"', "'", "|", ">")):
            raise SkillError("只支持name/description两个单行字段。")
        self.fields[key] = value

    def checked(self):
        import unicodedata

        name, text = self.fields.get("name"), self.fields.get("description")
        words = (name or "").split("-")
        fine = all(word.isascii() and word.isalnum() and word == word.lower() for word in words)
        hidden = [one for one in text or "" if unicodedata.category(one) in "Cc Cf Zl Zp".split()]
        if (name is None or text is None or not fine or words[0][0].isdigit() or len(name) > 64
                or len(text) > 160 or hidden):
            raise SkillError("技能名称或描述无效。")
        return {"name": name, "description": text}


class Skill:
    """One folder of the root."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.file = folder / "SKILL.md"

    def __bool__(self):
        return self.folder.is_dir() and os.path.lexists(self.file)

    @property
    def path(self):
        real = Path(os.path.realpath(self.file, strict=True))
        if self.folder.is_symlink() or self.folder not in real.parents:
            raise SkillError("技能路径越过宿主目录。")
        return real

    def entry(self, limit):
        header = read_header(self.path)
        if header.pop("name") != self.folder.name or limit <= 0:
            return None
        return header | {"root": str(self.root), "path": str(self.path)}


def scan_skills(root, *, limit=20):
    root = Path(os.path.realpath(root, strict=True))
    found = {}
    for folder in root.iterdir():
        if folder.is_symlink() and not folder.exists():
            raise SkillError("技能路径越过宿主目录。")
        skill = Skill(root, folder)
        if skill:
            entry = skill.entry(limit - len(found))
            if entry is None:
                raise SkillError(f"名称需与目录一致且唯一；最多{limit}项。")
            found[folder.name] = entry
    return dict(sorted(found.items()))


def build_system(registry, base):
    def lines():
        yield base
        yield ""
        yield "可用技能（仅目录）："
        for name in sorted(registry):
            yield f"- {name}: {registry[name]['description']}"
        if len(registry) == 0:
            yield "（无可用技能）"
        yield "需要时用load_skill读取正文；技能不授予工具权限。"

    return "\n".join(lines())


def load_skill(name, registry):
    try:
        entry = registry[name]
    except (KeyError, TypeError):
        raise ValueError("未知技能名称。") from None
    parts = Path(os.path.realpath(entry["path"], strict=True)).parts
    home = (*Path(entry["root"]).parts, name)
    if parts[: len(home)] != home:
        raise ValueError("技能路径越过宿主目录。")
    raw = read_start(Path(*parts), 8193)
    if len(raw) == 8193:
        raise ValueError("技能超过8192字节；请拆分，不截断说明。")
    try:
        text, _ = codecs.utf_8_decode(raw, "strict", True)
    except UnicodeDecodeError as error:
        raise ValueError("技能必须是UTF-8。") from error
    if text.lstrip("\ufeff").split() == []:
        raise ValueError("技能文件为空。")
    return text


def read_header(path):
    return Header(read_start(path, 5000)).read()


def read_start(path, size):
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(number, "rb", buffering=0) as stream:
        if not S_ISREG(os.fstat(number).st_mode):
            raise OSError("no regular file")
        parts = iter(lambda: stream.read(size - sum(map(len, read))), b"")
        read = []
        for part in parts:
            read.append(part)
        return b"".join(read)
