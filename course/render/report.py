"""Short texts about what was made."""

from __future__ import annotations

from pathlib import Path

from course.practice import Practice


def practice_made(made: Practice, folder: Path) -> str:
    """What stands in a new practice folder and what to type first."""
    chapter, lang = made.chapter, made.manifest.lang
    lines = [f"practice of chapter {chapter.id} ({chapter.title.in_language(lang)}) in {folder}"]
    red = made.manifest.first_red
    if red:
        lines += ["build: pass",
                  f"first red: Lab {red['lab']} {red['passed']}/{red['total']}  "
                  f"{red['error']['type']}: {red['error']['message']}"]
    lines += [f"you edit: {', '.join(chapter.submit)}",
              f"next:  cd {folder} && course test {chapter.labs[0].id}"]
    return "\n".join(lines)
