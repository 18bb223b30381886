"""A wish to stop that many can wait for and that is never taken back."""

from __future__ import annotations

import asyncio


class AbortSignal:
    """Set once, by whoever wants the work to stop; seen by everybody who does the work.

    It stops nothing by itself: the work looks at ``aborted`` or awaits ``wait()``.
    """

    def __init__(self) -> None:
        self._set = asyncio.Event()
        self._reason = ""

    @property
    def aborted(self) -> bool:
        """Whether abort has been called."""
        return self._set.is_set()

    @property
    def reason(self) -> str:
        """What the first abort said; "" before it."""
        return self._reason

    def abort(self, reason: str = "") -> None:
        """Set the signal and wake all who wait; the first call counts, later ones do nothing."""
        if not self.aborted:
            self._reason = reason
            self._set.set()

    async def wait(self) -> None:
        """Return once the signal is set; at once when it is set already."""
        await self._set.wait()
