"""SCHED-042: no pod is bound to a cordoned node."""

from __future__ import annotations

from conformance.grove import pods
from conformance.grove.fields import items, text, truth
from conformance.history.gangs import Gangs
from conformance.history.record import ADDED, DELETED, Record
from conformance.invariants.creations import STALE
from conformance.invariants.invariant import Invariant

CORDON_TAINT = "node.kubernetes.io/unschedulable"


class NothingOnCordonedNodes(Invariant):
    """SCHED-042. Judged at each binding. For `STALE` seconds, a scheduler may act on the state before the node was
    cordoned."""

    timed = True
    id = "SCHED-042"
    statement = f"no pod is bound to a node that has been cordoned for {STALE:g} s, unless it tolerates that"
    of_scheduler = True

    def __init__(self) -> None:
        super().__init__()
        self._cordons: dict[str, Record] = {}
        self._bound_pods: set[str] = set()

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Track cordoned nodes, and judge bindings."""
        if record.resource == "nodes":
            if record.kind != DELETED and truth(record.object, "spec", "unschedulable"):
                self._cordons.setdefault(record.name, record)
            else:
                self._cordons.pop(record.name, None)
        node = pods.node(record.object) if record.resource == "pods" else ""
        if not node or record.uid in self._bound_pods:
            return
        self._bound_pods.add(record.uid)
        cordon = self._cordons.get(node)
        if cordon is None or record.kind in (ADDED, DELETED) or record.listed or _tolerates_cordon(record):
            return
        if record.at - cordon.at > STALE:
            reason = f"pod {record.name} was bound to {node}, which had been cordoned for {record.at - cordon.at:.1f} s"
            self._report_violation(reason, cordon, record)

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._bound_pods else "no pod was bound"


def _tolerates_cordon(pod: Record) -> bool:
    return any(text(toleration, "key") in ("", CORDON_TAINT) for toleration in items(pod.object, "spec", "tolerations"))
