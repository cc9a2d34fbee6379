"""The state of a namespace's coherent sets while a history is replayed, shared by the rules about coherent updates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from conformance.grove import gang_maps, labels, pods, template, updates
from conformance.grove.coherent import shapes
from conformance.grove.coherent.model import Component, Key, Layout
from conformance.grove.fields import Document, at, condition, label, number, terminating, text
from conformance.grove.template import SetTemplate
from conformance.history.origins import Origins
from conformance.history.record import DELETED, Record
from conformance.invariants.pod_owners import PodOwners

COHERENT = "Coherent"
SCHEDULER = "gang-scheduler"
"""The user of the gang scheduler, which may preempt pods independently of the operator."""


class ReplicaComponent(NamedTuple):
    """A component of one replica of a set."""

    set: str
    replica: int
    key: Key


@dataclass
class CoherentPod:
    """A pod of a coherent set, as of its last record."""

    name: str
    place: ReplicaComponent
    index: int
    """Replica index in the scaling group; -1 for a pod of a standalone clique."""
    clique: str
    owner: str
    """UID of the clique object. Pods of a deleted clique object are only waiting for the garbage collector."""
    gang: str
    hash: str
    created: float
    ready: bool = False
    bound: bool = False
    finished: bool = False
    """Whether the pod has failed or succeeded, so that its place is free."""
    going: bool = False
    excused: bool = False


@dataclass
class Set:
    """A set that has, or has had, the strategy Coherent."""

    template: SetTemplate
    document: Document
    declared: bool
    """Whether the spec requests the strategy Coherent."""
    coherent: bool
    """Whether the rules of coherent updates apply. If the strategy is changed during another update, they apply only
    once the operator has started to follow it."""
    generation: str = ""
    running: bool = False
    interrupted: bool = False
    """Whether the running update started during another update, or under another strategy: only the next update is
    coherent from the start (COH-274)."""
    ended_at: float = 0.0
    scope: frozenset[Key] = frozenset()
    old: frozenset[str] = frozenset()
    """Keys of the entries that existed when the update started."""


@dataclass
class CoherentState:
    """The sets, maps, pods and gangs of a namespace; `apply` updates them once for each record."""

    origins: Origins = field(default_factory=Origins)
    sets: dict[str, Set] = field(default_factory=dict)
    maps: dict[tuple[str, int], Layout] = field(default_factory=dict)
    """Set and replica → current layout."""
    unmapped: set[tuple[str, int]] = field(default_factory=set)
    """Sets and replicas whose map has been deleted."""
    epochs: set[str] = field(default_factory=set)
    """Sets whose maps identify entries by epoch."""
    written: tuple[str, int] | None = None
    """Set and replica of the map that the current record is about; None if the record is not about a map."""
    previous: Layout = ()
    """The layout of that map before the current record."""
    pods: dict[str, CoherentPod] = field(default_factory=dict)
    before: CoherentPod | None = None
    """The current record's pod before the record; None for a new pod."""
    gangs: dict[str, Document] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    """Names of gangs that have been Ready."""
    scheduled: set[str] = field(default_factory=set)
    generations: dict[str, str] = field(default_factory=dict)
    """Key of an entry → its generation."""
    sizes: dict[ReplicaComponent, int] = field(default_factory=dict)
    """spec.replicas of standalone cliques and scaling groups."""
    cliques: dict[str, Document] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)
    """Member clique → `group/index`, as `shapes.key_of` expects it."""
    began: bool = False
    """Whether an update starts with the current record."""
    ended: set[str] = field(default_factory=set)
    """UIDs of clique objects that have been deleted or are being deleted."""
    ending: str = ""
    """UID of the clique object whose deletion starts with the current record; empty if there is none."""
    removed: dict[str, float] = field(default_factory=dict)
    """Key of an entry → the time at which it was removed from its map."""
    _other_pods: dict[str, CoherentPod] = field(default_factory=dict)
    """Pods of sets that have not been Coherent so far; their strategy may change later."""
    _owners: PodOwners = field(default_factory=PodOwners)
    _seq: int = 0
    _by_clique: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def apply(self, record: Record) -> None:
        """Apply a record. Applying the same record again has no effect."""
        if record.seq == self._seq:
            return
        self._seq = record.seq
        self._owners.see(record)
        self.before, self.written, self.previous, self.began, self.ending = None, None, (), False, ""
        if record.resource == "podcliquesets":
            self._see_set(record)
        elif record.resource == "pods":
            self._see_pod(record)
        elif record.resource == "podgangmaps":
            self._see_map(record)
        elif record.resource == "podgangs":
            self._see_gang(record)
        elif record.resource in ("podcliques", "podcliquescalinggroups"):
            self._see_part(record)

    # -- asking ------------------------------------------------------------------------------------------------------

    def components(self, pcs: str, replica: int, only: Collection[Key] | None = None) -> list[Component]:
        """Return the components of a set replica, with their currently desired sizes; with `only`, just these
        components."""
        return [
            Component(key, self.sizes.get(ReplicaComponent(pcs, replica, key), replicas), minimum, budget)
            for key, replicas, minimum, budget in _components(self.sets[pcs].template)
            if only is None or key in only
        ]

    def updating(self, pcs: str) -> bool:
        """Return whether a coherent update of a set is in progress."""
        current = self.sets.get(pcs)
        return current is not None and current.coherent and current.running

    def waiting(self, pcs: str, replica: int) -> bool:
        """Return whether the running update has not reached a replica yet: no entry in its map has the newest
        generation."""
        generations = {entry.generation for entry in self.maps.get((pcs, replica), ())}
        return self.updating(pcs) and bool(generations) and self.sets[pcs].generation not in generations

    def budgeted(self, pcs: str) -> bool:
        """Return whether any template of a set has maxUnavailable."""
        set_template = self.sets[pcs].template
        entries = [clique.entry for clique in set_template.standalone] + [group.entry for group in set_template.groups]
        return any(number(at(entry, "rollingUpdate"), "maxUnavailable") is not None for entry in entries)

    def gang_was_ready(self, key: str) -> bool:
        """Return whether the gang of an entry is or was Ready."""
        return any(self.key_of_gang(gang) == key for gang in self.done)

    def of_clique(self, clique: str, *, ended: bool = False) -> Iterator[CoherentPod]:
        """Yield the pods of a clique that are not being deleted. Pods whose clique object is deleted are included only
        with `ended`."""
        candidates = (self.pods[uid] for uid in self._by_clique[clique])
        return (pod for pod in candidates if not pod.going and (ended or pod.owner not in self.ended))

    def available(self, place: ReplicaComponent, gangs: Collection[str] | None = None) -> int:
        """Return the number of Ready pods of a clique, or of available replicas of a scaling group; if `gangs` is
        given, count only pods in these gangs."""

        def ready(clique: str) -> int:
            return sum(pod.ready and (gangs is None or pod.gang in gangs) for pod in self.of_clique(clique))

        prefix = f"{place.set}-{place.replica}-{place.key.name}"
        if place.key.kind == "clique":
            return ready(prefix)
        set_template = self.sets[place.set].template
        group = next((group for group in set_template.groups if group.name == place.key.name), None)
        if group is None:
            return 0
        floors = {name: set_template.clique(name).min_available for name in group.cliques}
        return sum(
            all(ready(f"{prefix}-{index}-{name}") >= floor for name, floor in floors.items())
            for index in range(self.sizes.get(place, group.replicas))
        )

    def deleted_by_operator(self, record: Record) -> CoherentPod | None:
        """Return the Ready pod whose deletion starts with this record, if only the operator can have caused it: not the
        suite, a scheduler, or the deletion of the set. Otherwise return None."""
        pod, before = self.pods.get(record.uid), self.before
        if record.resource != "pods" or pod is None or before is None or before.going or not pod.going:
            return None
        if not before.ready or self._excused(record, pod):
            return None
        return None if terminating(self.sets[pod.place.set].document) else pod

    def deleted_by_others(self, record: Record) -> bool:
        """Return whether the deletion of a pod starts with this record, and the suite or a scheduler is known to have
        caused it."""
        pod, before = self.pods.get(record.uid), self.before
        return pod is not None and pod.going and not (before and before.going) and self._excused(record, pod)

    def _excused(self, record: Record, pod: CoherentPod) -> bool:
        """Return whether the suite or a scheduler has deleted a pod."""
        disrupted = condition(record.object, "DisruptionTarget") and self.origins.disrupted(record.name, SCHEDULER)
        return pod.excused or bool(disrupted)

    def deleted(self, record: Record) -> list[CoherentPod]:
        """Return the Ready pods that the operator starts to delete with this record. If it deletes a clique object,
        these are all of the clique's Ready pods, however late the garbage collector deletes them."""
        if record.resource != "podcliques":
            pod = self.deleted_by_operator(record)
            return [] if pod is None or pod.owner in self.ended else [pod]
        pcs = self.sets.get(label(record.object, labels.PART_OF))
        if not self.ending or pcs is None or terminating(pcs.document):
            return []
        candidates = (self.pods[uid] for uid in self._by_clique[record.name])
        return [pod for pod in candidates if pod.owner == self.ending and pod.ready and not pod.excused]

    def surplus(self, pod: CoherentPod) -> bool:
        """Return whether a pod that is being deleted is surplus, because its component was scaled in."""
        replicas = self.sizes.get(pod.place)
        if replicas is None:
            return False
        return pod.index >= replicas if pod.index >= 0 else sum(1 for _ in self.of_clique(pod.clique)) >= replicas

    def key_of_gang(self, gang: str) -> str:
        """Return the key of the entry that a gang belongs to; the gang's name if the gang object is unknown."""
        document = self.gangs.get(gang)
        return shapes.key_of(document, self.members) if document is not None else gang

    # -- keeping count -----------------------------------------------------------------------------------------------

    def _see_set(self, record: Record) -> None:
        previous = self.sets.get(record.name)
        declared = text(record.object, "spec", "updateStrategy", "type") == COHERENT
        if previous is None and not declared:
            return
        if record.kind == DELETED:
            self.sets.pop(record.name, None)
            return
        current = self.sets[record.name] = Set(template.read(record.object), record.object, declared, declared)
        current.generation = updates.generation_hash(record.object)
        current.running = updates.is_running(record.object)
        scope = shapes.scope(record.object)
        current.scope = frozenset(Key("clique" if kind == "clique" else "group", name) for kind, name in scope)
        if previous is None:
            joined_uids = [uid for uid, pod in self._other_pods.items() if pod.place.set == record.name]
            self.pods |= {uid: self._other_pods.pop(uid) for uid in joined_uids}
            return
        current.interrupted, current.ended_at, current.old = previous.interrupted, previous.ended_at, previous.old
        changed = previous.generation not in ("", current.generation)
        self.began = current.running and (changed or not previous.running)
        current.coherent = declared and (previous.coherent or self.began or not previous.running)
        if self.began:
            current.interrupted = changed and previous.running
            layouts = [layout for (pcs, _), layout in self.maps.items() if pcs == record.name]
            current.old = frozenset(entry.key for layout in layouts for entry in layout)
        if declared and not previous.declared and previous.running:
            current.interrupted = True
        if previous.running and not current.running:
            current.interrupted, current.ended_at = False, record.at

    def _see_part(self, record: Record) -> None:
        pcs, replica = label(record.object, labels.PART_OF), label(record.object, labels.SET_INDEX)
        group = label(record.object, labels.GROUP)
        if record.resource == "podcliques":
            self.cliques[record.name] = record.object
            if (record.kind == DELETED or terminating(record.object)) and record.uid not in self.ended:
                self.ended.add(record.uid)
                self.ending = record.uid
            if group:
                index = label(record.object, labels.GROUP_INDEX)
                self.members[record.name] = f"{group.removeprefix(f'{pcs}-{replica}-')}/{index}"
                return
        if not replica.isdigit():
            return
        component_kind = "group" if record.resource == "podcliquescalinggroups" else "clique"
        key = Key("group" if component_kind == "group" else "clique", record.name.removeprefix(f"{pcs}-{replica}-"))
        if record.kind == DELETED:
            self.sizes.pop(ReplicaComponent(pcs, int(replica), key), None)
        else:
            self.sizes[ReplicaComponent(pcs, int(replica), key)] = number(record.object, "spec", "replicas") or 0

    def _see_map(self, record: Record) -> None:
        pcs, replica = gang_maps.set_of(record.object), shapes.replica(record.object)
        if replica is None:
            return
        layout = () if record.kind == DELETED else shapes.entries(record.object)
        before, self.maps[pcs, replica] = self.maps.get((pcs, replica), ()), layout
        (self.unmapped.add if record.kind == DELETED else self.unmapped.discard)((pcs, replica))
        if shapes.is_by_epoch(record.object):
            self.epochs.add(pcs)
        for entry in layout:
            self.generations[entry.key] = entry.generation
        for key in {entry.key for entry in before} - {entry.key for entry in layout}:
            self.removed[key] = record.at
        if pcs in self.sets:
            self.written, self.previous = (pcs, replica), before
            self.sets[pcs].coherent |= self.sets[pcs].declared and record.kind != DELETED

    def _see_gang(self, record: Record) -> None:
        if record.kind == DELETED:
            return
        self.gangs[record.name] = record.object
        if shapes.gang_was_ready(record.object):
            self.done.add(record.name)
        if shapes.gang_was_scheduled(record.object):
            self.scheduled.add(record.name)

    def _see_pod(self, record: Record) -> None:
        document = record.object
        pcs, replica = label(document, labels.PART_OF), label(document, labels.SET_INDEX)
        clique = label(document, labels.CLIQUE)
        if not pcs or not replica.isdigit() or not clique:
            return
        stored_pods = self.pods if pcs in self.sets else self._other_pods
        before = stored_pods.get(record.uid)
        self.before = before if stored_pods is self.pods else None
        group, index = label(document, labels.GROUP), label(document, labels.GROUP_INDEX)
        prefix = f"{pcs}-{replica}-"
        key = Key("group", group.removeprefix(prefix)) if group else Key("clique", clique.removeprefix(prefix))
        going = record.kind == DELETED or terminating(document)
        stored_pods[record.uid] = CoherentPod(
            name=record.name,
            place=ReplicaComponent(pcs, int(replica), key),
            index=int(index) if group and index.isdigit() else -1,
            clique=clique,
            owner=self._owners.now(record),
            gang=label(document, labels.GANG),
            hash=label(document, labels.TEMPLATE_HASH),
            created=before.created if before else record.at,
            ready=pods.is_ready(document) and not going,
            bound=pods.is_bound(document),
            finished=pods.has_ended(document),
            going=going,
            excused=record.uid in self.origins.excused,
        )
        if record.kind == DELETED:
            self._by_clique[clique].discard(record.uid)
            self._other_pods.pop(record.uid, None)
        else:
            self._by_clique[clique].add(record.uid)


def _components(set_template: SetTemplate) -> Iterator[tuple[Key, int, int, int]]:
    for clique in set_template.standalone:
        yield (
            Key("clique", clique.name),
            clique.replicas,
            clique.min_available,
            _budget(clique.entry, clique.min_available),
        )
    for group in set_template.groups:
        minimum = group.min_available
        yield Key("group", group.name), group.replicas, minimum, _budget(group.entry, minimum)


def _budget(entry: Mapping[str, object], minimum: int) -> int:
    """Return maxUnavailable; it defaults to minAvailable (COH-062)."""
    limit = number(at(entry, "rollingUpdate"), "maxUnavailable")
    return minimum if limit is None else limit
