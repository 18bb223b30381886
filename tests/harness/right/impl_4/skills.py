"""Descriptors and identities of folders; a text is given with plain line ends."""

import io
import os
import stat
import unicodedata
from itertools import islice
from pathlib import Path

FORBIDDEN = {"Cc", "Cf", "Zl", "Zp"}
ALPHABET = set("abcdefghijklmnopqrstuvwxyz0123456789-")


def scan_skills(root, *, limit=20):
    root = Path(root).resolve(strict=True)
    with os.scandir(root) as found:
        folders = sorted(entry.name for entry in found if _holds_skill(entry))
    pairs = ((name, _entry(root, name, limit)) for name in folders)
    registry = dict(islice(pairs, limit))
    if len(folders) > limit:
        raise _no_match(limit)
    return registry


def build_system(registry, base):
    out = io.StringIO()
    out.write(f"{base}\n\n可用技能（仅目录）：\n")
    names = list(registry)
    names.sort()
    for name in names:
        out.write(f"- {name}: {registry[name]['description']}\n")
    if not names:
        print("（无可用技能）", file=out)
    out.write("需要时用load_skill读取正文；技能不授予工具权限。")
    return out.getvalue()


def load_skill(name, registry):
    if type(name) != str or not any(name == known for known in registry):  # noqa: E721
        raise ValueError("未知技能名称。")
    entry = registry[name]
    path, folder = Path(entry["path"]), Path(entry["root"], name)
    if folder.is_symlink() or not _leads_into(folder, path):
        raise ValueError("技能路径越过宿主目录。")
    data = read_start(path, 8193)
    problems = {
        "技能超过8192字节；请拆分，不截断说明。": len(data) > 8192,
        "技能必须是UTF-8。": "\ufffd" in data.replace("\ufffd".encode(), b"").decode(
            "utf-8", "replace"),
        "技能文件为空。": not data.removeprefix(b"\xef\xbb\xbf").strip(),
    }
    for problem, is_there in problems.items():
        if is_there:
            raise ValueError(problem)
    return "\n".join(data.decode("utf-8-sig").split("\r\n"))


def read_header(path):
    data = read_start(path, 3 + 5 + 4096 + 1)
    if data[:3] == b"\xef\xbb\xbf":
        data = data[3:]
    first, *lines = _split(data) or [b""]
    if not _is_fence(first):
        raise ValueError("技能缺少frontmatter。")
    taken, total = [], 0
    for line in lines:
        total += len(line)
        if len(line) > 512 or total > 4096:
            raise ValueError("技能头部无效或过长。")
        if _is_fence(line) and len(taken) < 32:
            return _fields(taken)
        taken.append(line)
    raise ValueError("技能头部未结束。")


def read_start(path, size):
    handle = os.open(path, os.O_NONBLOCK)
    try:
        if stat.S_IFMT(os.fstat(handle).st_mode) != stat.S_IFREG:
            raise ValueError("技能文件必须是普通文件。")
        return os.pread(handle, size, 0)
    finally:
        os.close(handle)


def _no_match(limit):
    return ValueError(f"名称需与目录一致且唯一；最多{limit}项。")


def _holds_skill(entry):
    mode = entry.stat(follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode) and not entry.is_file():
        raise ValueError("技能路径越过宿主目录。")
    if not stat.S_ISDIR(mode):
        return False
    with os.scandir(entry.path) as inside:
        return any(one.name == "SKILL.md" for one in inside)


def _entry(root, name, limit):
    path = root / name / "SKILL.md"
    if not _leads_into(root / name, path):
        raise ValueError("技能路径越过宿主目录。")
    header = read_header(path)
    if header["name"] != name:
        raise _no_match(limit)
    return {"root": os.fspath(root), "path": os.path.realpath(path),
            "description": header["description"]}


def _leads_into(folder, path):
    """Whether one of the folders above the real file is this folder."""
    home = folder.stat()
    return any(os.path.samestat(place.stat(), home) for place in path.resolve(True).parents)


def _split(data):
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _is_fence(line):
    return line in (b"---", b"---\n", b"---\r\n")


def _fields(lines):
    fields = {}
    for line in lines:
        try:
            text = line.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeError:
            raise ValueError("技能头部无效或过长。") from None
        key, value = ([*text.strip(" \t").split(":", 1), ""])[:2]
        value = value.strip(" \t")
        if key not in {"name", "description"} - set(fields) or not value or value[0] in "\"'|>":
            raise ValueError("只支持name/description两个单行字段。")
        fields[key] = value
    name, text = fields.get("name", "-"), fields.get("description", "")
    categories = set(map(unicodedata.category, text))
    if (not set(name) <= ALPHABET or not name[0].isalpha() or "--" in name or name[-1] == "-"
            or len(name) > 64 or not 1 <= len(text) <= 160 or categories & FORBIDDEN):
        raise ValueError("技能名称或描述无效。")
    return fields
