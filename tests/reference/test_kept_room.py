"""Tests that the gang scheduler reserves capacity for a gang whose search gives up, but not forever (GS-25)."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

from reference_impl.scheduler.cycle import Plan
from reference_impl.scheduler.scheduler import RESERVATION_SECONDS, GangScheduler
from reference_impl.scheduler.shortfall import Shortfall
from tests.kube.leaping import leap

GANG = "space/gang"
WAITING = Plan(waiting={GANG: Shortfall("effort")}, reserved_for=[GANG])


def test_room_is_reserved_for_a_limited_time_before_another_cycle() -> None:
    async def overdue() -> set[str]:
        gangs = GangScheduler(Mock(), name="gangs")
        gangs._record_reservations(WAITING)
        await asyncio.sleep(RESERVATION_SECONDS - 1)
        gangs._record_reservations(WAITING)
        assert gangs._overdue_gangs() == set() and not gangs._changed.is_set()
        await asyncio.sleep(1)
        assert gangs._changed.is_set()
        return gangs._overdue_gangs()

    assert leap(overdue()) == {GANG}


def test_a_gang_that_no_longer_waits_is_forgotten() -> None:
    async def gangs_with_room() -> dict[str, float]:
        gangs = GangScheduler(Mock(), name="gangs")
        gangs._record_reservations(WAITING)
        gangs._record_reservations(Plan())
        return gangs._reserved_since

    assert leap(gangs_with_room()) == {}
