"""The base class of all invariants."""

from __future__ import annotations

from typing import ClassVar

from conformance.history.gangs import Gangs
from conformance.history.record import Record
from conformance.invariants.result import RuleResult

Violation = tuple[str, tuple[Record, ...]]
"""The reason, and the records that prove the violation."""


class Invariant:
    """A rule about one namespace. Its result is false once the rule is violated, and unknown while there was nothing to
    judge."""

    id: str
    statement: str
    of_scheduler: ClassVar[bool] = False
    """Whether only a gang scheduler can break the rule."""
    timed: ClassVar[bool] = False
    """Whether the rule tolerates a state for some seconds; a slow machine can also break such a rule."""

    def __init__(self) -> None:
        self._violation: Violation | None = None
        self._suspicions: dict[str, list[Violation]] = {}
        """Gang → suspected violations that depend on the gang's state, kept until its next record."""
        self.is_muted = False
        """Whether records are currently tracked but not judged, because an operator other than the judged one is
        running."""

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge a record; `gangs` is the state of the gangs before the record."""
        raise NotImplementedError

    def result(self, gangs: Gangs, now: float) -> RuleResult:
        """Return the result for a history that ends at `now` (seconds since the recorder started); `gangs` is the state
        at its end."""
        suspicion = next((candidate for suspicions in self._suspicions.values() for candidate in suspicions), None)
        violation = self._violation or suspicion or self._violation_at_end(gangs, now)
        if violation is not None:
            return RuleResult(self.id, self.statement, False, *violation)
        reason = self._unknown_reason(gangs, now)
        return RuleResult(self.id, self.statement, None if reason else True, reason)

    def _report_violation(self, reason: str, *records: Record) -> None:
        """Report a violation. Only the first violation is kept."""
        if self._violation is None and not self.is_muted:
            self._violation = (reason, records)

    def _suspect(self, gang: str, reason: str, *records: Record) -> None:
        """Report a violation that depends on the current state of a PodGang. The suspicion is dropped if the gang's
        next record comes from a list: its watch was broken, so the gang's state may have been different."""
        if not self.is_muted:
            self._suspicions.setdefault(gang, []).append((reason, records))

    def _confirm(self, record: Record) -> None:
        """Turn the suspicions that this record proves into violations. Records of all resources may be passed."""
        suspicions = self._suspicions.pop(record.name, []) if record.resource == "podgangs" else []
        if suspicions and not record.listed and self._violation is None:
            self._violation = suspicions[0]

    def _violation_at_end(self, gangs: Gangs, now: float) -> Violation | None:
        """Return a violation that becomes visible only at the end of the history; None if there is none."""
        return None

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        """Return the reason why there was nothing to judge; empty if something was judged."""
        raise NotImplementedError
