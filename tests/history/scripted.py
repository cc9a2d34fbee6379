"""A log with its own clock: records arrive when a wait reaches their time, and no real time passes."""

from __future__ import annotations

from collections.abc import Callable

from conformance.history.log import Log
from conformance.history.record import Record

BEGIN = 1_767_225_600.0
"""2026-01-01T00:00:00Z"""


class Scripted(Log):
    def __init__(self) -> None:
        super().__init__()
        self.clock, self._started_wall = 0.0, BEGIN
        self._coming: list[tuple[float, Callable[[], object]]] = []

    def now(self) -> float:
        return self.clock

    def later(self, moment: float, append: Callable[[], object]) -> None:
        """Schedule `append` to write its records at this moment. Calls have to be in ascending order of time."""
        self._coming.append((moment, append))

    def records_after(self, namespace: str, seq: int, timeout: float = 0.0) -> list[Record]:
        until = self.clock + timeout
        while not (records := super().records_after(namespace, seq)) and self._coming and self._coming[0][0] <= until:
            self.clock, append = self._coming.pop(0)
            append()
        if not records:
            self.clock = until
        return records
