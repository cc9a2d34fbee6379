"""The base class of rules about a pod and the pods that are already bound, judged at each binding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformance.grove import pods
from conformance.grove.fields import Document, text
from conformance.history.gangs import Gangs
from conformance.history.record import ADDED, DELETED, Record
from conformance.invariants.creations import STALE
from conformance.invariants.invariant import Invariant


class BindingRule(Invariant):
    """A rule about a newly bound pod and each pod that is already bound. A pod that was created with a nodeName is not
    a violation itself. Bindings that another scheduler made in the last `STALE` seconds are ignored, because a
    scheduler may not know them yet."""

    of_scheduler = True
    timed = True

    def __init__(self) -> None:
        super().__init__()
        self._bound_pods: dict[str, Record] = {}
        self._bound_at: dict[str, float] = {}
        """Pod → the time at which it was bound."""
        self._demanding_pods: dict[str, Record] = {}
        """The bound pods that the rule concerns; in most histories there are none."""
        self._nodes: dict[str, Document] = {}
        self._judged = False

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Track nodes and bound pods, and judge bindings."""
        if record.resource == "nodes":
            self._nodes[record.name] = record.object
        if record.resource != "pods":
            return
        previous = self._bound_pods.pop(record.uid, None)
        self._demanding_pods.pop(record.uid, None)
        if record.kind == DELETED or not pods.is_bound(record.object) or pods.has_ended(record.object):
            return
        is_demanding = self.concerns(record.object)
        if previous is None and record.kind != ADDED and not record.listed:
            self._judge(record, self._bound_pods.values() if is_demanding else self._demanding_pods.values())
        self._bound_pods[record.uid] = record
        self._bound_at.setdefault(record.uid, record.at)
        if is_demanding:
            self._demanding_pods[record.uid] = record

    def _judge(self, record: Record, candidates: Iterable[Record]) -> None:
        for other in candidates:
            same_scheduler = text(other.object, "spec", "schedulerName") == text(record.object, "spec", "schedulerName")
            if not same_scheduler and record.at - self._bound_at[other.uid] <= STALE:
                continue
            self._judged = True
            if conflict := self.conflict(record.object, other.object, self._nodes):
                self._report_violation(f"pod {record.name} was bound although {other.name} {conflict}", record)

    def concerns(self, pod: Document) -> bool:
        """Return whether the pod makes a demand that the rule is about."""
        raise NotImplementedError

    def conflict(self, pod: Document, other: Document, nodes: Mapping[str, Document]) -> str:
        """Return the reason why the pod must not be bound alongside the other pod; empty if there is none."""
        raise NotImplementedError

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no pod was bound that demands it beside another one"
