"""The state of a namespace's coherent sets while a history is replayed, shared by the rules about coherent updates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from conformance.grove import gang_maps, labels, pods, template, updates
from conformance.grove.coherent import shapes
from conformance.grove.coherent.model import Component, Key, Layout
from conformance.grove.fields import Document, at, condition, decimal, label, number, terminating, text
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
    component: ReplicaComponent
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
    is_terminating: bool = False
    excused: bool = False


@dataclass
class CoherentSet:
    """A set that has, or has had, the strategy Coherent."""

    template: SetTemplate
    document: Document
    is_declared: bool
    """Whether the spec requests the strategy Coherent."""
    is_coherent: bool
    """Whether the rules of coherent updates apply. If the strategy is changed during another update, they apply only
    once the operator has started to follow it."""
    generation: str = ""
    running: bool = False
    interrupted: bool = False
    """Whether the running update started during another update, or under another strategy: only the next update is
    coherent from the start (COH-274)."""
    ended_at: float = 0.0
    scope: frozenset[Key] = frozenset()
    old_keys: frozenset[str] = frozenset()
    """Keys of the entries that existed when the update started."""


@dataclass
class CoherentState:
    """The sets, maps, pods and gangs of a namespace; `apply` updates them once for each record."""

    origins: Origins = field(default_factory=Origins)
    sets: dict[str, CoherentSet] = field(default_factory=dict)
    maps: dict[tuple[str, int], Layout] = field(default_factory=dict)
    """Set and replica → current layout."""
    unmapped: set[tuple[str, int]] = field(default_factory=set)
    """Sets and replicas whose map has been deleted."""
    epochs: set[str] = field(default_factory=set)
    """Sets whose maps identify entries by epoch."""
    written_map: tuple[str, int] | None = None
    """Set and replica of the map that the current record is about; None if the record is not about a map."""
    previous_layout: Layout = ()
    """The layout of that map before the current record."""
    pods: dict[str, CoherentPod] = field(default_factory=dict)
    previous_pod: CoherentPod | None = None
    """The current record's pod before the record; None for a new pod."""
    gangs: dict[str, Document] = field(default_factory=dict)
    ready_gangs: set[str] = field(default_factory=set)
    """Names of gangs that have been Ready."""
    scheduled_gangs: set[str] = field(default_factory=set)
    generation_hashes: dict[str, str] = field(default_factory=dict)
    """Key of an entry → its generation."""
    sizes: dict[ReplicaComponent, int] = field(default_factory=dict)
    """spec.replicas of standalone cliques and scaling groups."""
    cliques: dict[str, Document] = field(default_factory=dict)
    members: dict[str, str] = field(default_factory=dict)
    """Member clique → `group/index`, as `shapes.key_of` expects it."""
    update_starts: bool = False
    """Whether an update starts with the current record."""
    deleted_cliques: set[str] = field(default_factory=set)
    """UIDs of clique objects that have been deleted or are being deleted."""
    deleting_clique: str = ""
    """UID of the clique object whose deletion starts with the current record; empty if there is none."""
    removed_at: dict[str, float] = field(default_factory=dict)
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
        self._owners.observe(record)
        self.previous_pod, self.written_map, self.previous_layout, self.update_starts, self.deleting_clique = (
            None,
            None,
            (),
            False,
            "",
        )
        if record.resource == "podcliquesets":
            self._observe_set(record)
        elif record.resource == "pods":
            self._observe_pod(record)
        elif record.resource == "podgangmaps":
            self._observe_map(record)
        elif record.resource == "podgangs":
            self._observe_gang(record)
        elif record.resource in ("podcliques", "podcliquescalinggroups"):
            self._observe_part(record)

    # -- asking ------------------------------------------------------------------------------------------------------

    def components(self, set_name: str, replica: int, only: Collection[Key] | None = None) -> list[Component]:
        """Return the components of a set replica, with their currently desired sizes; with `only`, just these
        components."""
        return [
            Component(key, self.sizes.get(ReplicaComponent(set_name, replica, key), replicas), minimum, budget)
            for key, replicas, minimum, budget in _components(self.sets[set_name].template)
            if only is None or key in only
        ]

    def is_updating(self, set_name: str) -> bool:
        """Return whether a coherent update of a set is in progress."""
        coherent_set = self.sets.get(set_name)
        return coherent_set is not None and coherent_set.is_coherent and coherent_set.running

    def is_waiting(self, set_name: str, replica: int) -> bool:
        """Return whether the running update has not reached a replica yet: no entry in its map has the newest
        generation."""
        generation_hashes = {entry.generation for entry in self.maps.get((set_name, replica), ())}
        return (
            self.is_updating(set_name)
            and bool(generation_hashes)
            and self.sets[set_name].generation not in generation_hashes
        )

    def has_budget(self, set_name: str) -> bool:
        """Return whether any template of a set has maxUnavailable."""
        set_template = self.sets[set_name].template
        entries = [clique.entry for clique in set_template.standalone] + [group.entry for group in set_template.groups]
        return any(number(at(entry, "rollingUpdate"), "maxUnavailable") is not None for entry in entries)

    def gang_was_ready(self, key: str) -> bool:
        """Return whether the gang of an entry is or was Ready."""
        return any(self.key_of_gang(gang) == key for gang in self.ready_gangs)

    def pods_of_clique(self, clique: str, *, include_deleted: bool = False) -> Iterator[CoherentPod]:
        """Yield the pods of a clique that are not being deleted. Pods whose clique object is deleted are included only
        with `include_deleted`."""
        candidates = (self.pods[uid] for uid in self._by_clique[clique])
        return (
            pod
            for pod in candidates
            if not pod.is_terminating and (include_deleted or pod.owner not in self.deleted_cliques)
        )

    def count_available(self, component: ReplicaComponent, gangs: Collection[str] | None = None) -> int:
        """Return the number of Ready pods of a clique, or of available replicas of a scaling group; if `gangs` is
        given, count only pods in these gangs."""

        def ready(clique: str) -> int:
            return sum(pod.ready and (gangs is None or pod.gang in gangs) for pod in self.pods_of_clique(clique))

        prefix = f"{component.set}-{component.replica}-{component.key.name}"
        if component.key.kind == "clique":
            return ready(prefix)
        set_template = self.sets[component.set].template
        group = next((group for group in set_template.groups if group.name == component.key.name), None)
        if group is None:
            return 0
        minimums = {name: set_template.clique(name).min_available for name in group.cliques}
        return sum(
            all(ready(f"{prefix}-{index}-{name}") >= minimum for name, minimum in minimums.items())
            for index in range(self.sizes.get(component, group.replicas))
        )

    def deleted_by_operator(self, record: Record) -> CoherentPod | None:
        """Return the Ready pod whose deletion starts with this record, if only the operator can have caused it: not the
        suite, a scheduler, or the deletion of the set. Otherwise return None."""
        pod, previous_pod = self.pods.get(record.uid), self.previous_pod
        if (
            record.resource != "pods"
            or pod is None
            or previous_pod is None
            or previous_pod.is_terminating
            or not pod.is_terminating
        ):
            return None
        if not previous_pod.ready or self._is_excused(record, pod):
            return None
        return None if terminating(self.sets[pod.component.set].document) else pod

    def is_deleted_by_others(self, record: Record) -> bool:
        """Return whether the deletion of a pod starts with this record, and the suite or a scheduler is known to have
        caused it."""
        pod, previous_pod = self.pods.get(record.uid), self.previous_pod
        return (
            pod is not None
            and pod.is_terminating
            and not (previous_pod and previous_pod.is_terminating)
            and self._is_excused(record, pod)
        )

    def _is_excused(self, record: Record, pod: CoherentPod) -> bool:
        """Return whether the suite or a scheduler has deleted a pod."""
        is_disrupted = condition(record.object, "DisruptionTarget") and self.origins.is_disrupted(
            record.name, SCHEDULER
        )
        return pod.excused or bool(is_disrupted)

    def deleted_pods(self, record: Record) -> list[CoherentPod]:
        """Return the Ready pods that the operator starts to delete with this record. If it deletes a clique object,
        these are all of the clique's Ready pods, however late the garbage collector deletes them."""
        if record.resource != "podcliques":
            pod = self.deleted_by_operator(record)
            return [] if pod is None or pod.owner in self.deleted_cliques else [pod]
        pcs = self.sets.get(label(record.object, labels.PART_OF))
        if not self.deleting_clique or pcs is None or terminating(pcs.document):
            return []
        candidates = (self.pods[uid] for uid in self._by_clique[record.name])
        return [pod for pod in candidates if pod.owner == self.deleting_clique and pod.ready and not pod.excused]

    def is_surplus(self, pod: CoherentPod) -> bool:
        """Return whether a pod that is being deleted is surplus, because its component was scaled in."""
        replicas = self.sizes.get(pod.component)
        if replicas is None:
            return False
        return pod.index >= replicas if pod.index >= 0 else sum(1 for _ in self.pods_of_clique(pod.clique)) >= replicas

    def key_of_gang(self, gang: str) -> str:
        """Return the key of the entry that a gang belongs to; the gang's name if the gang object is unknown."""
        document = self.gangs.get(gang)
        return shapes.key_of(document, self.members) if document is not None else gang

    # -- keeping count -----------------------------------------------------------------------------------------------

    def _observe_set(self, record: Record) -> None:
        previous_set = self.sets.get(record.name)
        is_declared = text(record.object, "spec", "updateStrategy", "type") == COHERENT
        if previous_set is None and not is_declared:
            return
        if record.kind == DELETED:
            self.sets.pop(record.name, None)
            return
        coherent_set = self.sets[record.name] = CoherentSet(
            template.read(record.object), record.object, is_declared, is_declared
        )
        coherent_set.generation = updates.generation_hash(record.object)
        coherent_set.running = updates.is_running(record.object)
        scope = shapes.scope(record.object)
        coherent_set.scope = frozenset(Key("clique" if kind == "clique" else "group", name) for kind, name in scope)
        if previous_set is None:
            joined_uids = [uid for uid, pod in self._other_pods.items() if pod.component.set == record.name]
            self.pods |= {uid: self._other_pods.pop(uid) for uid in joined_uids}
            return
        coherent_set.interrupted, coherent_set.ended_at, coherent_set.old_keys = (
            previous_set.interrupted,
            previous_set.ended_at,
            previous_set.old_keys,
        )
        has_changed = previous_set.generation not in ("", coherent_set.generation)
        self.update_starts = coherent_set.running and (has_changed or not previous_set.running)
        coherent_set.is_coherent = is_declared and (
            previous_set.is_coherent or self.update_starts or not previous_set.running
        )
        if self.update_starts:
            coherent_set.interrupted = has_changed and previous_set.running
            layouts = [layout for (set_name, _), layout in self.maps.items() if set_name == record.name]
            coherent_set.old_keys = frozenset(entry.key for layout in layouts for entry in layout)
        if is_declared and not previous_set.is_declared and previous_set.running:
            coherent_set.interrupted = True
        if previous_set.running and not coherent_set.running:
            coherent_set.interrupted, coherent_set.ended_at = False, record.at

    def _observe_part(self, record: Record) -> None:
        set_name, replica = label(record.object, labels.PART_OF), label(record.object, labels.SET_INDEX)
        group = label(record.object, labels.GROUP)
        if record.resource == "podcliques":
            self.cliques[record.name] = record.object
            if (record.kind == DELETED or terminating(record.object)) and record.uid not in self.deleted_cliques:
                self.deleted_cliques.add(record.uid)
                self.deleting_clique = record.uid
            if group:
                index = label(record.object, labels.GROUP_INDEX)
                self.members[record.name] = f"{group.removeprefix(f'{set_name}-{replica}-')}/{index}"
                return
        replica_index = decimal(replica)
        if replica_index is None:
            return
        component_kind = "group" if record.resource == "podcliquescalinggroups" else "clique"
        key = Key(
            "group" if component_kind == "group" else "clique", record.name.removeprefix(f"{set_name}-{replica}-")
        )
        if record.kind == DELETED:
            self.sizes.pop(ReplicaComponent(set_name, replica_index, key), None)
        else:
            self.sizes[ReplicaComponent(set_name, replica_index, key)] = number(record.object, "spec", "replicas") or 0

    def _observe_map(self, record: Record) -> None:
        set_name, replica = gang_maps.set_of(record.object), shapes.replica(record.object)
        if replica is None:
            return
        layout = () if record.kind == DELETED else shapes.entries(record.object)
        earlier_layout, self.maps[set_name, replica] = self.maps.get((set_name, replica), ()), layout
        (self.unmapped.add if record.kind == DELETED else self.unmapped.discard)((set_name, replica))
        if shapes.is_by_epoch(record.object):
            self.epochs.add(set_name)
        for entry in layout:
            self.generation_hashes[entry.key] = entry.generation
        for key in {entry.key for entry in earlier_layout} - {entry.key for entry in layout}:
            self.removed_at[key] = record.at
        if set_name in self.sets:
            self.written_map, self.previous_layout = (set_name, replica), earlier_layout
            self.sets[set_name].is_coherent |= self.sets[set_name].is_declared and record.kind != DELETED

    def _observe_gang(self, record: Record) -> None:
        if record.kind == DELETED:
            return
        self.gangs[record.name] = record.object
        if shapes.gang_was_ready(record.object):
            self.ready_gangs.add(record.name)
        if shapes.gang_was_scheduled(record.object):
            self.scheduled_gangs.add(record.name)

    def _observe_pod(self, record: Record) -> None:
        document = record.object
        set_name, replica = label(document, labels.PART_OF), label(document, labels.SET_INDEX)
        clique = label(document, labels.CLIQUE)
        replica_index = decimal(replica)
        if not set_name or replica_index is None or not clique:
            return
        stored_pods = self.pods if set_name in self.sets else self._other_pods
        previous_pod = stored_pods.get(record.uid)
        self.previous_pod = previous_pod if stored_pods is self.pods else None
        group, index = label(document, labels.GROUP), label(document, labels.GROUP_INDEX)
        prefix = f"{set_name}-{replica}-"
        key = Key("group", group.removeprefix(prefix)) if group else Key("clique", clique.removeprefix(prefix))
        is_terminating = record.kind == DELETED or terminating(document)
        stored_pods[record.uid] = CoherentPod(
            name=record.name,
            component=ReplicaComponent(set_name, replica_index, key),
            index=-1 if not group or (group_index := decimal(index)) is None else group_index,
            clique=clique,
            owner=self._owners.current_owner(record),
            gang=label(document, labels.GANG),
            hash=label(document, labels.TEMPLATE_HASH),
            created=previous_pod.created if previous_pod else record.at,
            ready=pods.is_ready(document) and not is_terminating,
            bound=pods.is_bound(document),
            finished=pods.has_ended(document),
            is_terminating=is_terminating,
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
