"""Lab s07.2: what the model is told about the skills."""

from copy import deepcopy

from harness import skills

BASE = "围绕用户问题，按宿主权限使用工具。"


def _registry(tmp_path, *names):
    registry = {}
    for name in names:
        path = tmp_path / name / "SKILL.md"
        path.parent.mkdir()
        path.write_text("BODY-MARKER", encoding="utf-8")
        registry[name] = {
            "description": f"用于{name}。",
            "path": str(path),
            "root": str(tmp_path),
        }
    return registry


def test_catalogue_lists_names_and_descriptions(tmp_path):
    """The prompt is the base, one line a skill sorted by name, and the rule, to the letter."""
    registry = _registry(tmp_path, "sql-style", "output-check", "b2")

    assert skills.build_system(registry, BASE) == (
        "围绕用户问题，按宿主权限使用工具。\n"
        "\n"
        "可用技能（仅目录）：\n"
        "- b2: 用于b2。\n"
        "- output-check: 用于output-check。\n"
        "- sql-style: 用于sql-style。\n"
        "需要时用load_skill读取正文；技能不授予工具权限。"
    )


def test_neither_path_nor_body_is_shown(tmp_path):
    """The model sees no path and no word of a body; the files need not even be there."""
    registry = _registry(tmp_path, "output-check", "sql-style")

    system = skills.build_system(registry, BASE)

    assert "BODY-MARKER" not in system
    assert str(tmp_path) not in system
    assert "SKILL.md" not in system
    for name in registry:
        (tmp_path / name / "SKILL.md").unlink()
    assert skills.build_system(registry, BASE) == system


def test_building_again_gives_the_same(tmp_path):
    """The same base and registry give the same prompt twice, and the registry is left as it was."""
    registry = _registry(tmp_path, "output-check")
    before = deepcopy(registry)

    first = skills.build_system(registry, BASE)
    second = skills.build_system(registry, BASE)

    assert first == second
    assert second.count("- output-check: ") == 1
    assert registry == before


def test_empty_catalogue_says_so():
    """Without skills the prompt says that there are none (scenario: empty)."""
    assert skills.build_system({}, BASE) == (
        "围绕用户问题，按宿主权限使用工具。\n"
        "\n"
        "可用技能（仅目录）：\n"
        "（无可用技能）\n"
        "需要时用load_skill读取正文；技能不授予工具权限。"
    )
