"""How often a set with many replicas is reconciled: passes over it do not take all of the operator's time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from reference_impl.control.operator import SET_SETTLE_SECONDS, Operator


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
