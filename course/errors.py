"""What the person at the keyboard can put right, and with which exit code it ends."""

from __future__ import annotations

RED = 1
USAGE = 2
BROKEN = 3
INFRASTRUCTURE = 4
INTERRUPTED = 130


class CourseError(Exception):
    """Something the person at the keyboard can put right.

    `message` says what was found and where, `next_command` what to type now,
    `kind` is a stable word for scripts, `exit_code` what the process ends with.
    """

    kind = "broken"
    exit_code = BROKEN

    def __init__(self, message: str, next_command: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_command = next_command

    def to_json(self) -> dict[str, object]:
        """The document printed on stdout when `--json` was asked for."""
        return {
            "error": {"kind": self.kind, "message": self.message, "next": self.next_command}
        }


class UsageProblem(CourseError):
    """An argument that cannot be meant: an unknown lab, a target that is taken."""

    kind = "usage"
    exit_code = USAGE


class CourseBroken(CourseError):
    """A course root whose manifest, layers or lock cannot be used."""

    kind = "course"


class PracticeBroken(CourseError):
    """A practice folder that is missing, or whose own files were changed."""

    kind = "practice"


class Unavailable(CourseError):
    """Something outside the course and the submission is missing."""

    kind = "infrastructure"
    exit_code = INFRASTRUCTURE
