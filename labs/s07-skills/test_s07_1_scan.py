"""Lab s07.1: what the catalogue of a skills folder is, and when there is none."""

import os

import pytest
from harness import skills

HEADER = "---\nname: {name}\ndescription: {description}\n---\n"


def _skill(root, name, *, folder=None, description="核对输出时使用。", body=b"BODY-MARKER"):
    path = root / (folder or name) / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(HEADER.format(name=name, description=description).encode() + body)
    return path


def _refusal(root, **options):
    with pytest.raises(ValueError) as caught:
        skills.scan_skills(root, **options)
    return str(caught.value)


def test_registry_holds_description_path_and_root(tmp_path):
    """Each entry has exactly description, real path and real root; the order is by name."""
    for name in ("sql-style", "output-check", "a1"):
        _skill(tmp_path, name, description=f"用于{name}：一种: 文本。")
    (tmp_path / "notes.txt").write_text("a file in the root is passed over")
    (tmp_path / "drafts").mkdir()

    registry = skills.scan_skills(tmp_path)

    root = tmp_path.resolve()
    assert list(registry) == ["a1", "output-check", "sql-style"]
    assert registry == {
        name: {
            "description": f"用于{name}：一种: 文本。",
            "path": str(root / name / "SKILL.md"),
            "root": str(root),
        }
        for name in registry
    }


def test_bodies_are_not_decoded(tmp_path):
    """Twenty skills whose bodies are 8 KB of invalid UTF-8 are all in the catalogue."""
    for number in range(20):
        _skill(tmp_path, f"skill-n{number}", body=b"\xff" * 8192)

    registry = skills.scan_skills(tmp_path)

    assert len(registry) == 20
    assert all(set(entry) == {"description", "path", "root"} for entry in registry.values())


def test_twenty_first_skill_is_refused(tmp_path):
    """Twenty skills are a catalogue, twenty-one are an error, and `limit` moves the border."""
    for number in range(20):
        _skill(tmp_path, f"skill-n{number}")
    assert len(skills.scan_skills(tmp_path)) == 20

    _skill(tmp_path, "one-more")

    assert _refusal(tmp_path) == "名称需与目录一致且唯一；最多20项。"
    assert len(skills.scan_skills(tmp_path, limit=21)) == 21


def test_name_must_be_the_folders(tmp_path):
    """A header that names another skill than its folder is an error (scenario: mismatch)."""
    _skill(tmp_path, "other", folder="output-check")

    assert _refusal(tmp_path) == "名称需与目录一致且唯一；最多20项。"


def test_one_bad_header_refuses_the_whole_catalogue(tmp_path):
    """Good skills around a broken one do not save the scan (scenarios: header, encoding)."""
    _skill(tmp_path, "a-good-one")
    broken = _skill(tmp_path, "output-check")
    _skill(tmp_path, "z-good-one")

    broken.write_bytes("没有头部".encode())
    assert _refusal(tmp_path) == "技能缺少frontmatter。"
    broken.write_bytes(b"\xff")
    assert _refusal(tmp_path) == "技能缺少frontmatter。"


def test_linked_folder_is_refused(tmp_path):
    """A link to a skill's folder is an error, wherever it leads."""
    outside = tmp_path / "outside"
    root = tmp_path / "skills"
    _skill(outside, "output-check")
    _skill(root, "sql-style")
    (root / "output-check").symlink_to(outside / "output-check", target_is_directory=True)

    assert _refusal(root) == "技能路径越过宿主目录。"


def test_linked_file_must_stay_in_its_folder(tmp_path):
    """A SKILL.md that leads outside, or into another skill's folder, is an error."""
    root = tmp_path / "skills"
    path = _skill(root, "output-check")
    other = _skill(root, "sql-style")
    text = path.read_bytes()
    for target in (path.with_name("real.md"), tmp_path / "outside.md", other.with_name("copy.md")):
        target.write_bytes(text)

    path.unlink()
    path.symlink_to("real.md")
    assert list(skills.scan_skills(root)) == ["output-check", "sql-style"]
    for target in (tmp_path / "outside.md", other.with_name("copy.md")):
        path.unlink()
        path.symlink_to(target)
        assert _refusal(root) == "技能路径越过宿主目录。"


def test_what_cannot_be_read_is_an_error(tmp_path):
    """A SKILL.md that dangles, is a folder or is a FIFO is neither passed over nor waited for."""
    _skill(tmp_path, "a-good-one")
    path = tmp_path / "output-check" / "SKILL.md"
    path.parent.mkdir()

    path.symlink_to("nowhere.md")
    with pytest.raises((ValueError, OSError)):
        skills.scan_skills(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises((ValueError, OSError)):
        skills.scan_skills(tmp_path)
    path.rmdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(path)
        with pytest.raises((ValueError, OSError)):
            skills.scan_skills(tmp_path)
