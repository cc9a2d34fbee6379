"""INV-014: a gang holds pods of one version only (COH-I04, COH-I05)."""

from __future__ import annotations

from collections import Counter

from conformance.history.record import Record
from conformance.invariants.coherent.rule import CoherentRule
from conformance.invariants.coherent.state import CoherentState


class OneVersionInAGang(CoherentRule):
    """INV-014. A gang's entry names the generation of its pods, so all gangs of one generation have the same template
    hash for a clique. A gang that has existed under another strategy may hold pods of several templates. So may a gang
    of a replica that waits for its update: pods that the operator did not delete may be recreated from the newest
    template."""

    id = "INV-014"
    statement = "all pods of a clique in gangs of one generation have one template hash, and those in one gang forever"
    idle_reason = "no pod was created in a gang of a PodGangMap"

    def __init__(self, state: CoherentState) -> None:
        super().__init__(state)
        self._hash_by_gang: dict[tuple[str, str], tuple[str, Record]] = {}
        self._hash_by_generation: dict[tuple[str, str, str], tuple[str, Record]] = {}
        self._mixed_gangs: set[str] = set()
        self._lost_counts: Counter[str] = Counter()
        """Clique → the number of pods that were deleted, but not by the operator, and have not been recreated."""

    def judge_state(self, record: Record) -> None:
        """Judge the state after a record."""
        current = self.state.sets.get(record.name) if record.resource == "podcliquesets" else None
        if current is not None and not current.is_coherent:
            self._mixed_gangs |= {pod.gang for pod in self.state.pods.values() if pod.component.set == record.name}
        pod = self.state.pods.get(record.uid)
        if record.resource != "pods" or pod is None:
            return
        if pod.is_terminating and self.state.is_deleted_by_others(record):
            self._lost_counts[pod.clique] += 1
        if pod.is_terminating or self.state.previous_pod is not None:
            return
        if not self.state.sets[pod.component.set].is_coherent:
            self._mixed_gangs.add(pod.gang)
        if pod.gang in self._mixed_gangs or not pod.hash:
            return
        self.judged += 1
        generation = self.state.generation_hashes.get(self.state.key_of_gang(pod.gang), "")
        gang_hash = self._hash_by_gang.setdefault((pod.gang, pod.clique), (pod.hash, record))
        has_returned, self._lost_counts[pod.clique] = (
            self._lost_counts[pod.clique] > 0,
            max(0, self._lost_counts[pod.clique] - 1),
        )
        if (
            gang_hash[0] != pod.hash
            and has_returned
            and self.state.is_waiting(pod.component.set, pod.component.replica)
        ):
            generation = self.state.sets[pod.component.set].generation
        else:
            self._compare(gang_hash, pod.hash, record)
        if generation:
            template = pod.clique.rpartition("-")[2] if pod.index >= 0 else pod.component.key.name
            key = (pod.component.set, generation, f"{pod.component.key}/{template}")
            self._compare(self._hash_by_generation.setdefault(key, (pod.hash, record)), pod.hash, record)

    def _compare(self, earlier: tuple[str, Record], hash: str, record: Record) -> None:
        if earlier[0] != hash:
            pod = self.state.pods[record.uid]
            reason = (
                f"pod {record.name} of gang {pod.gang} has template hash {hash}, and pod {earlier[1].name} {earlier[0]}"
            )
            self._report_violation(reason, earlier[1], record)
