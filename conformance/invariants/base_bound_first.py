"""INV-008: base gangs are bound before their scaled gangs (GS-03, GS-40)."""

from __future__ import annotations

from conformance.grove import labels, names, pods
from conformance.grove.fields import Document, count, label
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant


class Bases:
    """The base gang of each scaled pod."""

    def __init__(self) -> None:
        self._minimums: dict[str, int] = {}
        self._mapped: set[str] = set()
        """Replicas of sets whose gangs a PodGangMap lists: these have anchors in the place of base gangs (COH-265)."""

    def see(self, record: Record) -> None:
        """Note `minAvailable` of a scaling group."""
        if record.resource == "podcliquescalinggroups":
            self._minimums[record.name] = count(record.object, "spec", "minAvailable")
        if record.resource == "podgangmaps":
            self._mapped.add(record.name)

    def of(self, pod: Document) -> str:
        """Return the base gang of a scaled pod; empty for a pod of a base gang.

        It is read from the label or, if an implementation forgets that, found by the replica index of the scaling
        group.
        """
        named, set_index = label(pod, labels.BASE_GANG), label(pod, labels.SET_INDEX)
        if set_index.isdigit() and names.base_gang(label(pod, labels.PART_OF), int(set_index)) in self._mapped:
            return ""
        if named:
            return named
        index = label(pod, labels.GROUP_INDEX)
        minimum = self._minimums.get(label(pod, labels.GROUP))
        if minimum is None or not index.isdigit() or not set_index.isdigit() or int(index) < minimum:
            return ""
        return names.base_gang(label(pod, labels.PART_OF), int(set_index))


class BaseBoundFirst(Invariant):
    """INV-008. A base gang that was admitted once may lose pods: the scaled pods that were released stay released
    (GS-06)."""

    id = "INV-008"
    what = "no pod of a scaled gang is bound before every PodGroup of its base gang has had minReplicas bound pods"

    def __init__(self) -> None:
        super().__init__()
        self._bases = Bases()
        self._admitted: set[str] = set()
        self._bound: set[str] = set()
        self._judged = 0

    def see(self, record: Record, gangs: Gangs) -> None:
        """Judge bindings of scaled pods."""
        self._bases.see(record)
        if record.resource not in ("pods", "podgangs"):
            return
        name = record.name if record.resource == "podgangs" else label(record.object, labels.GANG)
        if name and gangs[name].admitted:
            self._admitted.add(name)
        if record.resource == "pods":
            self._see_pod(record, gangs)
        elif record.kind == DELETED:
            self._admitted.discard(record.name)

    def _unknown(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no pod of a scaled gang was bound"

    def _see_pod(self, record: Record, gangs: Gangs) -> None:
        if record.kind == DELETED or not pods.bound(record.object) or record.uid in self._bound:
            return
        self._bound.add(record.uid)
        base = self._bases.of(record.object)
        if not base or record.listed:
            return
        self._judged += 1
        if base not in self._admitted and not gangs[base].admitted:
            reason = f"scaled pod {record.name} was bound while in its base gang {base} {gangs[base].missing()}"
            self._violate(reason, record)
