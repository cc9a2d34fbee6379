"""Variants that differ in the times at which the operator works."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from kube.objects import Key
from kube.workqueue import WorkQueue
from mutants.registry import variant
from mutants.replacement import Original, around, replace
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.plan import pods

PERIOD_SECONDS, WORK_SECONDS = 20.0, 5.0
"""Seconds from the start of one working period to the next, and the length of a working period."""
DELAY_SECONDS = 12.0
"""Seconds before a set is reconciled for the first time."""


@variant(
    "operator",
    "works for five seconds of every twenty, and sends no requests in between",
    "CORE-010",
    "CORE-018",
    "CORE-020",
    "INV-007",
    time_scale=1.0,
    conflict="all others would work as seldom",
)
@around(WorkQueue, "take")
async def _works_intermittently(take: Original, self: WorkQueue[Any]) -> Any:
    key = await take(self)
    if (elapsed := time.monotonic() % PERIOD_SECONDS) > WORK_SECONDS:
        await asyncio.sleep(PERIOD_SECONDS - elapsed)
    return key


@variant(
    "operator",
    "looks at a new set for the first time after twelve seconds, and reports each refused attempt",
    "CORE-031",
    "INV-007",
    time_scale=1.0,
    conflict="all others would begin as late",
)
def _begins_late() -> None:
    original = SetReconciler.reconcile
    first_seen: dict[Key, float] = {}

    async def reconcile(self: SetReconciler, key: Key) -> float | None:
        wait = DELAY_SECONDS - (time.monotonic() - first_seen.setdefault(key, time.monotonic()))
        return wait if wait > 0 else await original(self, key)

    replace(SetReconciler, "reconcile", reconcile)
    replace(pods, "without_attempt_details", lambda message, clique: message)
