"""The PodCliqueScalingGroup reconciler: resource claims, the cliques of all replicas, status (spec OBJ-320, OBJ-321,
OBJ-760 to OBJ-772)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from kube.errors import ApiError
from kube.objects import Key as ObjectKey
from reference_impl.api.models import SCALING_GROUPS, PodClique, PodCliqueScalingGroup, PodCliqueSet
from reference_impl.control.cache import OWNER, Cache
from reference_impl.control.features import NO_FEATURES, Features
from reference_impl.control.gang_maps import GangMaps
from reference_impl.control.last_errors import LastErrors, earliest
from reference_impl.control.migration import HashMigration
from reference_impl.control.termination import Termination
from reference_impl.control.writer import Writer, together
from reference_impl.plan import (
    children,
    claims,
    desired,
    labels,
    names,
    statuses,
    template_drift,
    update_group_replicas,
    update_progress,
)
from reference_impl.plan.claims import PlannedClaim
from reference_impl.plan.coherent import layout, maps, steady, update
from reference_impl.plan.coherent import members as map_members
from reference_impl.plan.coherent.layout import Key, Kind
from reference_impl.plan.coherent.maps import ReplicaMap
from reference_impl.plan.desired import DesiredMembers
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.reconcile_error import ReconcileError
from reference_impl.runtime.clock import now


class GroupReconciler:
    """Brings one scaling group at a time to its desired state."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        migration: HashMigration,
        features: Features = NO_FEATURES,
        policy: Policy = STANDARD,
        *,
        held: GangMaps | None = None,
    ) -> None:
        self._maps = held or GangMaps(cache, policy)
        self._cache, self._writer, self._features = cache, writer, features
        self._migration, self._policy = migration, policy
        self._termination = Termination(cache, writer)
        self.last_errors = LastErrors(cache.groups, writer)

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Reconcile one scaling group; returns after how many seconds to repeat it, None for never."""
        group = self._cache.groups.get(*key)
        if group is None:
            return None
        if group.metadata.deletion_timestamp is not None:
            cliques = self._cache.cliques
            members = cliques.indexed(OWNER, group.metadata.uid)
            await self._writer.release(self._cache.groups, group, labels.SCALING_GROUP_FINALIZER, cliques, members)
            return None
        pcs = self._cache.set_of(group)
        if pcs is not None and not self._migration.settled(pcs, group):
            return None
        problem: ReconcileError | None = None
        wait: float | None = None
        if pcs is not None and pcs.metadata.deletion_timestamp is None:
            try:
                wait = await self._termination.in_group(pcs, group)
                if self._maps.used_by(pcs):
                    await self._by_map(pcs, group)
                else:
                    await self._update(pcs, group)
                    await self._members(pcs, group)
            except ReconcileError as caught:
                problem = caught
            except ApiError as error:
                await self.last_errors.refused(key, "ERR_SYNC_PODCLIQUES", error)
                raise
        await self._status(self._cache.groups.get(*key) or group, pcs)
        return earliest(wait, await self.last_errors.tell(key, problem))

    async def _update(self, pcs: PodCliqueSet, group: PodCliqueScalingGroup) -> None:
        """Take the next step of an update. The progress is written before anything is deleted, and deletions precede
        creations, so that a partly deleted replica is never mistaken for a new one."""
        if update_progress.of_set(pcs) is None:
            return
        group = self._cache.groups.get(*group.metadata.key) or group
        cliques = self._cache.cliques
        step = update_group_replicas.step(
            pcs, group, self._cache.child(cliques, group), self._cache.pods_of, now(), self._policy
        )
        if step.progress is not None and step.progress != (group.status.update_progress if group.status else None):
            body = {"status": {"updateProgress": msgspec.to_builtins(step.progress)}}
            await self._writer.patch(self._cache.groups, group, body, status=True)
        for wave in step.waves:
            await together(self._writer.delete(cliques, clique) for clique in wave)

    async def _members(self, pcs: PodCliqueSet, group: PodCliqueScalingGroup) -> None:
        """Create the missing cliques of all replicas, base and scaled, and delete those of surplus replicas."""
        target = desired.of_group(pcs, group, channels=self._features.mnnvl, policy=self._policy)
        if target is None:
            return
        if target.claims is not None:
            await self._claims(pcs, group, target.claims)
        present = {clique.metadata.name: clique for clique in self._cache.cliques.indexed(OWNER, group.metadata.uid)}
        renewed = self._renewed(pcs, present, target)
        await together(
            [
                *(self._writer.create(self._cache.cliques, manifest) for manifest in target.missing(present)),
                *(self._writer.renew(self._cache.cliques, present[name], target.cliques[name]) for name in renewed),
                *(self._writer.delete(self._cache.cliques, clique) for clique in target.surplus(present)),
            ]
        )

    async def _by_map(self, pcs: PodCliqueSet, group: PodCliqueScalingGroup) -> None:
        """Make the cliques follow the PodGangMap. Without the map the group is left alone."""
        held, name = self._maps.of(group), template_name(pcs, group)
        if held is None or name is None:
            return
        if not update.coherent(pcs):
            await self._update(pcs, group)
        await self._follow(pcs, self._cache.groups.get(*group.metadata.key) or group, held, name)
        placed = self._placed(pcs, self._cache.groups.get(*group.metadata.key) or group, held, name)
        present = {clique.metadata.name: clique for clique in self._cache.cliques.indexed(OWNER, group.metadata.uid)}
        settled = {} if update_progress.on_delete(pcs) else map_members.in_place(placed, present, group)
        moving = {index: entry for index, entry in placed.items() if index not in settled}
        target = desired.of_group(pcs, group, channels=self._features.mnnvl, policy=self._policy, mapped=moving)
        if target is None:
            return
        if target.claims is not None:
            await self._claims(pcs, group, target.claims)
        kept = {name for own in settled.values() for name in own}
        present = {name: clique for name, clique in present.items() if name not in kept}
        templates = self._maps.templates(pcs)

        def may_create(manifest: children.Manifest) -> bool:
            entry = held.entry(map_members.gang_of(manifest))
            key = Key(Kind.GROUP, name)
            if entry is None:
                return False
            return maps.settled(pcs, held, entry, key, templates) or self._maps.refills(pcs)

        found = map_members.difference(target.cliques, present, may_create)
        renewed = self._renewed(pcs, present, target)
        # A map that does not hold each replica once is about to be rebuilt or repaired: nothing is deleted for it.
        whole = sorted(placed) == list(range(group.spec.replicas))
        await together(
            [
                *(self._writer.delete(self._cache.cliques, clique) for clique in found.surplus if whole),
                *(self._writer.patch(self._cache.cliques, clique, change) for clique, change in found.relabelled),
            ]
        )
        await together(
            [
                *(self._writer.create(self._cache.cliques, manifest) for manifest in found.missing),
                *(self._writer.renew(self._cache.cliques, present[each], target.cliques[each]) for each in renewed),
            ]
        )

    def _placed(
        self, pcs: PodCliqueSet, group: PodCliqueScalingGroup, held: ReplicaMap, name: str
    ) -> dict[int, layout.Entry]:
        """Replica → its gang. Not those that a map holds twice, or in another gang than the status says, which decides
        between updates (COH-041, COH-I12): somebody has edited the map."""
        stored = layout.indices_of_group(held.layout, name)
        known = (group.status.pod_gang_mapping if group.status else None) or stored
        decided = stored if update.running(pcs) else known
        twice = Counter(index for own in stored.values() for index in own)
        return {
            index: entry
            for entry in held.layout
            for index in entry.groups.get(name, ())
            if twice[index] == 1 and index in decided.get(entry.name, ())
        }

    async def _follow(self, pcs: PodCliqueSet, group: PodCliqueScalingGroup, held: ReplicaMap, name: str) -> None:
        """Write which gangs hold which replicas, and the progress of a coherent update. While an update is running, the
        gangs are those of the map; else those of the status, which follow the replicas (COH-041)."""
        status = group.status
        mapping, old = self._mapping(pcs, group, held, name), (status.pod_gang_mapping if status else None) or {}
        complete = self._maps.members_complete(pcs, group, held, name)
        progress = update.of_group(pcs, group, complete, now())
        body: dict[str, Any] = {}
        if mapping != old:
            body["podGangMapping"] = {**dict.fromkeys(old), **mapping}
        if progress is not None and progress != (status.update_progress if status else None):
            body["updateProgress"] = msgspec.to_builtins(progress)
        if body:
            await self._writer.patch(self._cache.groups, group, {"status": body}, status=True)

    def _mapping(
        self, pcs: PodCliqueSet, group: PodCliqueScalingGroup, held: ReplicaMap, name: str
    ) -> dict[str, list[int]]:
        stored = {gang: list(own) for gang, own in layout.indices_of_group(held.layout, name).items()}
        if update.running(pcs):
            return stored
        known = (group.status.pod_gang_mapping if group.status else None) or stored
        indices = sorted(index for own in known.values() for index in own)
        if indices == list(range(group.spec.replicas)):
            return {gang: sorted(own) for gang, own in known.items()}
        prefix = names.replica(pcs.metadata.name, self._maps.index_of(group))

        def take(count: int) -> list[str]:
            return self._maps.names.take(prefix, count, (entry.name for entry in held.layout))

        return {gang: list(own) for gang, own in steady.scaled_group(known, group.spec.replicas, take).items()}

    def _renewed(self, pcs: PodCliqueSet, present: dict[str, PodClique], target: DesiredMembers) -> list[str]:
        """The cliques that are given the present template in place: only by OnDelete (CHG-OD-01), else an update
        recreates them."""
        if not update_progress.on_delete(pcs):
            return []
        current = {
            name: update_progress.revision(pcs, clique, self._policy)
            for name, clique in present.items()
            if name in target.cliques
        }
        return [name for name, of in current.items() if of is not None and template_drift.outdated(present[name], of)]

    async def _claims(self, pcs: PodCliqueSet, group: PodCliqueScalingGroup, planned: Iterable[PlannedClaim]) -> None:
        """Create the resource claims of the group's own level, and delete those of removed replicas."""
        owner = children.owner_reference(SCALING_GROUPS.api_version, "PodCliqueScalingGroup", group.metadata)
        made = [
            claims.manifest(pcs, claim, claims.claim_spec(pcs, claim.sharing, self._cache.claim_spec), owner)
            for claim in planned
        ]
        await self._writer.settle(self._cache.claims, made, self._cache.claims.indexed(OWNER, group.metadata.uid))

    async def _status(self, group: PodCliqueScalingGroup, pcs: PodCliqueSet | None) -> None:
        status = statuses.group_status(group, pcs, self._cache.child(self._cache.cliques, group), now())
        # Guarded: gang termination writes to the list of conditions as well.
        await self._writer.status(self._cache.groups, group, status, guard=True)
        lost = group.status.scheduled_replicas if group.status else 0
        if lost and not status.scheduled_replicas:
            note = f"All scheduled replicas lost (was {lost})."
            await self._writer.warn(SCALING_GROUPS, group, statuses.ALL_LOST, note)


def template_name(pcs: PodCliqueSet, group: PodCliqueScalingGroup) -> str | None:
    """The name of the group in the set's template."""
    config = children.group_config(pcs, group.metadata.label(labels.REPLICA_INDEX), group.metadata.name)
    return None if config is None else config.name
