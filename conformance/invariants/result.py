"""The three-valued result of a rule."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.history.record import Record


@dataclass(frozen=True)
class RuleResult:
    """The result of one rule. `holds`: True, False, or None if there was nothing to judge. `reason` says why `holds` is
    not True; `records` are the counterexample, in order."""

    id: str
    statement: str
    holds: bool | None
    reason: str = ""
    records: tuple[Record, ...] = ()

    def __str__(self) -> str:
        word = {True: "holds", False: "broken", None: "unknown"}[self.holds]
        lines = [
            f"{self.id + ' ' if self.id else ''}{word}: {self.statement}" + (f" — {self.reason}" if self.reason else "")
        ]
        return "\n".join([*lines, *(f"  {record}" for record in self.records)])
