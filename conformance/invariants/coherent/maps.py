"""Each member is in exactly one place (COH-I03, COH-I12)."""

from __future__ import annotations

from conformance.grove.coherent.model import broken_partition
from conformance.history.record import DELETED, Record
from conformance.invariants.coherent.rule import CoherentRule


class Partition(CoherentRule):
    """INV-013 (COH-I03). Judged only during updates, when nothing is scaled: between two updates, a map may lag behind
    scaling."""

    id = "INV-013"
    statement = "during an update, the entries of a PodGangMap hold each pod and each replica exactly once"
    idle_reason = "no PodGangMap was written during an update"

    def judge_state(self, record: Record) -> None:
        """Judge the state after a record."""
        if (
            self.state.written_map is None
            or record.kind == DELETED
            or not self.state.is_updating(self.state.written_map[0])
        ):
            return
        self.judged += 1
        sizes = {component.key: component.replicas for component in self.state.components(*self.state.written_map)}
        if errors := broken_partition(self.state.maps[self.state.written_map], sizes):
            self._report_violation(f"map {record.name}: {'; '.join(errors)}", record)


class OneGangForAReplica(CoherentRule):
    """INV-021 (COH-I12). Judged by the gangs that pods name, because a map may be written in two steps."""

    id = "INV-021"
    statement = "no two gangs hold the same replica of a scaling group"
    idle_reason = "no gang held a replica of a scaling group"

    def judge_state(self, record: Record) -> None:
        """Judge the state after a record."""
        pod = self.state.pods.get(record.uid)
        if record.resource != "pods" or self.state.previous_pod is not None or pod is None or pod.index < 0:
            return
        self.judged += 1
        prefix = f"{pod.component.set}-{pod.component.replica}-{pod.component.key.name}-{pod.index}-"
        groups = {group.name: group.cliques for group in self.state.sets[pod.component.set].template.groups}
        cliques = [prefix + name for name in groups.get(pod.component.key.name, ())]
        gangs = {member.gang for clique in cliques for member in self.state.pods_of_clique(clique)}
        if len(gangs) > 1:
            replica = f"replica {pod.index} of {pod.component.key.name}"
            self._report_violation(f"the pods of {replica} are in gangs {', '.join(sorted(gangs))}", record)
