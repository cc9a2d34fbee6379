"""Rules about the components and replicas that an update must not touch (COH-I06, COH-I07)."""

from __future__ import annotations

from conformance.grove import updates
from conformance.history.record import Record
from conformance.invariants.coherent.rule import CoherentRule
from conformance.invariants.coherent.state import CoherentPod, CoherentState


class OutOfScope(CoherentRule):
    """INV-015 (COH-I06)."""

    id = "INV-015"
    statement = "an update deletes no pod of a component that it does not change"
    idle_reason = "no update left a component out of its scope"

    def judge_state(self, record: Record) -> None:
        """Judge the state after a record."""
        if record.resource == "podcliquesets" and (coherent_set := self.state.sets.get(record.name)):
            keys = {component.key for component in self.state.components(record.name, 0)}
            unaffected_keys = coherent_set.scope and keys - coherent_set.scope
            self.judged += self.state.is_updating(record.name) and bool(unaffected_keys)
        for pod in self.state.deleted_pods(record):
            if self.state.is_updating(pod.component.set):
                self._judge(pod, record)

    def _judge(self, pod: CoherentPod, record: Record) -> None:
        pcs = self.state.sets[pod.component.set]
        if pcs.scope and pod.component.key not in pcs.scope and not self.state.is_surplus(pod):
            names = ", ".join(sorted(key.name for key in pcs.scope))
            self._report_violation(f"pod {record.name} is deleted, and the update is of {names}", record)


class OneReplicaAtATime(CoherentRule):
    """INV-016 (COH-I07). Replicas may be updated in any order, but their updates must not interleave."""

    id = "INV-016"
    statement = "an update replaces pods of one replica of the set after the other"
    idle_reason = "no update of a set with several replicas deleted a pod that was Ready"

    def __init__(self, state: CoherentState) -> None:
        super().__init__(state)
        self._replicas_by_update: dict[tuple[str, str], list[int]] = {}

    def judge_state(self, record: Record) -> None:
        """Judge the state after a record."""
        if record.resource == "podcliquesets" and (coherent_set := self.state.sets.get(record.name)):
            if coherent_set.is_coherent and len(updates.updating_replicas(record.object)) > 1:
                self._report_violation(
                    f"replicas {updates.updating_replicas(record.object)} are being updated at once", record
                )
            return
        for pod in self.state.deleted_pods(record):
            if self.state.is_updating(pod.component.set):
                self._judge(pod, record)

    def _judge(self, pod: CoherentPod, record: Record) -> None:
        pcs = self.state.sets[pod.component.set]
        if pcs.template.replicas < 2:
            return
        if (pcs.scope and pod.component.key not in pcs.scope) or self.state.is_surplus(pod):
            return
        self.judged += 1
        updated_replicas = self._replicas_by_update.setdefault((pod.component.set, pcs.generation), [])
        if pod.component.replica not in updated_replicas:
            updated_replicas.append(pod.component.replica)
        elif pod.component.replica != updated_replicas[-1]:
            previous = updated_replicas[-1]
            reason = (
                f"pod {record.name} of replica {pod.component.replica} is deleted after replica {previous} has begun"
            )
            self._report_violation(reason, record)
