"""Variants of when the operator works."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from kube.workqueue import WorkQueue
from mutants.registry import variant
from mutants.replacement import replace

EVERY, FOR = 20.0, 5.0
"""Seconds between two working periods, and how long one lasts."""


@variant(
    "works-intermittently",
    "operator",
    "works for five seconds of every twenty, and sends no requests in between",
    "CORE-010",
    "CORE-018",
    "CORE-020",
    time_scale=1.0,
)
def _works_intermittently() -> None:
    take = WorkQueue.take

    async def in_turn(self: WorkQueue[Any]) -> Any:
        key = await take(self)
        if (late := time.monotonic() % EVERY) > FOR:
            await asyncio.sleep(EVERY - late)
        return key

    replace(WorkQueue, "take", in_turn)
