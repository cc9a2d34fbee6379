"""An event loop whose clock advances only when nothing else can happen, and then without waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LeapingLoop(asyncio.SelectorEventLoop):
    """An event loop for code without I/O, whose clock jumps to the next timer whenever no callback is ready."""

    def __init__(self) -> None:
        self._seconds = 0.0
        super().__init__()

    def time(self) -> float:
        return self._seconds

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._seconds = max(self._seconds, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def leap(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to completion in such a loop."""
    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        return runner.run(work)
