"""What `course doctor` looks at: the interpreter, the folder one stands in, and the sandbox."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

from course import __version__
from course.errors import CourseError
from course.practice import changed_files, open_practice
from course.provision import Check, probe_sandbox


def examine(folder: Path) -> list[Check]:
    """Everything that can be wrong with a machine or a practice folder, most basic first."""
    version = platform.python_version()
    checks = [Check("python", sys.version_info >= (3, 11), f"{version} at {sys.executable}",
                    "install Python 3.11 or newer"),
              Check("kit", True, __version__)]
    try:
        desk = open_practice(folder)
        changed = changed_files(desk)
        found = f"chapter {desk.chapter.id} in {desk.folder}"
        checks.append(Check("practice", not changed, f"{found}; changed: {', '.join(changed)}"
                            if changed else found, "course restore"))
    except CourseError:
        checks.append(Check("practice", True, "none here"))
    return [*checks, *probe_sandbox()]
