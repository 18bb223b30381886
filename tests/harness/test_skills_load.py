"""load_skill and build_system: exact limits in bytes, the second look at the path, the prompt."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import skills
from harness.assembly import build_tools
from harness.plan import PlanState
from harness.skills import Registry
from harness.tools import dispatch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

WriteSkill = Callable[..., Path]

OUTSIDE = "技能路径越过宿主目录。"
TOO_LONG = "技能超过8192字节；请拆分，不截断说明。"


@pytest.fixture
def path(write_skill: WriteSkill) -> Path:
    return write_skill()


@pytest.fixture
def registry(path: Path) -> Registry:
    return skills.scan_skills(path.parents[1])


def _error(action: Callable[[], object]) -> str:
    with pytest.raises(ValueError) as caught:
        action()
    assert type(caught.value) is ValueError
    return str(caught.value)


@pytest.mark.parametrize("unit", ["x", "核", "😀"])
def test_limit_counts_bytes(path: Path, registry: Registry, unit: str) -> None:
    """8,192 bytes come back whole and 8,193 are refused, however few characters they are."""
    raw = unit.encode() * (8192 // len(unit.encode()))
    raw += b"x" * (8192 - len(raw))
    path.write_bytes(raw)
    assert skills.load_skill("output-check", registry).encode() == raw
    path.write_bytes(raw + b"x")
    assert _error(lambda: skills.load_skill("output-check", registry)) == TOO_LONG


def test_long_file_is_refused_before_it_is_decoded(path: Path, registry: Registry) -> None:
    """Invalid UTF-8 behind the limit, or across it, does not change the answer."""
    for raw in (b"x" * 8192 + b"\xff", b"\xff" * 9000, b"x" * 8191 + "核".encode()):
        path.write_bytes(raw)
        assert _error(lambda: skills.load_skill("output-check", registry)) == TOO_LONG


def test_no_more_than_8193_bytes_are_read(
    path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A huge file costs 8,193 bytes."""
    path.write_bytes(b"x" * 1_000_000)
    sizes: list[int] = []
    plain = os.read

    def read(descriptor: int, size: int) -> bytes:
        data = plain(descriptor, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "read", read)
    assert _error(lambda: skills.load_skill("output-check", registry)) == TOO_LONG
    assert sum(sizes) == 8193


def test_short_reads_are_put_together(
    path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system that hands out 100 bytes at a time gives the same text."""
    text = path.read_text() + "y" * 1000
    path.write_text(text)
    plain = os.read
    monkeypatch.setattr(os, "read", lambda descriptor, size: plain(descriptor, min(size, 100)))
    assert skills.load_skill("output-check", registry) == text


def test_one_byte_order_mark_is_not_text(path: Path, registry: Registry) -> None:
    """A BOM in front is taken off once, and a file of nothing else is empty."""
    raw = path.read_bytes()
    path.write_bytes(b"\xef\xbb\xbf" + raw)
    assert skills.load_skill("output-check", registry) == raw.decode()
    path.write_bytes(b"\xef\xbb\xbf \n")
    assert _error(lambda: skills.load_skill("output-check", registry)) == "技能文件为空。"


@pytest.mark.parametrize(
    "name", ["", "..", "../other", "output-check/", "output-check/SKILL.md", "OUTPUT-CHECK",
             "output-check\0", " output-check", "/etc/passwd", 1, None, True, b"output-check",
             ["output-check"], {"a": 1}],
)
def test_only_a_registered_str_is_a_name(
    registry: Registry, name: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything else is unknown, and no file is opened for it."""
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("a file was opened"))
    assert _error(lambda: skills.load_skill(name, registry)) == "未知技能名称。"  # type: ignore[arg-type]


def test_str_subclass_is_no_name(registry: Registry) -> None:
    """A str that can lie about being equal is not looked up."""
    class Liar(str):
        __slots__ = ()

    assert _error(lambda: skills.load_skill(Liar("output-check"), registry)) == "未知技能名称。"


@pytest.mark.parametrize(
    "target", ["../../outside.md", "../sql-style/SKILL.md", "../output-check2/a"]
)
def test_link_out_of_the_own_folder_is_refused(
    path: Path, registry: Registry, write_skill: WriteSkill, tmp_path: Path, target: str
) -> None:
    """Outside, in a sibling, and in a folder whose name only begins alike: refused, unread."""
    write_skill("sql-style")
    (tmp_path / "outside.md").write_text("SECRET")
    (tmp_path / "skills" / "output-check2").mkdir()
    (tmp_path / "skills" / "output-check2" / "a").write_text("SECRET")
    path.unlink()
    path.symlink_to(target)
    assert _error(lambda: skills.load_skill("output-check", registry)) == OUTSIDE


def test_folder_turned_into_a_link_is_refused(
    path: Path, registry: Registry, tmp_path: Path
) -> None:
    """The folder itself may have been replaced since the scan."""
    path.parent.rename(tmp_path / "moved")
    path.parent.symlink_to(tmp_path / "moved", target_is_directory=True)
    assert _error(lambda: skills.load_skill("output-check", registry)) == OUTSIDE


def test_file_that_has_gone_is_an_answer_without_a_path(
    path: Path, registry: Registry, tmp_path: Path
) -> None:
    """The model is told that the file is missing, and not where it was."""
    tools = build_tools(tmp_path, PlanState(), lambda task: task, registry)
    path.unlink()
    call = {"type": "tool_use", "id": "1", "name": "load_skill", "input": {"name": "output-check"}}
    result = dispatch(call, tools)
    assert (result["is_error"], result["tool_use_id"]) == (True, "1")
    assert str(tmp_path) not in result["content"]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=120))
def test_text_is_the_files_bytes_or_a_plain_error(
    path: Path, registry: Registry, raw: bytes
) -> None:
    """What comes back encodes to the file's bytes; nothing but a plain ValueError is raised."""
    path.write_bytes(raw)
    try:
        text = skills.load_skill("output-check", registry)
    except ValueError as error:
        assert str(error) in {"技能必须是UTF-8。", "技能文件为空。"}
    else:
        assert text.encode() == raw.removeprefix(b"\xef\xbb\xbf")


@settings(deadline=None)
@given(
    descriptions=st.dictionaries(
        st.from_regex(skills.NAME, fullmatch=True), st.text(max_size=20), max_size=6),
    base=st.text(max_size=40),
)
def test_prompt_depends_on_content_only(descriptions: dict[str, str], base: str) -> None:
    """The order of registration does not show, the base is in front, paths are nowhere."""
    names = list(descriptions)
    one, other = (
        {name: skills.SkillEntry(description=descriptions[name], path="/P-A-T-H", root="/R-O-O-T")
         for name in order}
        for order in (names, names[::-1])
    )
    system = skills.build_system(one, base)
    assert system == skills.build_system(other, base)
    assert system.startswith(base + "\n\n可用技能（仅目录）：\n")
    assert "/P-A-T-H" not in system
    if not names:
        assert "（无可用技能）" in system
