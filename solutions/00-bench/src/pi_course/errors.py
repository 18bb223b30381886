"""The one kind of error that this package raises on purpose."""

from __future__ import annotations


class CourseError(Exception):
    """An error with a code for programs and a message for people.

    The code is UPPER_SNAKE and part of the contract: callers branch on it.
    The message may change at any time. ``str(error)`` is ``"CODE: message"``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"
