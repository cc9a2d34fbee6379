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
    nothing = "no pod was created in a gang of a PodGangMap"

    def __init__(self, state: CoherentState) -> None:
        super().__init__(state)
        self._of_gang: dict[tuple[str, str], tuple[str, Record]] = {}
        self._of_generation: dict[tuple[str, str, str], tuple[str, Record]] = {}
        self._mixed: set[str] = set()
        self._lost: Counter[str] = Counter()
        """Clique → the number of pods that were deleted, but not by the operator, and have not been recreated."""

    def look(self, record: Record) -> None:
        """Judge the state after a record."""
        current = self.state.sets.get(record.name) if record.resource == "podcliquesets" else None
        if current is not None and not current.coherent:
            self._mixed |= {pod.gang for pod in self.state.pods.values() if pod.place.set == record.name}
        pod = self.state.pods.get(record.uid)
        if record.resource != "pods" or pod is None:
            return
        if pod.going and self.state.deleted_by_others(record):
            self._lost[pod.clique] += 1
        if pod.going or self.state.before is not None:
            return
        if not self.state.sets[pod.place.set].coherent:
            self._mixed.add(pod.gang)
        if pod.gang in self._mixed or not pod.hash:
            return
        self.judged += 1
        generation = self.state.generations.get(self.state.key_of_gang(pod.gang), "")
        of_gang = self._of_gang.setdefault((pod.gang, pod.clique), (pod.hash, record))
        returned, self._lost[pod.clique] = self._lost[pod.clique] > 0, max(0, self._lost[pod.clique] - 1)
        if of_gang[0] != pod.hash and returned and self.state.waiting(pod.place.set, pod.place.replica):
            generation = self.state.sets[pod.place.set].generation
        else:
            self._compare(of_gang, pod.hash, record)
        if generation:
            template = pod.clique.rpartition("-")[2] if pod.index >= 0 else pod.place.key.name
            key = (pod.place.set, generation, f"{pod.place.key}/{template}")
            self._compare(self._of_generation.setdefault(key, (pod.hash, record)), pod.hash, record)

    def _compare(self, first: tuple[str, Record], hash: str, record: Record) -> None:
        if first[0] != hash:
            pod = self.state.pods[record.uid]
            reason = (
                f"pod {record.name} of gang {pod.gang} has template hash {hash}, and pod {first[1].name} {first[0]}"
            )
            self._violate(reason, first[1], record)
