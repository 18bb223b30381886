"""Time and names that a test can foresee."""

from __future__ import annotations

import time
from collections import Counter
from typing import Protocol

from pi_course.errors import CourseError


class Clock(Protocol):
    """Anything that tells the time."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""
        ...


class SystemClock:
    """The real time, for programs; never for tests."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""
        return time.time_ns() // 1_000_000


class FakeClock:
    """A clock that stands still until it is told to advance."""

    def __init__(self, start_ms: int = 0) -> None:
        self._now_ms = start_ms

    def now_ms(self) -> int:
        """Return the milliseconds this clock stands at; reading does not move it."""
        return self._now_ms

    def advance(self, ms: int) -> None:
        """Move the clock ms milliseconds on. Code: INVALID_TIME when ms is negative."""
        if ms < 0:
            raise CourseError("INVALID_TIME", f"the clock cannot go back {-ms} ms")
        self._now_ms += ms


class Ids:
    """Names that count from one: each prefix for itself, each Ids for itself."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def next(self, prefix: str) -> str:
        """Return "call-1", then "call-2", … for the prefix "call"."""
        self._counts[prefix] += 1
        return f"{prefix}-{self._counts[prefix]}"
