"""Judgement whether terminations waited for the terminationDelay, counted from the breach that caused the termination.

The sets are of the workload `kept`. They have a standalone clique `a` and a scaling group `g` of the cliques `b` and
`c`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from conformance.history.record import Record
from conformance.testing import disruption, incarnations


def breaches(history: incarnations.Records, clique: str, never_ran: Collection[str]) -> list[Record]:
    """Return the breaches at the end of a history that may cause the termination of a clique. They are the breaches of
    the clique's scaling group replica, of the scaling group, and of the standalone clique in the same set replica.
    Cliques that have never run are not breached (TERM-010)."""
    replica = "-".join(clique.split("-")[:2])
    parts = [(disruption.CLIQUES, f"{replica}-a"), (disruption.GROUPS, f"{replica}-g")]
    if clique.startswith(f"{replica}-g-"):
        group_replica = clique.rpartition("-")[0]
        parts += [
            (disruption.CLIQUES, member)
            for member in (f"{group_replica}-b", f"{group_replica}-c")
            if member not in never_ran
        ]
    records = [
        incarnations.condition_start(history, resource, name, disruption.BREACHED, "True") for resource, name in parts
    ]
    return [record for record in records if record is not None]


def early_deletions(
    causes: Mapping[str, Sequence[Record]], ends: Mapping[str, Record], seconds: float, begin: float
) -> list[str]:
    """Return the cliques that were deleted before the delay was over, counted from the earliest breach that may have
    been the cause. Whether a breach at that level may cause a termination is judged elsewhere (TERM-008, TERM-011)."""
    violations = []
    for name, end in ends.items():
        longest = max((disruption.termination_delay(cause, end, begin) for cause in causes.get(name, ())), default=0.0)
        if longest < seconds:
            violations.append(f"{name} was deleted {longest:g} s after the breach")
    return violations
