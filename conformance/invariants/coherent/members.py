"""Rules about pods and their gangs (COH-I10, COH-I11)."""

from __future__ import annotations

from conformance.grove import gang_maps
from conformance.grove.coherent.model import Layout
from conformance.grove.fields import condition_is, count
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.coherent.rule import CoherentRule
from conformance.invariants.coherent.state import CoherentPod, CoherentState
from conformance.invariants.invariant import Violation

STALE = 5.0
"""Seconds for which an operator may act on an outdated map."""
SETTLED = 5.0
"""Seconds after the last change of a map or pod within which the map and the pods of a set must agree."""


class NoSurge(CoherentRule):
    """INV-019 (COH-I10). Pods of a deleted clique object count until the pods themselves are deleted (COH-127)."""

    id = "INV-019"
    statement = "during an update, a clique never has more bound pods than replicas"
    idle_reason = "no pod was bound during an update"

    def judge_state(self, record: Record) -> None:
        """Judge the state after a record."""
        pod, before = self.state.pods.get(record.uid), self.state.previous_pod
        if record.resource != "pods" or pod is None or not pod.bound or (before is not None and before.bound):
            return
        clique = self.state.cliques.get(pod.clique)
        if clique is None or not self.state.is_updating(pod.component.set):
            return
        self.judged += 1
        replicas = count(clique, "spec", "replicas")
        siblings = self.state.pods_of_clique(pod.clique, include_deleted=True)
        bound_count = sum(sibling.bound and not sibling.finished for sibling in siblings)
        if bound_count > replicas:
            self._report_violation(
                f"{bound_count} pods of {pod.clique} are bound, and it has {replicas} replicas", record
            )


class PodsFollowTheMap(CoherentRule):
    """INV-020 (COH-I11)."""

    timed = True
    id = "INV-020"
    statement = "every pod belongs to a gang of its replica's PodGangMap, and never to another one"
    idle_reason = "no pod of a set with a PodGangMap was created"

    def __init__(self, state: CoherentState) -> None:
        super().__init__(state)
        self._changed_at: dict[str, float] = {}
        self._early_pods: dict[str, list[CoherentPod]] = {}
        """Gang → its pods that were created before it, in sets in which only the gang object shows to which entry it
        belongs."""

    def judge_state(self, record: Record) -> None:
        """Judge the state after a record."""
        pod, before = self.state.pods.get(record.uid), self.state.previous_pod
        if record.resource == "podgangmaps":
            self._changed_at = dict.fromkeys(self.state.sets, record.at)
        if record.resource == "podgangs":
            for early in self._early_pods.pop(record.name, ()):
                self._judge(early, record)
        if record.resource != "pods" or pod is None:
            return
        self._changed_at[pod.component.set] = record.at
        if before is not None and before.gang != pod.gang and not self._is_migrating(pod):
            self._report_violation(f"pod {record.name} moves from gang {before.gang} to {pod.gang}", record)
        if before is not None or record.kind == DELETED or record.listed:
            return
        if pod.component.set in self.state.epochs and pod.gang not in self.state.gangs:
            self._early_pods.setdefault(pod.gang, []).append(pod)
        else:
            self._judge(pod, record)

    def _is_migrating(self, pod: CoherentPod) -> bool:
        """Return whether the gangs of an earlier operator version are currently being replaced by the gangs of the
        map."""
        coherent_set = self.state.sets.get(pod.component.set)
        return coherent_set is not None and condition_is(coherent_set.document, gang_maps.MIGRATING) == "True"

    def _judge(self, pod: CoherentPod, record: Record) -> None:
        """Judge the gang in which a pod was created."""
        coherent_set, layout = self.state.sets.get(pod.component.set), self._layout(pod)
        if layout is None or coherent_set is None or not coherent_set.is_coherent:
            return
        self.judged += 1
        key = self.state.key_of_gang(pod.gang)
        was_removed_recently = record.at - self.state.removed_at.get(key, float("-inf")) <= STALE
        if not was_removed_recently and key not in {entry.key for entry in layout} and "/" not in key:
            self._report_violation(
                f"pod {pod.name} is created in gang {pod.gang or 'none'}, which no entry names", record
            )

    def _layout(self, pod: CoherentPod) -> Layout | None:
        """Return the layout of a pod's replica; None if it has no map. COHR-094 judges whether a lost map is
        restored."""
        map_key = pod.component.set, pod.component.replica
        return None if map_key in self.state.unmapped else self.state.maps.get(map_key)

    def _violation_at_end(self, gangs: Gangs, now: float) -> Violation | None:
        for pod in self.state.pods.values():
            layout = self._layout(pod)
            if pod.is_terminating or layout is None or now - self._changed_at.get(pod.component.set, now) < SETTLED:
                continue
            if self.state.key_of_gang(pod.gang) not in {entry.key for entry in layout}:
                return f"pod {pod.name} is of gang {pod.gang or 'none'}, which no entry names", ()
        return None
