"""GANG-023: gangs reference only pods that have been created (OBJ-412)."""

from __future__ import annotations

from conformance.grove.fields import items, text
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant


class ReferencesToPods(Invariant):
    """GANG-023. References to deleted pods are permitted; references to pods that never existed are not."""

    id = "GANG-023"
    statement = "a PodGang refers to no pod that has not been created"

    def __init__(self) -> None:
        super().__init__()
        self._pods: set[str] = set()
        self._judged = 0

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Track pods, and judge references."""
        if record.resource == "pods":
            self._pods.add(record.name)
        if record.resource != "podgangs" or record.kind == DELETED:
            return
        referenced = {
            text(reference, "name")
            for group in items(record.object, "spec", "podgroups")
            for reference in items(group, "podReferences")
            if text(reference, "namespace") == record.namespace
        }
        self._judged += len(referenced)
        if unknown_pods := sorted(referenced - self._pods):
            self._report_violation(
                f"gang {record.name} refers to pods that have not been created: {', '.join(unknown_pods)}", record
            )

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no gang refers to a pod"
