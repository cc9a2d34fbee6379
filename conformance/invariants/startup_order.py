"""INV-006 and INV-026: no pod becomes Ready before the cliques that it starts after (OBJ-604, OBJ-606, OBJ-643)."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from conformance.cluster.kubelet_sim import init_wait
from conformance.grove import pods, startup, template
from conformance.grove.fields import Document, items, label, labels, text
from conformance.grove.labels import PART_OF
from conformance.grove.template import SetTemplate
from conformance.history.gangs import Gangs
from conformance.history.record import DELETED, Record
from conformance.invariants.invariant import Invariant
from conformance.invariants.pod_owners import PodOwners


class ParentsReadyFirst(Invariant):
    """INV-006. A parent counts once it has had a Ready pod at any time since the creation of the clique, even if the
    parent has lost that pod again. Pods whose init containers wait in a form that the fake kubelet does not recognize
    are not judged, because the fake kubelet starts them at once."""

    id = "INV-006"
    statement = "a pod becomes Ready only after each clique that it starts after had a pod Ready"

    def __init__(self) -> None:
        super().__init__()
        self._sets: dict[str, SetTemplate] = {}
        self._ready: defaultdict[str, set[str]] = defaultdict(set)
        self._waiting: dict[str, dict[str, int]] = {}
        """UID of a clique with parents → the parents that have not had enough Ready pods since its creation, each with
        the required number."""
        self._dependents: defaultdict[str, set[str]] = defaultdict(set)
        """Clique → UIDs of the cliques that wait for it."""
        self._unready: set[str] = set()
        """UIDs of pods that have not been Ready yet, and whose clique has parents."""
        self._seen_uids: set[str] = set()
        self._owners = PodOwners()
        self._judged = 0

    def observe(self, record: Record, gangs: Gangs) -> None:
        """Judge pods that become Ready, and track the Ready pods of each clique."""
        self._owners.observe(record)
        if record.resource == "podcliquesets" and record.kind != DELETED:
            self._sets[record.name] = template.read(record.object)
        if record.resource == "podcliques" and record.kind != DELETED:
            self._track_parents(record.object, record.name, record.uid)
        if record.resource == "pods":
            self._observe_pod(record)

    def _unknown_reason(self, gangs: Gangs, now: float) -> str:
        return "" if self._judged else "no pod that starts after others became Ready"

    def _observe_pod(self, record: Record) -> None:
        clique = pods.clique(record.object)
        owner = self._owners.current_owner(record) or clique
        if record.kind == DELETED:
            self._ready[clique].discard(record.uid)
            self._unready.discard(record.uid)
        else:
            is_ready = pods.is_ready(record.object)
            if record.uid not in self._seen_uids:
                self._seen_uids.add(record.uid)
                # A pod that a list shows as Ready may have become Ready at any earlier time, so there is nothing to
                # judge.
                has_known_waits = self._track_parents(record.object, clique, owner) and not self._waits_in_unknown_form(
                    record.object
                )
                if has_known_waits and not (record.listed and is_ready):
                    self._unready.add(record.uid)
            if is_ready and record.uid in self._unready:
                self._judge(record, clique, owner)
            (self._ready[clique].add if is_ready else self._ready[clique].discard)(record.uid)
        for dependent in list(self._dependents.get(clique, ())):
            self._update_waiting(dependent)

    def _waits_in_unknown_form(self, pod: Document) -> bool:
        """Return whether the operator added init containers to a pod and none of these waits in a known form."""
        set_template = self._sets.get(label(pod, PART_OF))
        cliques = set_template.cliques if set_template is not None else ()
        template_names = {
            text(container, "name") for clique in cliques for container in items(clique.pod_spec, "initContainers")
        }
        pod_containers = msgspec.convert(items(pod, "spec", "initContainers"), list[init_wait.Container])
        return init_wait.first_unknown_container(pod_containers, template_names) != ""

    def _required_count(self, minimum: int) -> int:
        """Return the number of Ready pods that a parent with this minAvailable must have had."""
        return min(minimum, 1)

    def _track_parents(self, document: Document, clique: str, owner: str) -> bool:
        """Track the parents of a clique, from its own labels or those of its first pod, and return whether the clique
        has parents."""
        if owner in self._waiting:
            return True
        set_template = self._sets.get(label(document, PART_OF))
        position = startup.clique_position(set_template, clique, labels(document)) if set_template is not None else None
        try:
            parents = (
                startup.parents(set_template, position) if set_template is not None and position is not None else None
            )
        except KeyError:  # admission rejects a set whose startsAfter names a missing clique
            return False
        if not parents:
            return False
        self._waiting[owner] = {parent: self._required_count(minimum) for parent, minimum in parents.items()}
        for parent in parents:
            self._dependents[parent].add(owner)
        self._update_waiting(owner)
        return True

    def _update_waiting(self, owner: str) -> None:
        """Stop waiting for the parents that now have enough Ready pods."""
        for parent, minimum in list(self._waiting[owner].items()):
            if len(self._ready[parent]) >= minimum:
                del self._waiting[owner][parent]
                self._dependents[parent].discard(owner)

    def _judge(self, record: Record, clique: str, owner: str) -> None:
        self._unready.discard(record.uid)
        self._judged += 1
        lack = ", ".join(
            f"{parent} had {len(self._ready[parent])} of {minimum} pods Ready"
            for parent, minimum in self._waiting[owner].items()
        )
        if lack and self._violation is None:
            self._report_violation(f"pod {record.name} of {clique} became Ready while {lack}", record)


class MinimumsReadyFirst(ParentsReadyFirst):
    """INV-026. The same rule, but a parent must have had minAvailable Ready pods."""

    id = "INV-026"
    statement = "a pod becomes Ready only after each clique that it starts after had minAvailable pods Ready"

    def _required_count(self, minimum: int) -> int:
        return minimum
