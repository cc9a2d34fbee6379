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
    nothing = "no update left a component out of its scope"

    def look(self, record: Record) -> None:
        """Judge the state after a record."""
        if record.resource == "podcliquesets" and (coherent_set := self.state.sets.get(record.name)):
            keys = {component.key for component in self.state.components(record.name, 0)}
            outside = coherent_set.scope and keys - coherent_set.scope
            self.judged += self.state.updating(record.name) and bool(outside)
        for pod in self.state.deleted(record):
            if self.state.updating(pod.place.set):
                self._judge(pod, record)

    def _judge(self, pod: CoherentPod, record: Record) -> None:
        pcs = self.state.sets[pod.place.set]
        if pcs.scope and pod.place.key not in pcs.scope and not self.state.surplus(pod):
            names = ", ".join(sorted(key.name for key in pcs.scope))
            self._violate(f"pod {record.name} is deleted, and the update is of {names}", record)


class OneReplicaAtATime(CoherentRule):
    """INV-016 (COH-I07). Replicas may be updated in any order, but their updates must not interleave."""

    id = "INV-016"
    statement = "an update replaces pods of one replica of the set after the other"
    nothing = "no update of a set with several replicas deleted a pod that was Ready"

    def __init__(self, state: CoherentState) -> None:
        super().__init__(state)
        self._turns: dict[tuple[str, str], list[int]] = {}

    def look(self, record: Record) -> None:
        """Judge the state after a record."""
        if record.resource == "podcliquesets" and (coherent_set := self.state.sets.get(record.name)):
            if coherent_set.coherent and len(updates.updating_replicas(record.object)) > 1:
                self._violate(f"replicas {updates.updating_replicas(record.object)} are being updated at once", record)
            return
        for pod in self.state.deleted(record):
            if self.state.updating(pod.place.set):
                self._judge(pod, record)

    def _judge(self, pod: CoherentPod, record: Record) -> None:
        pcs = self.state.sets[pod.place.set]
        if pcs.template.replicas < 2:
            return
        if (pcs.scope and pod.place.key not in pcs.scope) or self.state.surplus(pod):
            return
        self.judged += 1
        turns = self._turns.setdefault((pod.place.set, pcs.generation), [])
        if pod.place.replica not in turns:
            turns.append(pod.place.replica)
        elif pod.place.replica != turns[-1]:
            reason = f"pod {record.name} of replica {pod.place.replica} is deleted after replica {turns[-1]} has begun"
            self._violate(reason, record)
