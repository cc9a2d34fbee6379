"""INV-022: the state of a set after an update has ended (COH-I13)."""

from __future__ import annotations

from conformance.grove.coherent import shapes
from conformance.grove.coherent.model import Entry, Key, broken_partition
from conformance.grove.fields import decimal, label
from conformance.grove.labels import PART_OF, SET_INDEX
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.coherent.rule import CoherentRule
from conformance.invariants.coherent.state import CoherentState
from conformance.invariants.invariant import Violation

SETTLED = 5.0
"""Seconds without a change of its objects after which a set counts as at rest."""


class SteadyState(CoherentRule):
    """INV-022 (COH-I13). Judged at the end of a history, for the sets that are at rest."""

    timed = True
    id = "INV-022"
    statement = (
        "at rest, the gangs of a set are those of its PodGangMaps, which hold everything once and nothing outdated"
    )
    idle_reason = "no set with a PodGangMap was at rest at the end"

    def __init__(self, state: CoherentState) -> None:
        super().__init__(state)
        self._changed_at: dict[str, float] = {}
        self._gangs: dict[str, Record] = {}

    def judge_state(self, record: Record) -> None:
        """Judge the state after a record."""
        set_name = record.name if record.resource == "podcliquesets" else label(record.object, PART_OF)
        if record.resource != "podcliquesets" or self.state.update_starts:
            self._changed_at[set_name] = record.at
        if record.resource == "podgangs":
            self._gangs.pop(record.name, None)
            if record.kind != DELETED:
                self._gangs[record.name] = record

    def _resting_replicas(self, now: float) -> list[tuple[str, int]]:
        idle_sets = {name for name, pcs in self.state.sets.items() if pcs.is_coherent and not pcs.running}
        return [
            (name, replica)
            for (name, replica), layout in self.state.maps.items()
            if layout and name in idle_sets and now - self._changed_at.get(name, now) >= SETTLED
        ]

    def _violation_at_end(self, gangs: Gangs, now: float) -> Violation | None:
        for set_name, replica in self._resting_replicas(now):
            self.judged += 1
            if errors := self._errors(set_name, replica):
                return f"replica {replica} of {set_name}: {'; '.join(errors)}", ()
        return None

    def _errors(self, set_name: str, replica: int) -> list[str]:
        coherent_set, layout = self.state.sets[set_name], self.state.maps[set_name, replica]
        sizes = {component.key: component.replicas for component in self.state.components(set_name, replica)}
        errors = broken_partition(layout, sizes)
        entry_keys = {entry.key for entry in layout}
        existing_keys = {
            shapes.key_of(record.object, self.state.members)
            for record in self._gangs.values()
            if label(record.object, PART_OF) == set_name and _replica(record, set_name) == replica
        }
        errors += [f"there is no gang of entry {key}" for key in sorted(entry_keys - existing_keys)]
        errors += [f"gang {key} is in no entry" for key in sorted(existing_keys - entry_keys)]
        for entry in layout:
            outdated = [
                key for key in entry.components() & coherent_set.scope if self._is_outdated(set_name, entry, key)
            ]
            if outdated:
                names = ", ".join(sorted(key.name for key in outdated))
                errors.append(f"gang {entry.key} of an old generation holds {names}, which the last update changed")
        return errors

    def _is_outdated(self, set_name: str, entry: Entry, key: Key) -> bool:
        """Return whether a gang holds a different version of a component than the gangs of the set's generation.
        Components that an interrupted update has moved stay where they are if the next update does not change them
        (COH-197)."""
        generation = self.state.sets[set_name].generation
        if entry.generation == generation:
            return False
        entry_versions: set[tuple[str, str]] = set()
        current_versions: set[tuple[str, str]] = set()
        for pod in self.state.pods.values():
            if pod.is_terminating or (pod.component.set, pod.component.key) != (set_name, key):
                continue
            gang = self.state.key_of_gang(pod.gang)
            template = pod.clique.rpartition("-")[2] if pod.index >= 0 else key.name
            if gang == entry.key:
                entry_versions.add((template, pod.hash))
            elif self.state.generation_hashes.get(gang) == generation:
                current_versions.add((template, pod.hash))
        return not entry_versions or not entry_versions <= current_versions


def _replica(record: Record, set_name: str) -> int | None:
    """Return the index of the set replica that a gang belongs to, from its label or, without one, from its name
    (COH-271)."""
    index = label(record.object, SET_INDEX) or record.name.removeprefix(f"{set_name}-").partition("-")[0]
    return decimal(index)
