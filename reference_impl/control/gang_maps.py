"""The PodGangMaps in the cache, as the reconcilers of cliques, scaling groups and gangs read them."""

from __future__ import annotations

import time

from kube.objects import Key as ObjectKey
from kube.objects import Object
from reference_impl.api.models import CliqueTemplate, PodClique, PodCliqueScalingGroup, PodCliqueSet, PodGang
from reference_impl.control.cache import MAPPED, NO_REPLICA, OWNER, REPLICA, Cache, key_text
from reference_impl.plan import children, labels, names, pods, revisions, update_group_replicas, update_progress
from reference_impl.plan.coherent import components, maps, update
from reference_impl.plan.coherent import gangs as map_gangs
from reference_impl.plan.coherent.components import Component
from reference_impl.plan.coherent.layout import Entry, Key, Kind
from reference_impl.plan.coherent.maps import ReplicaMap, Templates
from reference_impl.plan.coherent.naming import Names
from reference_impl.plan.coherent.observed import Observed, ObservedPod, ObservedReplica
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.revisions import Revision


class GangMaps:
    """Reads PodGangMaps, and what there is of their gangs, from the cache."""

    def __init__(self, cache: Cache, policy: Policy = STANDARD) -> None:
        self._cache, self.policy = cache, policy
        self.names = Names(time.time_ns)
        self._read: dict[ObjectKey, tuple[str, ReplicaMap]] = {}

    def used_by(self, pcs: PodCliqueSet) -> bool:
        """Whether gangs of a set come from maps: it is, or was once, updated coherently. A set whose maps were deleted
        is recognised by its gangs."""
        if update.coherent(pcs):
            return True
        if self._cache.maps.indexed(OWNER, pcs.metadata.uid):
            return True
        return bool(self._cache.gangs.indexed(MAPPED, pcs.metadata.uid))

    def missing(self, pcs: PodCliqueSet) -> bool:
        """Whether the gangs of a set come from maps, and a replica has none."""
        return self.used_by(pcs) and any(self.at(pcs, index) is None for index in range(pcs.spec.replicas))

    def gangs(self, pcs: PodCliqueSet, index: int) -> list[PodGang]:
        """The gangs of a replica that are not terminating. Those of other implementations may not name their replica
        (COH-271)."""
        name = names.replica(pcs.metadata.name, index)
        found = self._cache.gangs.indexed(REPLICA, key_text(pcs.metadata.namespace, name))
        unnamed = [
            gang
            for gang in self._cache.gangs.indexed(NO_REPLICA, pcs.metadata.uid)
            if gang.metadata.name == name or gang.metadata.name.startswith(f"{name}-")
        ]
        return [
            gang
            for gang in (*found, *unnamed)
            if gang.metadata.deletion_timestamp is None
            and (controller := gang.metadata.controller) is not None
            and controller.uid == pcs.metadata.uid
        ]

    def at(self, pcs: PodCliqueSet, index: int) -> ReplicaMap | None:
        """The map of a replica of a set."""
        return self._at(pcs.metadata.namespace, names.gang_map(pcs.metadata.name, index))

    def of(self, item: Object) -> ReplicaMap | None:
        """The map of the replica that an object belongs to."""
        meta = item.metadata
        index = meta.label(labels.REPLICA_INDEX)
        return self._at(meta.namespace, f"{meta.label(labels.PART_OF)}-{index}") if index else None

    def _at(self, namespace: str, name: str) -> ReplicaMap | None:
        found = self._cache.maps.get(namespace, name)
        if found is None or found.metadata.deletion_timestamp is not None:
            self._read.pop((namespace, name), None)
            return None
        version, known = found.metadata.resource_version or "", self._read.get((namespace, name))
        if known is not None and known[0] == version:
            return known[1]
        held = maps.read(found)
        self._read[namespace, name] = version, held
        return held

    def templates(self, pcs: PodCliqueSet) -> Templates:
        """The present templates of a set, and the generation in its status."""
        return maps.templates(pcs, update_progress.generation(pcs), self.policy)

    def begun(self, pcs: PodCliqueSet, index: int, template: str) -> bool:
        """Whether a standalone clique of a replica may get the present template: in a coherent update not before the
        first sub-step of the replica, as pods of the old version may still have to be replaced."""
        held = self.at(pcs, index)
        if not update.coherent(pcs):
            return True
        if held is None:
            return False
        key, present = Key(Kind.CLIQUE, template), self.templates(pcs)
        entries = [entry for entry in held.layout if entry.count(key)]
        return not entries or any(maps.settled(pcs, held, entry, key, present) for entry in entries)

    def refills(self, pcs: PodCliqueSet) -> bool:
        """Whether any lost pod is replaced by one of the present template. Only during a coherent update it is not, nor
        when one is about to begin; then a gang gets no pods of another version than its own (COH-210)."""
        if not update.coherent(pcs):
            return True
        return not update.running(pcs) and revisions.of_set(pcs, self.policy).has(update_progress.generation(pcs))

    def may_start(self, pcs: PodCliqueSet, held: ReplicaMap, gang: str) -> bool:
        """Whether the gangs that a gang depends on have been scheduled (COH-090)."""
        entry, namespace = held.entry(gang), pcs.metadata.namespace
        if entry is None:
            return False
        given_up = maps.abandoned(pcs, held, entry, self.templates(pcs))
        return map_gangs.may_start(held.anchors, entry, lambda name: self._cache.gangs.get(namespace, name), given_up)

    def moved(self, pcs: PodCliqueSet, clique: PodClique) -> bool:
        """Whether a clique of a scaling group names a gang that does not hold it according to the map: it is about to
        be deleted, and gets no pods any more (COH-I11)."""
        if not self.used_by(pcs):
            return False
        held, gang = self.of(clique), clique.metadata.label(labels.PODGANG)
        group = children.group_config(
            pcs, clique.metadata.label(labels.REPLICA_INDEX), clique.metadata.label(labels.SCALING_GROUP)
        )
        index = clique.metadata.label(labels.SCALING_GROUP_REPLICA_INDEX)
        return held is None or group is None or held.gang_of(group.name, int(index)) != gang

    def entry_of(self, gang: PodGang) -> Entry | None:
        """The entry of a gang; None if it has none."""
        held = self.of(gang)
        return None if held is None else held.entry(gang.metadata.name)

    def components(self, pcs: PodCliqueSet, index: int) -> list[Component]:
        """The components of a replica, with the replicas of its objects or, if there are none yet, of the template."""
        found: list[Component] = []
        clique = self._cache.child(self._cache.cliques, pcs)
        group = self._cache.child(self._cache.groups, pcs)
        for template in children.standalone_templates(pcs):
            own = clique(names.clique(pcs.metadata.name, index, template.name))
            budget = template.rolling_update.max_unavailable if template.rolling_update else None
            replicas = template.spec.replicas if own is None else own.spec.replicas
            found.append(components.clique(template.name, replicas, template.spec.minimum, budget))
        for config in children.group_configs(pcs):
            live = group(names.scaling_group(pcs.metadata.name, index, config.name))
            budget = config.rolling_update.max_unavailable if config.rolling_update else None
            replicas = config.replicas if live is None else live.spec.replicas
            found.append(components.group(config.name, replicas, config.min_available, budget))
        return found

    def observed(self, pcs: PodCliqueSet, index: int) -> Observed:
        """What there is of a replica."""
        present = self.templates(pcs)
        clique = self._cache.child(self._cache.cliques, pcs)
        group = self._cache.child(self._cache.groups, pcs)
        standalone = {}
        for template in children.standalone_templates(pcs):
            own = clique(names.clique(pcs.metadata.name, index, template.name))
            standalone[template.name] = [] if own is None else self._pods(own, present.revisions[template.name])
        replicas = {}
        for config in children.group_configs(pcs):
            live = group(names.scaling_group(pcs.metadata.name, index, config.name))
            replicas[config.name] = {} if live is None else self._replicas(pcs, live)
        return Observed(
            standalone,
            replicas,
            frozenset(gang.metadata.name for gang in self.gangs(pcs, index) if map_gangs.ever_ready(gang)),
            maps.same(pcs, held, present) if (held := self.at(pcs, index)) is not None else {},
        )

    def observed_pods(self, pcs: PodCliqueSet, clique: PodClique, template: CliqueTemplate) -> list[ObservedPod]:
        """The pods of a standalone clique."""
        return self._pods(clique, self.templates(pcs).revisions[template.name])

    def _pods(self, clique: PodClique, revision: Revision) -> list[ObservedPod]:
        return [
            ObservedPod(
                pod.metadata.name,
                pod.metadata.label(labels.PODGANG),
                pod.ready,
                revision.has(pod.metadata.label(labels.TEMPLATE_HASH)),
                pods.worth(pod, revision.hash),
            )
            for pod in self._cache.pods_of(clique)
            if pod.active
        ]

    def _replicas(self, pcs: PodCliqueSet, group: PodCliqueScalingGroup) -> dict[int, ObservedReplica]:
        present, found = self.templates(pcs), dict[int, list[PodClique]]()
        for member in self._cache.cliques.indexed(OWNER, group.metadata.uid):
            index = member.metadata.label(labels.SCALING_GROUP_REPLICA_INDEX)
            if member.metadata.deletion_timestamp is None and index.isdigit():
                found.setdefault(int(index), []).append(member)
        return {
            index: ObservedReplica(
                members[0].metadata.label(labels.PODGANG),
                len(members) == len(group.spec.clique_names)
                and all(update_group_replicas.serves(member, self._cache.pods_of(member)) for member in members),
                not any(
                    update_group_replicas.older_than(
                        present.revisions.get(member.metadata.name.removeprefix(f"{group.metadata.name}-{index}-")),
                        member,
                        self._cache.pods_of(member),
                    )
                    for member in members
                ),
            )
            for index, members in found.items()
        }

    def members_complete(self, pcs: PodCliqueSet, group: PodCliqueScalingGroup, held: ReplicaMap, name: str) -> bool:
        """Whether all replicas of a scaling group have the new version, in the gangs that should hold them, and enough
        of them are available."""
        found = self._replicas(pcs, group)
        available = sum(each.available for each in found.values())
        return (
            sorted(found) == list(range(group.spec.replicas))
            and all(each.current and held.gang_of(name, index) == each.gang for index, each in found.items())
            and available >= min(group.spec.min_available, group.spec.replicas)
        )

    def minimums(self, gang: PodGang) -> dict[str, int]:
        """Clique → how many of its pods have to be Ready for a gang to be Ready."""
        entry, pcs = self.entry_of(gang), self._cache.set_of(gang)
        if entry is None or pcs is None:
            return {group.name: group.min_replicas for group in gang.spec.podgroups}
        return map_gangs.ready_minimums(pcs, self.index_of(gang), entry)

    def expected(self, gang: PodGang) -> dict[str, int] | None:
        """Standalone clique → how many of its pods a gang holds; None for a gang that comes from no map."""
        entry, pcs = self.entry_of(gang), self._cache.set_of(gang)
        if entry is None or pcs is None:
            return None
        return map_gangs.standalone_pods(pcs, self.index_of(gang), entry)

    @staticmethod
    def index_of(item: PodGang | PodClique | PodCliqueScalingGroup) -> int:
        """The replica of the set that an object belongs to; -1 if it does not say."""
        index = item.metadata.label(labels.REPLICA_INDEX)
        return int(index) if index.isdigit() else -1
