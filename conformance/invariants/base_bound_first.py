"""INV-008: base gangs are bound before their scaled gangs (GS-03, GS-40)."""

from __future__ import annotations

from conformance.grove import labels, names, pods
from conformance.grove.coherent.served import COHERENT
from conformance.grove.fields import Document, count, decimal, label, text
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant


class BaseGangs:
    """The base gang of each scaled pod."""

    def __init__(self) -> None:
        self._minimums: dict[str, int] = {}
        self._base_gang_by_replica: dict[tuple[str, str], str] = {}
        """Set replica → the gang of its pods that are not scaled."""
        self._mapped_replicas: set[str] = set()
        """Set replicas with a PodGangMap: they have anchors instead of base gangs (GM-64)."""
        self._roles: dict[str, str] = {}
        """The role of each gang that has one."""
        self._anchors: dict[tuple[str, str], set[str]] = {}
        """Set replica → the names of its anchors."""
        self._coherent_sets: set[str] = set()
        """Sets that have had the strategy Coherent: their gangs may depend on gangs other than anchors (GM-66)."""

    def observe(self, record: Record) -> None:
        """Track `minAvailable` of scaling groups, gangs with a role, and the gangs of pods that are not scaled."""
        if record.resource == "podcliquescalinggroups":
            self._minimums[record.name] = count(record.object, "spec", "minAvailable")
        if record.resource == "podgangmaps":
            self._mapped_replicas.add(record.name)
        if record.resource == "podcliquesets" and text(record.object, "spec", "updateStrategy", "type") == COHERENT:
            self._coherent_sets.add(record.name)
        if record.resource == "podgangs" and (role := label(record.object, labels.GANG_ROLE)):
            self._roles[record.name] = role
            anchors = self._anchors.setdefault(_replica(record.object), set())
            (anchors.add if role == labels.ANCHOR_ROLE and record.kind != DELETED else anchors.discard)(record.name)
        if record.resource == "pods" and not self._is_scaled(record.object):
            self._base_gang_by_replica[_replica(record.object)] = label(record.object, labels.GANG)

    def base_gang_of(self, pod: Document) -> str:
        """Return the base gang of a scaled pod; empty for a pod of a base gang.

        The base gang is read from the label or, if an implementation omits the label, from the replica's pods that are
        not scaled.
        """
        set_name, index = _replica(pod)
        name = "" if (replica := decimal(index)) is None else names.base_gang(set_name, replica)
        if name in self._mapped_replicas:
            return self._anchor(pod)
        if labeled_base := label(pod, labels.BASE_GANG):
            return labeled_base
        return (self._base_gang_by_replica.get((set_name, index)) or name) if self._is_scaled(pod) else ""

    def _anchor(self, pod: Document) -> str:
        """Return the anchor that a pod in a gang other than an anchor waits for (GM-64); empty if the replica does not
        have exactly one anchor."""
        anchors = self._anchors.get(_replica(pod), set())
        is_dependent = self._roles.get(label(pod, labels.GANG), labels.ANCHOR_ROLE) != labels.ANCHOR_ROLE
        return (
            next(iter(anchors))
            if is_dependent and len(anchors) == 1 and _replica(pod)[0] not in self._coherent_sets
            else ""
        )

    def _is_scaled(self, pod: Document) -> bool:
        index, minimum = decimal(label(pod, labels.GROUP_INDEX)), self._minimums.get(label(pod, labels.GROUP))
        is_above_minimum = minimum is not None and index is not None and index >= minimum
        return is_above_minimum or label(pod, labels.BASE_GANG) != ""


def _replica(pod: Document) -> tuple[str, str]:
    """Return the set of a pod, and the index of the pod's set replica."""
    return label(pod, labels.PART_OF), label(pod, labels.SET_INDEX)


class BaseBoundFirst(Invariant):
    """INV-008. If a base gang loses pods after its admission, the scaled pods that it has released stay released
    (GS-06)."""

    id = "INV-008"
    statement = "no pod of a scaled gang is bound before every PodGroup of its base gang has had minReplicas bound pods"

    def __init__(self) -> None:
        super().__init__()
        self._bases = BaseGangs()
        self._admitted_gangs: set[str] = set()
        self._bound_pods: set[str] = set()
        self._judged_count = 0

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge bindings of scaled pods."""
        self._bases.observe(record)
        if record.resource not in ("pods", "podgangs"):
            return
        name = record.name if record.resource == "podgangs" else label(record.object, labels.GANG)
        if name and gangs[name].is_admitted:
            self._admitted_gangs.add(name)
        if record.resource == "pods":
            self._observe_pod(record, gangs)
        elif record.kind == DELETED:
            self._admitted_gangs.discard(record.name)

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged_count else "no pod of a scaled gang was bound"

    def _observe_pod(self, record: Record, gangs: Gangs) -> None:
        if record.kind == DELETED or not pods.is_bound(record.object) or record.uid in self._bound_pods:
            return
        self._bound_pods.add(record.uid)
        base = self._bases.base_gang_of(record.object)
        if not base or record.listed:
            return
        self._judged_count += 1
        if base not in self._admitted_gangs and not gangs[base].is_admitted:
            reason = f"scaled pod {record.name} was bound while in its base gang {base} {gangs[base].shortfall()}"
            self._report_violation(reason, record)
