"""The generated pages of a practice folder, from jinja2 templates."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from course import __version__
from course.manifest import Course
from course.outline import Chapter

TEMPLATES = Path(__file__).resolve().parent / "templates"


def practice_pages(course: Course, chapter: Chapter, lang: str) -> dict[str, str]:
    """Path → text of README.md, AGENTS.md, pyproject.toml and .gitignore."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, autoescape=False,
    )
    language = "zh" if lang == "zh" else "en"
    values = {
        "course": course, "chapter": chapter, "lang": language, "version": __version__,
        "first": chapter.labs[0],
        "needed": {lab.id: ", ".join(lab.needs) for lab in chapter.labs},
    }
    names = {"README.md": f"README.{language}.md.j2", "AGENTS.md": f"AGENTS.{language}.md.j2",
             "pyproject.toml": "pyproject.toml.j2", ".gitignore": "gitignore.j2"}
    return {path: environment.get_template(name).render(values) for path, name in names.items()}
