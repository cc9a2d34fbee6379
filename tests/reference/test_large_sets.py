"""Tests of sets with many replicas. Reconciling them does not take all of the operator's time, and each reconcile
reports its progress."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from reference_impl.api.models import UpdateStrategy, UpdateStrategyType
from reference_impl.control import podcliqueset
from reference_impl.control.operator import SET_SETTLE_SECONDS, Operator
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.scheduler.scheduler import GangScheduler
from tests.kube.leaping import leap
from tests.reference.test_lost_bindings import Api


class Queue:
    def __init__(self) -> None:
        self.delays: list[float] = []

    def add(self, key: object) -> None:
        self.delays.append(SET_SETTLE_SECONDS)

    def add_after(self, key: object, seconds: float) -> None:
        self.delays.append(seconds)


def pcs(replicas: int, generation: int = 1, *, coherent: bool = False) -> Any:
    strategy = UpdateStrategy(type=UpdateStrategyType.COHERENT) if coherent else None
    metadata = SimpleNamespace(
        key=("ns", "s"), name="s", namespace="ns", generation=generation, deletion_timestamp=None
    )
    status = SimpleNamespace(last_errors=None)
    return SimpleNamespace(
        metadata=metadata, spec=SimpleNamespace(replicas=replicas, update_strategy=strategy), status=status
    )


@pytest.mark.parametrize(("replicas", "seconds"), [(1, 0.2), (500, 0.2), (2500, 1.0), (5000, 2.0)])
def test_the_settle_time_grows_with_the_replicas_of_a_set(replicas: int, seconds: float) -> None:
    operator: Any = Operator.__new__(Operator)
    queue = operator._sets = Queue()
    operator.cache = SimpleNamespace(sets=SimpleNamespace(get=lambda *key: pcs(replicas)))
    operator._wake_set(SimpleNamespace(metadata=SimpleNamespace(namespace="ns", label=lambda name: "s")))
    assert queue.delays == [seconds]


def test_a_new_spec_is_reconciled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    operator: Any = Operator.__new__(Operator)
    queue = operator._sets = Queue()
    operator.cache = SimpleNamespace(groups=())
    monkeypatch.setattr(Operator, "_trigger_turns", lambda *given: None)
    monkeypatch.setattr("reference_impl.control.operator.differs_only_in_errors", lambda *given: False)
    operator._on_set("ADDED", None, pcs(2500))
    operator._on_set("MODIFIED", pcs(2500), pcs(2500, generation=2))
    operator._on_set("MODIFIED", pcs(2500), pcs(2500))
    assert queue.delays == [SET_SETTLE_SECONDS, SET_SETTLE_SECONDS, 1.0]


@pytest.mark.parametrize(("gangs", "seconds"), [(1, 0.02), (200, 0.02), (5000, 0.5)])
def test_the_interval_of_scheduling_cycles_grows_with_the_number_of_gangs(gangs: int, seconds: float) -> None:
    times: list[float] = []

    async def scenario() -> None:
        scheduler: Any = GangScheduler(Api(OSError()), name="gangs")  # type: ignore[arg-type]
        scheduler._gangs = range(gangs)

        async def cycle() -> None:
            times.append(asyncio.get_running_loop().time())
            scheduler._changed.set()

        scheduler._cycle = cycle
        scheduler._changed.set()
        running = asyncio.create_task(scheduler._schedule())
        await asyncio.sleep(3 * seconds + seconds / 2)
        running.cancel()
        await asyncio.wait([running])

    leap(scenario())
    assert [later - earlier for earlier, later in pairwise(times)] == pytest.approx([seconds, seconds])


Statuses = list[tuple[Any, bool]]


def reconciler_with(statuses: Statuses, cache_reads: asyncio.Semaphore, cached: Any) -> Any:
    """Return a reconciler whose cache contains one set. It signals each read of the cache, and records the statuses
    that it writes."""

    def get(*key: str) -> Any:
        cache_reads.release()
        return cached

    async def write_status(pcs: Any, generation: Any, *, observed: bool) -> None:
        statuses.append((pcs, observed))

    reconciler: Any = SetReconciler.__new__(SetReconciler)
    reconciler._cache = SimpleNamespace(sets=SimpleNamespace(get=get))
    reconciler._write_status = write_status
    return reconciler


def statuses_of_reconcile(read_count: int, cached: Any) -> Statuses:
    """Return the statuses that are written in a reconcile that lasts for `read_count` reads of the cache."""
    statuses: Statuses = []

    async def long_pass() -> None:
        cache_reads = asyncio.Semaphore(0)
        async with reconciler_with(statuses, cache_reads, cached)._status_updates(pcs(2500), None):
            for _ in range(read_count):
                await cache_reads.acquire()

    asyncio.run(asyncio.wait_for(long_pass(), 30))
    return statuses


def test_a_long_reconcile_reports_the_status_and_that_it_is_unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podcliqueset, "STATUS_SECONDS", 0.001)
    now = pcs(2500)
    statuses = statuses_of_reconcile(3, now)
    assert len(statuses) >= 2 and all(of is now and not observed for of, observed in statuses)


@pytest.mark.parametrize("cached", [pcs(2500, generation=2), None, pcs(2500, coherent=True)])
def test_a_long_reconcile_reports_nothing_about_unknown_progress(cached: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podcliqueset, "STATUS_SECONDS", 0.001)
    assert statuses_of_reconcile(3, cached) == []


def test_a_short_reconcile_writes_the_status_once_at_its_end() -> None:
    assert statuses_of_reconcile(0, pcs(2500)) == []
