"""The layouts of the replicas of sets that the reconcilers follow, and the observed state of each replica."""

from __future__ import annotations

from dataclasses import dataclass

from kube.objects import Key as ObjectKey
from kube.objects import Object
from reference_impl.api.models import PodClique, PodCliqueScalingGroup, PodCliqueSet, PodGang
from reference_impl.control.cache import BY_OWNER, BY_REPLICA, Cache, object_key
from reference_impl.plan import (
    children,
    components,
    gangs,
    labels,
    lines,
    maps,
    names,
    ownership,
    pods,
    update_group_replicas,
    update_progress,
)
from reference_impl.plan.coherent import update, versions
from reference_impl.plan.coherent.versions import Templates
from reference_impl.plan.components import Component, Key, Kind
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.layout import Entry, anchors
from reference_impl.plan.lines import MAPS, Line, Placement
from reference_impl.plan.maps import StoredMap
from reference_impl.plan.observed import Observed, ObservedPod, ObservedReplica
from reference_impl.plan.revisions import Revision


@dataclass(frozen=True)
class _CachedPlacement:
    """A placement with the source from which it was computed."""

    source: object
    placement: Placement
    stored: StoredMap | None = None


class Layouts:
    """The layouts of all replicas: which gang holds which members."""

    def __init__(self, cache: Cache, policy: Policy = STANDARD, line: Line = MAPS) -> None:
        self._cache, self.policy, self.line = cache, policy, line
        self._placements: dict[ObjectKey, _CachedPlacement] = {}

    def placement_of(self, item: Object) -> Placement | None:
        """Return the placement of the replica that an object belongs to, or None if it is not known (yet)."""
        pcs, index = self._cache.set_of(item), index_of(item)
        return None if pcs is None or index < 0 else self.placement_at(pcs, index)

    def placement_at(self, pcs: PodCliqueSet, index: int) -> Placement | None:
        """Return the placement of a replica of a set, or None if it is not known (yet). A stored layout without an
        anchor is not followed, because it is about to be repaired."""
        cached = self._stored(pcs, index) if self.line.stores_layouts else self._derived(pcs, index)
        if cached is None or (cached.placement.layout and not anchors(cached.placement.layout)):
            return None
        return cached.placement

    def stored(self, pcs: PodCliqueSet, index: int) -> StoredMap | None:
        """Return the content of a replica's PodGangMap, or None if there is no map."""
        cached = self._stored(pcs, index)
        return None if cached is None else cached.stored

    def _stored(self, pcs: PodCliqueSet, index: int) -> _CachedPlacement | None:
        key = pcs.metadata.namespace, names.gang_map(pcs.metadata.name, index)
        gang_map = self._cache.maps.get(*key)
        if gang_map is None or gang_map.metadata.deletion_timestamp is not None:
            self._placements.pop(key, None)
            return None
        cached = self._placements.get(key)
        if cached is None or cached.source != gang_map.metadata.resource_version:
            stored = maps.read(gang_map)
            placement = Placement(self.line, key[1], stored.layout)
            cached = self._placements[key] = _CachedPlacement(gang_map.metadata.resource_version, placement, stored)
        return cached

    def _derived(self, pcs: PodCliqueSet, index: int) -> _CachedPlacement:
        key, members = (pcs.metadata.namespace, names.replica(pcs.metadata.name, index)), self.components(pcs, index)
        cached = self._placements.get(key)
        if cached is None or cached.source != members:
            cached = self._placements[key] = _CachedPlacement(
                members, Placement(self.line, key[1], lines.derived_layout(members, ""))
            )
        return cached

    def gangs(self, pcs: PodCliqueSet, index: int) -> list[PodGang]:
        """Return the gangs of a replica that are not terminating."""
        replica = object_key(pcs.metadata.namespace, names.replica(pcs.metadata.name, index))
        existing: list[PodGang] = self._cache.gangs.indexed(BY_REPLICA, replica)
        return [gang for gang in existing if gang.metadata.deletion_timestamp is None and ownership.owns(pcs, gang)]

    def components(self, pcs: PodCliqueSet, index: int) -> list[Component]:
        """Return the components of a replica, with `replicas` from the existing objects or, for objects that do not
        exist yet, from the template."""
        result: list[Component] = []
        clique = self._cache.child_finder(self._cache.cliques, pcs)
        group = self._cache.child_finder(self._cache.groups, pcs)
        for template in children.standalone_templates(pcs):
            current_clique = clique(names.clique(pcs.metadata.name, index, template.name))
            budget = template.rolling_update.max_unavailable if template.rolling_update else None
            replicas = template.spec.replicas if current_clique is None else current_clique.spec.replicas
            result.append(components.clique(template.name, replicas, template.spec.minimum, budget))
        for config in children.group_configs(pcs):
            current_group = group(names.scaling_group(pcs.metadata.name, index, config.name))
            budget = config.rolling_update.max_unavailable if config.rolling_update else None
            replicas = config.replicas if current_group is None else current_group.spec.replicas
            result.append(components.group(config.name, replicas, config.min_available, budget))
        return result

    def may_update(self, pcs: PodCliqueSet, index: int, template: str) -> bool:
        """Return whether a standalone clique of a replica may get the current template. In a coherent update, the
        clique keeps the old template until the first sub-step that moves its pods, because pods of the old version may
        still have to be replaced."""
        if not update.is_coherent(pcs):
            return True
        if (stored := self.stored(pcs, index)) is None:
            return False
        key, current = Key(Kind.CLIQUE, template), self.templates(pcs)
        entries = [entry for entry in stored.layout if entry.count(key)]
        return not entries or any(versions.has_current_templates(pcs, stored, entry, key, current) for entry in entries)

    def may_refill(self, pcs: PodCliqueSet, entry: Entry, item: PodClique) -> bool:
        """Return whether pods of a clique may be created in a gang of an entry. In a coherent update, pods must not be
        created if their version would differ from the version of the gang's other pods (COH-210). A scaling group's
        clique belongs to a single gang."""
        if item.metadata.label(labels.SCALING_GROUP) or update.may_refill_all(pcs, self.policy):
            return True
        template, stored = children.clique_template(pcs, item), self.stored(pcs, index_of(item))
        if template is None or stored is None:
            return False
        template_hash = item.metadata.label(labels.TEMPLATE_HASH)
        return versions.may_create_pods(stored, entry, template.name, template_hash, self.templates(pcs))

    def may_recreate(self, pcs: PodCliqueSet, index: int, entry: Entry, group: str) -> bool:
        """Return whether cliques of a scaling group, which get the current template, may be created in a gang of an
        entry."""
        if update.may_refill_all(pcs, self.policy):
            return True
        stored, key = self.stored(pcs, index), Key(Kind.GROUP, group)
        return stored is not None and versions.has_current_templates(pcs, stored, entry, key, self.templates(pcs))

    def templates(self, pcs: PodCliqueSet) -> Templates:
        """Return the current templates of a set, with the generation in its status."""
        return versions.templates(pcs, update_progress.generation(pcs), self.policy)

    def observed(self, pcs: PodCliqueSet, index: int) -> Observed:
        """Return the observed state of a replica."""
        current, stored = self.templates(pcs), self.stored(pcs, index)
        replica = names.replica(pcs.metadata.name, index)
        clique = self._cache.child_finder(self._cache.cliques, pcs)
        group = self._cache.child_finder(self._cache.groups, pcs)
        standalone = {}
        for template in children.standalone_templates(pcs):
            current_clique = clique(names.clique(pcs.metadata.name, index, template.name))
            standalone[template.name] = (
                [] if current_clique is None else self._pods(replica, current_clique, current.revisions[template.name])
            )
        replicas = {}
        for config in children.group_configs(pcs):
            current_group = group(names.scaling_group(pcs.metadata.name, index, config.name))
            replicas[config.name] = {} if current_group is None else self._replicas(pcs, replica, current_group)
        return Observed(
            standalone,
            replicas,
            self._entries_once_ready(pcs, index),
            versions.current_generations(pcs, stored, current) if stored is not None else {},
        )

    def _entries_once_ready(self, pcs: PodCliqueSet, index: int) -> frozenset[str]:
        ready = {gang.metadata.name for gang in self.gangs(pcs, index) if gangs.has_been_ready(gang)}
        placement = self.placement_at(pcs, index)
        entries: dict[str, bool] = {}
        for name, gang in placement.gangs.items() if placement is not None else ():
            entries[gang.entry.key] = entries.get(gang.entry.key, True) and name in ready
        return frozenset(key for key, all_ready in entries.items() if all_ready)

    def _pods(self, replica: str, clique: PodClique, revision: Revision) -> list[ObservedPod]:
        return [
            ObservedPod(
                pod.metadata.name,
                entry_of(replica, pod),
                pod.ready,
                revision.has(pod.metadata.label(labels.TEMPLATE_HASH)),
                pods.deletion_rank(pod, revision.hash),
            )
            for pod in self._cache.pods_of(clique)
            if pod.active
        ]

    def _replicas(self, pcs: PodCliqueSet, replica: str, group: PodCliqueScalingGroup) -> dict[int, ObservedReplica]:
        current, members_by_index = self.templates(pcs), dict[int, list[PodClique]]()
        for member in self._cache.cliques.indexed(BY_OWNER, group.metadata.uid):
            index = member.metadata.label(labels.SCALING_GROUP_REPLICA_INDEX)
            if member.metadata.deletion_timestamp is None and index.isdigit():
                members_by_index.setdefault(int(index), []).append(member)
        return {
            index: ObservedReplica(
                entry_of(replica, members[0]),
                len(members) == len(group.spec.clique_names)
                and all(
                    update_group_replicas.has_enough_ready_pods(member, self._cache.pods_of(member))
                    for member in members
                ),
                not any(
                    update_group_replicas.is_older(
                        current.revisions.get(member.metadata.name.removeprefix(f"{group.metadata.name}-{index}-")),
                        member,
                        self._cache.pods_of(member),
                    )
                    for member in members
                ),
            )
            for index, members in members_by_index.items()
        }

    def members_complete(self, pcs: PodCliqueSet, group: PodCliqueScalingGroup, config: str) -> bool:
        """Return whether all replicas of a scaling group have the new version and are in the gangs that should hold
        them, and enough of them are available."""
        index, placement = index_of(group), self.placement_of(group)
        replicas = self._replicas(pcs, names.replica(pcs.metadata.name, index), group)
        entries = {
            j: placement.entry_key(gang)
            for j in replicas
            if placement is not None and (gang := placement.gang_of(config, j)) is not None
        }
        available = sum(replica.available for replica in replicas.values())
        return (
            sorted(replicas) == list(range(group.spec.replicas))
            and all(replica.current and entries.get(j) == replica.entry for j, replica in replicas.items())
            and available >= min(group.spec.min_available, group.spec.replicas)
        )

    def cliques(self, pcs: PodCliqueSet, index: int) -> list[PodClique]:
        """Return the cliques of a replica: standalone cliques and cliques of scaling groups."""
        replica = object_key(pcs.metadata.namespace, names.replica(pcs.metadata.name, index))
        return list(self._cache.cliques.indexed(BY_REPLICA, replica))


def index_of(item: Object) -> int:
    """Return the index of the set's replica that an object belongs to, or -1 if it is unknown."""
    index = ownership.replica_index(item)
    return int(index) if index.isdigit() else -1


def entry_of(replica: str, item: Object) -> str:
    """Return the entry of the gang that a pod or clique names, or the name of the gang if it contains no epoch."""
    gang = item.metadata.label(labels.PODGANG)
    return lines.epoch_of(replica, gang) or gang
