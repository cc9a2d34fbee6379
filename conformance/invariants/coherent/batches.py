"""Batches are updated one after the other, and gangs are bound before the gangs that depend on them (COH-I08,
COH-I09)."""

from __future__ import annotations

from conformance.grove.coherent.change import LayoutChange
from conformance.grove.coherent.model import Entry, Layout
from conformance.grove.fields import count, items, text
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.coherent.rule import CoherentRule
from conformance.invariants.coherent.state import CoherentPod, CoherentState


class OneBatchAtATime(CoherentRule):
    """INV-017 (COH-I08, COH-150, COH-151). Gangs of a generation that was abandoned halfway do not count."""

    id = "INV-017"
    statement = "an update begins a sub-step only after all gangs and pods of the one before have been scheduled"
    idle_reason = "no update had a second sub-step"
    awaited_state = "scheduled"

    def __init__(self, state: CoherentState) -> None:
        super().__init__(state)
        self._peak_counts: dict[tuple[str, str], int] = {}
        """Gang and clique → the maximum number of pods that were in the awaited state at the same time."""

    def _has_reached(self, pod: CoherentPod) -> bool:
        """Return whether a pod has reached the awaited state (scheduled or Ready)."""
        return pod.bound

    def _reached_gangs(self) -> set[str]:
        """Return the names of the gangs that have reached the awaited state."""
        return self.state.scheduled_gangs | self.state.ready_gangs

    def judge_state(self, record: Record) -> None:
        """Report a violation if the record binds a pod too early."""
        pod = self.state.pods.get(record.uid)
        if record.resource == "pods" and pod is not None and self._has_reached(pod) and pod.index < 0:
            count = sum(
                self._has_reached(member) and member.gang == pod.gang
                for member in self.state.pods_of_clique(pod.clique)
            )
            key = (pod.gang, pod.clique)
            self._peak_counts[key] = max(self._peak_counts.get(key, 0), count)
        if (
            self.state.written_map is None
            or record.kind == DELETED
            or not self.state.is_updating(self.state.written_map[0])
        ):
            return
        set_name, replica = self.state.written_map
        change = LayoutChange(self.state.previous_layout, self.state.maps[set_name, replica])
        if not (change.losses_by_gang and change.batch.counts):
            return  # scaling that was admitted just before the update moves no members
        coherent_set, done_keys = (
            self.state.sets[set_name],
            {self.state.key_of_gang(gang) for gang in self._reached_gangs()},
        )
        for entry in self.state.previous_layout:
            if entry.generation == coherent_set.generation and entry.key not in coherent_set.old_keys:
                self.judged += 1
                self._judge(record, f"{set_name}-{replica}", entry, done_keys)

    def _judge(self, record: Record, prefix: str, entry: Entry, done_keys: set[str]) -> None:
        if entry.key not in done_keys:
            self._report_violation(
                f"the next sub-step begins, and gang {entry.key} was never {self.awaited_state}", record
            )
        gangs = {gang for gang in self.state.gangs if self.state.key_of_gang(gang) == entry.key}
        for clique, replicas in entry.cliques.items():
            peak = max((self._peak_counts.get((gang, f"{prefix}-{clique}"), 0) for gang in gangs), default=0)
            if peak < replicas:
                progress = f"{peak} of {replicas} pods of {clique} in gang {entry.key} were {self.awaited_state}"
                self._report_violation(f"the next sub-step begins, and {progress}", record)


class OneReadyBatchAtATime(OneBatchAtATime):
    """COHR-109: the same rule, according to the text that waits for Ready."""

    id = "COHR-109"
    statement = "an update begins a sub-step only after all gangs and pods of the one before have been Ready"
    awaited_state = "Ready"

    def _has_reached(self, pod: CoherentPod) -> bool:
        return pod.ready

    def _reached_gangs(self) -> set[str]:
        return self.state.ready_gangs


class AnchorsFirst(CoherentRule):
    """INV-018 (COH-I09). The contract does not say which anchors a gang depends on; in every reading, the newest anchor
    of its generation at the creation of its entry is one of them."""

    id = "INV-018"
    statement = "no pod of a gang that depends on anchors is bound before its anchor was scheduled"
    idle_reason = "no pod of a gang that depends on anchors was bound"

    def __init__(self, state: CoherentState) -> None:
        super().__init__(state)
        self._anchor_by_entry: dict[str, str] = {}
        """Key of a dependent entry → key of its anchor."""
        self._placed_gangs: set[str] = set()
        """Names of gangs whose PodGroups have all had minReplicas bound pods."""

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge a record, and track the gangs that have their minimum bound."""
        name = record.name if record.resource == "podgangs" else self._gang_of(record)
        if name and gangs[name].is_admitted:
            self._placed_gangs.add(name)
        super().observe(record, gangs)

    def judge_state(self, record: Record) -> None:
        """Report a violation if the record binds a pod too early."""
        if self.state.written_map is not None:
            self._learn_anchors(self.state.maps[self.state.written_map])
        pod, before = self.state.pods.get(record.uid), self.state.previous_pod
        if record.resource != "pods" or pod is None or not pod.bound or (before is not None and before.bound):
            return
        key = self.state.key_of_gang(pod.gang)
        anchor = self._anchor_by_entry.get(key)
        if anchor is None or record.listed:
            return
        self.judged += 1
        placed = {self.state.key_of_gang(gang) for gang in self._placed_gangs | self.state.scheduled_gangs}
        if anchor not in placed and not self._is_admitted(anchor):
            self._report_violation(
                f"pod {record.name} of gang {key} is bound, and its anchor {anchor} is not scheduled", record
            )

    def _learn_anchors(self, layout: Layout) -> None:
        old_keys = {entry.key for entry in self.state.previous_layout}
        for entry in layout:
            anchors = [other.key for other in layout if other.anchor and other.generation == entry.generation]
            if entry.key not in old_keys and entry.dependent and not entry.anchor and anchors:
                self._anchor_by_entry[entry.key] = anchors[-1]

    def _is_admitted(self, key: str) -> bool:
        """Return whether every PodGroup of an anchor currently has its minimum bound."""
        for name, gang in self.state.gangs.items():
            if self.state.key_of_gang(name) == key:
                groups = items(gang, "spec", "podgroups")
                bound = {text(group, "name"): self._count_bound(text(group, "name"), name) for group in groups}
                return bool(groups) and all(bound[text(g, "name")] >= count(g, "minReplicas") for g in groups)
        return False

    def _count_bound(self, clique: str, gang: str) -> int:
        return sum(pod.bound and pod.gang == gang for pod in self.state.pods_of_clique(clique))

    def _gang_of(self, record: Record) -> str:
        pod = self.state.pods.get(record.uid) if record.resource == "pods" else None
        return pod.gang if pod else ""
