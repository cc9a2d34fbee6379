"""The base class of the rules about coherent updates. The rules share one replayed state, and judge it after each
record."""

from __future__ import annotations

from conformance.history.gangs import Gangs
from conformance.history.record import Record
from conformance.invariants.coherent.state import CoherentState
from conformance.invariants.invariant import Invariant


class CoherentRule(Invariant):
    """A rule about sets with the strategy Coherent. `idle_reason` is the reason of the result if there was nothing to
    judge."""

    idle_reason: str

    def __init__(self, state: CoherentState) -> None:
        super().__init__()
        self.state = state
        self.judged = 0

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Apply a record to the shared state, and judge the new state."""
        self.state.apply(record)
        if self.state.sets:
            self.judge_state(record)

    def judge_state(self, record: Record) -> None:
        """Judge the state after a record."""
        raise NotImplementedError

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self.judged else self.idle_reason if self.state.sets else "no set has the strategy Coherent"
