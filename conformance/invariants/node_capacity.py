"""INV-010: the pods on a node do not exceed its capacity (OR-1)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal

from conformance.grove import pods, quantities
from conformance.grove.fields import Document, items, text
from conformance.grove.quantities import Amounts
from conformance.history.gangs import Gangs
from conformance.history.record import ADDED, DELETED, Record
from conformance.invariants.invariant import Invariant

STALE = 5.0
"""Seconds for which a scheduler may act on an earlier capacity of a node."""


class WithinNodeCapacity(Invariant):
    """INV-010. Judged at each binding. Pods that were created with a nodeName count, but are not violations themselves.
    Pods of other namespaces are not seen, so a node may be fuller than this rule knows. An extended resource that the
    node does not report is not counted if devices of a claim serve it (DRA-09)."""

    timed = True
    id = "INV-010"
    statement = "the pods on a node never ask for more than it has"
    of_scheduler = True

    def __init__(self) -> None:
        super().__init__()
        self._nodes: dict[str, Amounts] = {}
        self._earlier_capacities: dict[str, tuple[float, Amounts]] = {}
        """Node whose capacity has changed → the time of the change, and the capacity before it."""
        self._requests: defaultdict[str, dict[str, Amounts]] = defaultdict(dict)
        self._node_by_pod: dict[str, str] = {}
        self._judged = 0

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge bindings, and track the capacity of nodes."""
        if record.resource == "nodes":
            self._observe_node(record)
        if record.resource == "pods":
            self._observe_pod(record)

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no pod was bound"

    def _observe_node(self, record: Record) -> None:
        previous, current = self._nodes.get(record.name), quantities.allocatable(record.object)
        if record.kind == DELETED:
            self._nodes.pop(record.name, None)
        elif previous != current:
            if previous is not None:
                self._earlier_capacities[record.name] = (record.at, previous)
            self._nodes[record.name] = current

    def _observe_pod(self, record: Record) -> None:
        node, previous = pods.node(record.object), self._node_by_pod.get(record.uid)
        occupies_node = record.kind != DELETED and node and not pods.has_ended(record.object)
        if previous is not None and not occupies_node:
            self._requests[previous].pop(record.uid, None)
            del self._node_by_pod[record.uid]
        if not occupies_node or previous is not None:
            return
        self._node_by_pod[record.uid] = node
        self._requests[node][record.uid] = self._requests_from(node, record.object)
        if record.kind == ADDED or record.listed or node not in self._nodes:
            return
        self._judged += 1
        excess = self._excess(node, record.at)
        if excess:
            self._report_violation(f"pod {record.name} was bound to {node}, whose pods then asked for {excess}", record)

    def _requests_from(self, node: str, pod: Document) -> Amounts:
        """Return what a pod requests from its node itself."""
        mappings = items(pod, "status", "extendedResourceClaimStatus", "requestMappings")
        served_by_devices = {text(entry, "resourceName") for entry in mappings} - self._nodes.get(node, {}).keys()
        return {name: value for name, value in quantities.requested(pod).items() if name not in served_by_devices}

    def _excess(self, node: str, moment: float) -> str:
        capacity = self._nodes[node]
        changed_at, earlier_capacity = self._earlier_capacities.get(node, (float("-inf"), capacity))
        if moment - changed_at <= STALE:
            capacity = {
                name: max(capacity.get(name, Decimal(0)), earlier_capacity.get(name, Decimal(0)))
                for name in {**capacity, **earlier_capacity}
            }
        requested: defaultdict[str, Decimal] = defaultdict(Decimal)
        for amounts in self._requests[node].values():
            for name, value in amounts.items():
                requested[name] += value
        return _exceeded_resources(requested, capacity)


def _exceeded_resources(requested: Mapping[str, Decimal], node_capacity: Amounts) -> str:
    """Return the exceeded resources. Resources that a node does not report count as unlimited, except devices."""
    exceeded = [
        f"{value.normalize():f} {name} of {node_capacity.get(name, Decimal(0)).normalize():f}"
        for name, value in sorted(requested.items())
        if value > node_capacity.get(name, Decimal(0)) and (name in node_capacity or "/" in name)
    ]
    return ", ".join(exceeded)
