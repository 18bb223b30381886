"""Lab s07.3: which text a name gives, and which it never gives."""

import pytest
from harness import skills

HEADER = "---\nname: output-check\ndescription: 核对输出时使用。\n---\n"
TEXT = HEADER + "先读预期，再获准运行；报告退出码与完整输出。\n"


def _registry(tmp_path, text=TEXT):
    root = tmp_path.resolve() / "skills"
    path = root / "output-check" / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    entry = {"description": "核对输出时使用。", "path": str(path), "root": str(root)}
    return path, {"output-check": entry}


def _refusal(name, registry):
    with pytest.raises(ValueError) as caught:
        skills.load_skill(name, registry)
    return str(caught.value)


def test_found_skill_comes_back_whole(tmp_path):
    """The text is the whole file as it stands now, header included (scenarios: found, mismatch)."""
    path, registry = _registry(tmp_path)
    assert skills.load_skill("output-check", registry) == TEXT

    changed = TEXT.replace("name: output-check", "name: other") + "新的一行。\n"
    path.write_bytes(changed.encode())

    assert skills.load_skill("output-check", registry) == changed


def test_unknown_name_opens_nothing(tmp_path):
    """A name not registered is refused though its file is there (scenarios: unknown, empty)."""
    path, registry = _registry(tmp_path)
    for folder in (path.parents[1] / "hidden", path.parents[2] / "other"):
        folder.mkdir()
        (folder / "SKILL.md").write_text("SECRET", encoding="utf-8")

    for name in ("../other", "hidden", "missing", "", str(path), "output-check/", ["output-check"]):
        assert _refusal(name, registry) == "未知技能名称。"
    assert _refusal("output-check", {}) == "未知技能名称。"


def test_limit_is_8192_bytes_and_never_a_part(tmp_path):
    """8,192 bytes come back whole, 8,193 are refused; a Chinese character is three (oversize)."""
    path, registry = _registry(tmp_path)
    fits = HEADER.encode() + "核".encode() * 2700
    fits += b"x" * (8192 - len(fits))

    path.write_bytes(fits)
    assert skills.load_skill("output-check", registry).encode() == fits
    path.write_bytes(fits + b"x")
    assert _refusal("output-check", registry) == "技能超过8192字节；请拆分，不截断说明。"
    path.write_bytes(HEADER.encode() + b"x" * 8193)
    assert _refusal("output-check", registry) == "技能超过8192字节；请拆分，不截断说明。"


def test_path_is_checked_again_before_reading(tmp_path):
    """A registered file that became a link out of its folder is refused, its target unread."""
    path, registry = _registry(tmp_path)
    neighbour = path.parents[1] / "sql-style" / "SKILL.md"
    outside = path.parents[2] / "outside.md"
    for target in (neighbour, outside):
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(TEXT.encode())

        path.unlink()
        path.symlink_to(target)
        assert _refusal("output-check", registry) == "技能路径越过宿主目录。"


def test_what_is_no_text_is_refused(tmp_path):
    """Invalid UTF-8 is a plain ValueError (scenario: encoding), and so is a file of white space."""
    path, registry = _registry(tmp_path)

    for raw in (b"\xff", HEADER.encode() + b"\xe6\xa0"):
        path.write_bytes(raw)
        assert _refusal("output-check", registry) == "技能必须是UTF-8。"
    for raw in (b"", b" \n\t\n"):
        path.write_bytes(raw)
        assert _refusal("output-check", registry) == "技能文件为空。"
