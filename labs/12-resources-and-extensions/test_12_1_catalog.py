"""Lab 12.1: who wins, in what order it is listed, and what a catalogue never holds."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path

import pytest
from pi_course import resources
from pi_course.errors import CourseError

MARKER = "only-an-active-skill-may-say-this"


def _skill(name: str, description: str, body: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"


def _root(folder: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8"))
    return folder


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_frozen(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_frozen, value))
    if is_dataclass(value):
        return all(_is_frozen(getattr(value, field.name)) for field in fields(value))
    return value is None or isinstance(value, (str, int, Path))


def test_the_callers_order_of_roots_decides(tmp_path: Path) -> None:
    """The first root wins an identity, whatever its path; the list has an order of its own."""
    roots = {
        owner: _root(
            tmp_path / folder,
            {
                "prompts/plan.md": f"{owner} plan",
                "prompts/review.md": f"{owner} template",
                "skills/from-folder/SKILL.md": _skill("review", f"{owner} skill"),
                "AGENTS.md": f"{owner} rules",
            },
        )
        for owner, folder in [("project", "z-project"), ("user", "a-user")]
    }
    _root(roots["user"], {"skills/extra/SKILL.md": _skill("annotate", "user only")})

    for first, second in [("project", "user"), ("user", "project")]:
        catalog = resources.discover_resources([roots[first], roots[second]])
        listed = [f"{item.kind}:{item.name}" for item in catalog.resources]
        assert listed == [
            "instructions:AGENTS",
            "skill:annotate",
            "skill:review",
            "template:plan",
            "template:review",
        ]
        rules, _, skill, plan, template = catalog.resources
        assert (rules.body, plan.body, template.body) == (
            f"{first} rules",
            f"{first} plan",
            f"{first} template",
        )
        assert skill.description == f"{first} skill"
        assert skill.source == _real(roots[first] / "skills/from-folder/SKILL.md")
        assert skill.root == _real(roots[first] / "skills/from-folder")
        assert [item.root_order for item in (rules, skill, template)] == [0, 0, 0]
        for kind, view in [
            ("instructions", catalog.instructions),
            ("skill", catalog.skills),
            ("template", catalog.templates),
        ]:
            assert view == tuple(item for item in catalog.resources if item.kind == kind)
        again = [roots[first], roots[second], roots[first], roots[second]]
        assert resources.discover_resources(again) == catalog
        lost = {d.source: d.winner for d in catalog.diagnostics if d.kind == "shadowed"}
        assert lost == {
            _real(roots[second] / name): _real(roots[first] / name)
            for name in (
                "AGENTS.md",
                "prompts/plan.md",
                "prompts/review.md",
                "skills/from-folder/SKILL.md",
            )
        }

    _root(roots["user"], {"skills/again/SKILL.md": _skill("annotate", "the same name")})
    with pytest.raises(CourseError) as refused:
        resources.discover_resources([roots["project"], roots["user"]])
    assert refused.value.code == "DUPLICATE_RESOURCE"


def test_a_catalogue_holds_no_skill_body_and_a_bad_file_costs_only_itself(tmp_path: Path) -> None:
    """No body of a skill is in the catalogue, nothing in it can change, bad files are reported."""
    root = _root(
        tmp_path / "root",
        {
            "AGENTS.md": "Rules.",
            "skills/good/SKILL.md": _skill("good", "Checks: a list", MARKER),
            "skills/windows/SKILL.md": _skill("windows", "CRLF", MARKER).replace("\n", "\r\n"),
            "skills/open/SKILL.md": "---\nname: open\ndescription: no end\nDo it.\n",
            "skills/dashes/SKILL.md": f"-{_skill('dashes', 'not a line of three')}",
            "skills/ends-in-dashes/SKILL.md": "---\nname: ends\ndescription: d\n----\nDo it.\n",
            "skills/twice/SKILL.md": "---\nname: twice\nname: twice\ndescription: d\n---\n",
            "skills/empty/SKILL.md": _skill("empty", ""),
            "shared.md": _skill("borrowed", "of no skill"),
            "prompts/ask.md": "Ask\r\n{{who}}.",
        },
    )
    (root / "skills/borrowed").mkdir()
    (root / "skills/borrowed/SKILL.md").symlink_to(root / "shared.md")
    (root / "prompts/latin.md").write_bytes("Frag für mich.".encode("latin-1"))
    (root / "skills/bytes").mkdir()
    (root / "skills/bytes/SKILL.md").write_bytes(_skill("bytes", "d").encode() + b"\xff")
    outside = _root(tmp_path / "outside", {"SKILL.md": _skill("stray", "not ours")})
    (root / "skills/stray").symlink_to(outside)

    catalog = resources.discover_resources([root])

    assert [(skill.name, skill.description, skill.body) for skill in catalog.skills] == [
        ("bytes", "d", None),
        ("good", "Checks: a list", None),
        ("windows", "CRLF", None),
    ]
    assert [item.body for item in catalog.instructions + catalog.templates] == [
        "Rules.",
        "Ask\n{{who}}.",
    ]
    for form in (
        repr(catalog),
        json.dumps(asdict(catalog), default=str),
        pickle.dumps(catalog).decode("latin-1"),
    ):
        assert MARKER not in form
    assert _is_frozen(catalog)
    reported = sorted((d.kind, d.source.relative_to(_real(root))) for d in catalog.diagnostics)
    assert [(kind, path.parts[:2]) for kind, path in reported] == [
        ("escape", ("skills", "borrowed")),
        ("escape", ("skills", "stray")),
        ("invalid", ("prompts", "latin.md")),
        ("invalid", ("skills", "dashes")),
        ("invalid", ("skills", "empty")),
        ("invalid", ("skills", "ends-in-dashes")),
        ("invalid", ("skills", "open")),
        ("invalid", ("skills", "twice")),
    ]

    header = len("---\nname: good\ndescription: Checks: a list\n---\n")
    template = len("Ask\r\n{{who}}.")
    for less, names in [
        (0, ["AGENTS", "bytes", "good", "windows", "ask"]),
        (1, ["AGENTS", "bytes", "windows"]),
    ]:
        limits = resources.ResourceLimits(header_bytes=header - less, file_bytes=template - less)
        tight = resources.discover_resources([root], limits=limits)
        assert [item.name for item in tight.resources] == names
        assert tight.limits == limits
