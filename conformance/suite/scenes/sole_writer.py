"""Detect foreign writes to fields that only the suite may write in a test: the specs of its PodCliqueSets, which belong
to the user, and its nodes; and to fields that only the kubelet may write: the statuses of a pod's containers.

Rules and tests trust these fields, for example the number of pods that a set requests, the capacity of a node, and the
time since which a pod has been Ready. An implementation that changes them makes its own work look correct, so a test in
which this happens judges nothing. The suite's requests and the responses to them show what the suite wrote; everything
else in the history was written by another client. The audit log shows who wrote the status of a pod.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from conformance.cluster.nodes import POOL
from conformance.grove import quantities
from conformance.grove.admission.defaults import differences
from conformance.grove.fields import at, items, label, labels, mapping, name, terminating, text, truth, uid
from conformance.history.query import History
from conformance.history.record import DELETED, Record
from conformance.suite.scenes import pod_statuses, stored

ONLY = "only the suite writes the PodCliqueSets and the nodes of a test, and only the kubelet how its pods fare"
SETS, NODES = "podcliquesets", "nodes"

Object = dict[str, Any]
R = TypeVar("R")


class SoleWriter:
    """The writes of the suite, in the order of its requests. `compares_nodes`: whether the cluster is one of the
    suite's, on which no component changes the capacity of a node."""

    def __init__(self, pool: str, compares_nodes: bool = False) -> None:
        self._pool, self._compares_nodes = pool, compares_nodes
        self._specs: dict[str, list[Mapping[str, Any]]] = {}
        """UID of a set → its successive specs, from the API server's responses."""
        self._nodes: dict[str, list[Object]] = {}
        """Name of a node → its successive manifests, as the suite wrote them."""
        self._deleted: set[str] = set()
        self._at: dict[str, int] = {}
        """UID of a set or name of a node → the index of the latest of these states that it has matched; it must never
        return to an earlier state."""
        self._generations: dict[str, object] = {}
        self._wrong: list[str] = []

    def created(self, obj: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Record an object that the suite has created: the request and the response."""
        self._compare(obj, answer, text(obj, "kind"))
        if obj.get("kind") == "PodCliqueSet":
            self._note(answer)

    def patched(self, resource: str, target: str, patch: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Record a merge patch and the response to it."""
        self._compare(patch, answer, text(answer, "kind"))
        if resource == SETS:
            self._note(answer)
        for manifest in self._nodes.get(target, [])[-1:] if resource == NODES else ():
            self._nodes[target].append(_merged(manifest, patch))

    def deleted(self, resource: str, target: str) -> None:
        """Record a deletion that the suite requests."""
        if resource == SETS:
            self._deleted.add(target)

    def nodes_created(self, manifests: Sequence[Object]) -> None:
        """Record nodes that the suite creates."""
        for node in manifests:
            self._nodes.setdefault(str(node["metadata"]["name"]), []).append(node)

    def foreign(self, histories: Sequence[History], spans: Sequence[tuple[int, int | None]] = ()) -> str:
        """Return a message about the first write of another client; empty if there is none. `spans`: the spans in which
        an earlier version was the operator, which are not judged."""
        records = [
            record
            for history in histories
            for record in history.records()
            if not any(start < record.seq and (until is None or record.seq <= until) for start, until in spans)
        ]
        set_violations = (
            violation for record in records if record.resource == SETS and (violation := self._of_set(record))
        )
        node_violations = (
            violation for record in records if record.resource == NODES and (violation := self._of_node(record))
        )
        forged = (violation for history in histories for violation in pod_statuses.forged(history))
        altered = (violation for history in histories for violation in history.origins.altered)
        return next(
            (
                violation
                for part in (self._wrong, set_violations, node_violations, forged, altered)
                for violation in part
            ),
            "",
        )

    def _compare(self, sent: Mapping[str, Any], answer: Mapping[str, Any], kind: str) -> None:
        for path, value in stored.changes(sent, answer, kind) if kind in stored.KINDS else ():
            self._wrong.append(f"{kind} {name(answer)}: {path} was stored as {value!r}")

    def _note(self, answer: Mapping[str, Any]) -> None:
        specs = self._specs.setdefault(uid(answer), [])
        spec = answer.get("spec") or {}
        if answer.get("kind") == "Scale":  # which omits replicas: 0
            spec = {**(specs[-1] if specs else {}), "replicas": spec.get("replicas", 0)}
        specs.append(spec)

    def _of_set(self, record: Record) -> str:
        subject = f"PodCliqueSet {record.name}"
        if record.uid not in self._specs:
            return f"{subject} was made by somebody else ({record})"
        if record.name not in self._deleted and (record.kind == DELETED or terminating(record.object)):
            return f"{subject} was deleted by somebody else ({record})"
        spec, generation = record.object.get("spec"), at(record.object, "metadata", "generation")
        if generation is not None and self._generations.get(record.uid) == generation:
            return ""
        self._generations[record.uid] = generation
        difference = self._unlike(
            record.uid, [differences(requested, spec, "spec") for requested in self._specs[record.uid]]
        )
        other = "".join(f"{path} to {value!r}" for path, value in list((difference or {}).items())[:1])
        return f"{subject}: somebody else has changed {other} ({record})" if other else ""

    def _of_node(self, record: Record) -> str:
        manifests = self._nodes.get(record.name)
        if manifests is None:
            of_pool = label(record.object, POOL) == self._pool
            return f"node {record.name} was made by somebody else ({record})" if of_pool else ""
        if not self._compares_nodes or record.kind == DELETED:
            return ""
        other = self._unlike(record.name, [_differing(manifest, record.object) for manifest in manifests])
        return f"node {record.name}: somebody else has changed its {other} ({record})" if other else ""

    def _unlike(self, key: str, differing: Sequence[R]) -> R | None:
        """Return the difference between an object and the state that the suite wrote; None if the object matches the
        state that it last matched, or a state that the suite wrote later."""
        start = self._at.get(key, 0)
        for index, difference in enumerate(differing[start:], start):
            if not difference:
                self._at[key] = index
                return None
        return differing[start]


def _merged(value: Any, patch: Any) -> Any:
    """Apply a JSON merge patch, but keep removed fields as null."""
    if not isinstance(patch, Mapping):
        return patch
    whole = dict(value) if isinstance(value, Mapping) else {}
    return whole | {key: _merged(whole.get(key), change) for key, change in patch.items()}


def _differing(manifest: Object, node: Mapping[str, Any]) -> str:
    """Return the part of a node that differs from the suite's manifest; empty if there is none."""
    has = labels(node)
    if any(has.get(key) != value for key, value in labels(manifest).items()):
        return "labels"
    if bool(truth(manifest, "spec", "unschedulable")) != bool(truth(node, "spec", "unschedulable")):
        return "schedulability"
    if any(taint not in items(node, "spec", "taints") for taint in items(manifest, "spec", "taints")):
        return "taints"
    for part in ("capacity", "allocatable"):
        desired, actual = (quantities.amounts(mapping(resource, "status", part)) for resource in (manifest, node))
        if any(
            actual.get(resource) != desired.get(resource)
            for resource in (*desired, *(resource for resource in actual if "/" in resource))
        ):
            return part
    return ""
