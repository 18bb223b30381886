"""Bytes and regular expressions: the header is matched as a whole, paths are compared as parts."""

# ruff: noqa: PTH112, PTH113, PTH114, PTH116, PTH118, PTH123, PTH208
import os
import re
import stat
import unicodedata
from collections import OrderedDict
from pathlib import Path

Registry = dict[str, dict[str, str]]

_PATH = "技能路径越过宿主目录。"
_FIELDS = "只支持name/description两个单行字段。"
_HEADER = re.compile(rb"(?:\xef\xbb\xbf)?---(?:\r?\n|\Z)((?:(?!---(?:\r?\n|\Z)).*(?:\n|\Z))*?)"
                     rb"---(?:\r?\n|\Z)")
_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?---(?:\r?\n|\Z)")
_LINE = re.compile(rb"[^\n]*\n|[^\n]+\Z")
_FIELD = re.compile(r"(name|description):[ \t]*([^\"'|> \t].*?)[ \t]*\Z", re.DOTALL)
_NAME = re.compile(r"(?=.{1,64}\Z)[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")


def scan_skills(root, *, limit=20):
    root = os.path.realpath(root)
    message = f"名称需与目录一致且唯一；最多{limit}项。"
    folders = [name for name in sorted(os.listdir(root)) if _is_skill(os.path.join(root, name))]
    files = {name: _file_of(os.path.join(root, name)) for name in folders}
    headers = {name: read_header(Path(file)) for name, file in files.items()}
    if any(header["name"] != name for name, header in headers.items()) or len(headers) > limit:
        raise ValueError(message)
    return OrderedDict(
        (name, dict(root=root, path=files[name], description=headers[name]["description"]))
        for name in folders)


def build_system(registry, base):
    lines = ["", "可用技能（仅目录）："]
    lines += ["- {}: {}".format(name, registry[name]["description"]) for name in sorted(registry)]
    lines += [] if registry else ["（无可用技能）"]
    lines += ["需要时用load_skill读取正文；技能不授予工具权限。"]
    return "\n".join([base, *lines])


def load_skill(name, registry):
    if not isinstance(name, str) or name not in registry:
        raise ValueError("未知技能名称。")
    path = os.path.realpath(registry[name]["path"])
    if not _below(path, os.path.join(registry[name]["root"], name)):
        raise ValueError(_PATH)
    raw = read_start(path, 8193)
    if raw[8192:]:
        raise ValueError("技能超过8192字节；请拆分，不截断说明。")
    try:
        text = str(raw, "utf-8")
    except UnicodeError:
        pass
    else:
        if re.search(r"\S", text):
            return text
        raise ValueError("技能文件为空。")
    raise ValueError("技能必须是UTF-8。")


def read_header(path):
    raw = read_start(path, 8 + 4097)
    opening = _OPENING.match(raw)
    if not opening:
        raise ValueError("技能缺少frontmatter。")
    found = _HEADER.match(raw)
    if found is None or found.end() - opening.end() > 4096:
        raise ValueError("技能头部无效或过长。")
    lines = _LINE.findall(found[1])
    if len(lines) > 31 or any(len(line) > 512 for line in lines):
        raise ValueError("技能头部无效或过长。")
    fields = {}
    for line in lines:
        try:
            match = _FIELD.match(re.sub(rb"\r?\n\Z", b"", line).decode())
        except UnicodeError:
            raise ValueError("技能头部无效或过长。") from None
        if match is None or match[1] in fields:
            raise ValueError(_FIELDS)
        fields[match[1]] = match[2]
    if len(fields) != 2 or not _NAME.match(fields["name"]) or not _plain(fields["description"]):
        raise ValueError("技能名称或描述无效。")
    return fields


def read_start(path, size):
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("技能文件必须是普通文件。")
    with open(path, "rb") as stream:
        return stream.read(size)


def _is_skill(folder):
    if os.path.islink(folder):
        if os.path.isfile(folder):
            return False
        raise ValueError(_PATH)
    return os.path.isdir(folder) and "SKILL.md" in os.listdir(folder)


def _file_of(folder):
    path = os.path.realpath(os.path.join(folder, "SKILL.md"))
    if not _below(path, folder):
        raise ValueError(_PATH)
    return path


def _below(path, folder):
    return path != folder and os.path.commonpath([path, folder]) == folder


def _plain(text):
    return 0 < len(text) <= 160 and not any(
        unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp") for character in text)
