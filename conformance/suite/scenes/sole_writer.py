"""Fields that only the suite writes in a test: the spec of its PodCliqueSets, which are the user's, and its nodes. And
fields that only the kubelet writes: the statuses of a pod's containers.

Rules and tests believe these: how many pods a set asks for, how much a node has, since when a pod is Ready. An
implementation that changes them makes its own work look right, so a test in which it did so judges nothing. What was
asked for is known from what the suite has sent, and what it was answered; everything else in the history was written by
somebody else. Who wrote the status of a pod is known from the audit log.
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
    """The writes of the suite, in the order of its requests. `compares_nodes`: the cluster is one of the suite, on
    which no component changes what a node has."""

    def __init__(self, pool: str, compares_nodes: bool = False) -> None:
        self._pool, self._compares_nodes = pool, compares_nodes
        self._specs: dict[str, list[Mapping[str, Any]]] = {}
        """The specs of each set by uid, as the API server has answered."""
        self._nodes: dict[str, list[Object]] = {}
        """The manifests of each node by name, as the suite wants it to be."""
        self._deleted: set[str] = set()
        self._at: dict[str, int] = {}
        """The last of these states that an object matched, by uid or name: it never returns to an earlier one."""
        self._generations: dict[str, object] = {}
        self._wrong: list[str] = []

    def created(self, obj: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Note an object that the suite has made: what it sent, and what was answered."""
        self._compare(obj, answer, text(obj, "kind"))
        if obj.get("kind") == "PodCliqueSet":
            self._note(answer)

    def patched(self, resource: str, target: str, patch: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Note a merge patch and the answer."""
        self._compare(patch, answer, text(answer, "kind"))
        if resource == SETS:
            self._note(answer)
        for manifest in self._nodes.get(target, [])[-1:] if resource == NODES else ():
            self._nodes[target].append(_merged(manifest, patch))

    def deleted(self, resource: str, target: str) -> None:
        """Note a deletion that the suite asks for."""
        if resource == SETS:
            self._deleted.add(target)

    def fleet(self, manifests: Sequence[Object]) -> None:
        """Note nodes that the suite makes."""
        for node in manifests:
            self._nodes.setdefault(str(node["metadata"]["name"]), []).append(node)

    def foreign(self, histories: Sequence[History], spans: Sequence[tuple[int, int | None]] = ()) -> str:
        """Return the first thing that somebody else has written, as a sentence; empty for none. `spans`: those in
        which an earlier version was the operator."""
        records = [
            record
            for history in histories
            for record in history.records()
            if not any(begin < record.seq and (until is None or record.seq <= until) for begin, until in spans)
        ]
        sets = (violation for record in records if record.resource == SETS and (violation := self._of_set(record)))
        fleet = (violation for record in records if record.resource == NODES and (violation := self._of_node(record)))
        forged = (violation for history in histories for violation in pod_statuses.forged(history))
        altered = (violation for history in histories for violation in history.origins.altered)
        return next((violation for part in (self._wrong, sets, fleet, forged, altered) for violation in part), "")

    def _compare(self, sent: Mapping[str, Any], answer: Mapping[str, Any], kind: str) -> None:
        for path, value in stored.otherwise(sent, answer, kind) if kind in stored.KINDS else ():
            self._wrong.append(f"{kind} {name(answer)}: {path} was stored as {value!r}")

    def _note(self, answer: Mapping[str, Any]) -> None:
        specs = self._specs.setdefault(uid(answer), [])
        spec = answer.get("spec") or {}
        if answer.get("kind") == "Scale":  # which leaves a size of 0 out
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
        """Return how an object differs from what the suite wants it to be now; None if it is as it was, or as one of
        the suite's later writes wants it."""
        begin = self._at.get(key, 0)
        for number, difference in enumerate(differing[begin:], begin):
            if not difference:
                self._at[key] = number
                return None
        return differing[begin]


def _merged(value: Any, patch: Any) -> Any:
    """Apply a JSON merge patch, except that what is removed stays as null."""
    if not isinstance(patch, Mapping):
        return patch
    whole = dict(value) if isinstance(value, Mapping) else {}
    return whole | {key: _merged(whole.get(key), change) for key, change in patch.items()}


def _differing(manifest: Object, node: Mapping[str, Any]) -> str:
    """Return which part of a node differs from the suite's manifest of it; empty if none does."""
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
