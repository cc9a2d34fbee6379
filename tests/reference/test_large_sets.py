"""Sets with many replicas: passes over them do not take all of the operator's time, and tell how far they are."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from reference_impl.control import podcliqueset
from reference_impl.control.operator import SET_SETTLE_SECONDS, Operator
from reference_impl.control.podcliqueset import SetReconciler


class Queue:
    def __init__(self) -> None:
        self.delays: list[float] = []

    def add(self, key: object) -> None:
        self.delays.append(SET_SETTLE_SECONDS)

    def add_after(self, key: object, seconds: float) -> None:
        self.delays.append(seconds)


def pcs(replicas: int, generation: int = 1) -> Any:
    metadata = SimpleNamespace(
        key=("ns", "s"), name="s", namespace="ns", generation=generation, deletion_timestamp=None
    )
    status = SimpleNamespace(last_errors=None)
    return SimpleNamespace(metadata=metadata, spec=SimpleNamespace(replicas=replicas), status=status)


@pytest.mark.parametrize(("replicas", "seconds"), [(1, 0.2), (500, 0.2), (2500, 1.0), (5000, 2.0)])
def test_a_set_settles_longer_the_more_replicas_it_has(replicas: int, seconds: float) -> None:
    operator: Any = Operator.__new__(Operator)
    queue = operator._sets = Queue()
    operator.cache = SimpleNamespace(sets=SimpleNamespace(get=lambda *key: pcs(replicas)))
    operator._wake_set(SimpleNamespace(metadata=SimpleNamespace(namespace="ns", label=lambda name: "s")))
    assert queue.delays == [seconds]


def test_a_new_spec_is_acted_on_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    operator: Any = Operator.__new__(Operator)
    queue = operator._sets = Queue()
    operator.cache = SimpleNamespace(groups=())
    monkeypatch.setattr(Operator, "_trigger_turns", lambda *given: None)
    monkeypatch.setattr("reference_impl.control.operator.only_errors", lambda *given: False)
    operator._on_set("ADDED", None, pcs(2500))
    operator._on_set("MODIFIED", pcs(2500), pcs(2500, generation=2))
    operator._on_set("MODIFIED", pcs(2500), pcs(2500))
    assert queue.delays == [SET_SETTLE_SECONDS, SET_SETTLE_SECONDS, 1.0]


def reconciler_with(told: list[tuple[Any, bool]], held: Any, *, coherent: bool = False) -> Any:
    """A reconciler whose cache has one set and which records the statuses that it writes."""

    async def write_status(pcs: Any, generation: Any, *, observed: bool) -> None:
        told.append((pcs, observed))

    made: Any = SetReconciler.__new__(SetReconciler)
    made._cache = SimpleNamespace(sets=SimpleNamespace(get=lambda *key: held))
    made._maps = SimpleNamespace(used_by=lambda pcs: coherent)
    made._write_status = write_status
    return made


async def pass_of(reconciler: Any, seconds: float) -> None:
    async with reconciler._told(pcs(2500), None):
        await asyncio.sleep(seconds)


def test_a_long_pass_tells_the_status_and_that_it_is_not_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(podcliqueset, "TELL_SECONDS", 0.001)
    told: list[tuple[Any, bool]] = []
    now = pcs(2500)
    asyncio.run(pass_of(reconciler_with(told, now), 0.1))
    assert len(told) > 1 and all(of is now for of, _ in told)
    assert not any(observed for _, observed in told)


@pytest.mark.parametrize(("held", "coherent"), [(pcs(2500, generation=2), False), (None, False), (pcs(2500), True)])
def test_a_pass_tells_nothing_of_what_it_does_not_know(
    held: Any, coherent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(podcliqueset, "TELL_SECONDS", 0.001)
    told: list[tuple[Any, bool]] = []
    asyncio.run(pass_of(reconciler_with(told, held, coherent=coherent), 0.05))
    assert told == []


def test_a_short_pass_writes_the_status_once_at_its_end() -> None:
    told: list[tuple[Any, bool]] = []
    asyncio.run(pass_of(reconciler_with(told, pcs(2500)), 0))
    assert told == []
