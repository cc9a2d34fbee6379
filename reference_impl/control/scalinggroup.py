"""The PodCliqueScalingGroup reconciler: resource claims, the cliques of all replicas, status (spec OBJ-320, OBJ-321,
OBJ-760 to OBJ-772)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kube.errors import ApiError
from kube.objects import Key as ObjectKey
from reference_impl.api.models import (
    SCALING_GROUPS,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
)
from reference_impl.control.cache import BY_OWNER, Cache
from reference_impl.control.features import NO_FEATURES, Features
from reference_impl.control.last_errors import LastErrors, shortest_wait
from reference_impl.control.layouts import Layouts, index_of
from reference_impl.control.migration import HashMigration
from reference_impl.control.ownership import Adoption
from reference_impl.control.termination import Termination
from reference_impl.control.update_watch import UpdateWatch
from reference_impl.control.writer import Writer, await_all
from reference_impl.plan import (
    children,
    claims,
    conditions,
    desired,
    labels,
    members,
    statuses,
    template_drift,
    update_condition,
    update_progress,
)
from reference_impl.plan.claims import PlannedClaim
from reference_impl.plan.coherent import component_steps
from reference_impl.plan.desired import DesiredMembers
from reference_impl.plan.lines import Placement
from reference_impl.plan.reconcile_error import ReconcileError
from reference_impl.runtime.clock import now


class GroupReconciler:
    """Brings one scaling group at a time to its desired state."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        migration: HashMigration,
        layouts: Layouts,
        adoption: Adoption,
        features: Features = NO_FEATURES,
    ) -> None:
        self._adoption = adoption
        self._cache, self._writer, self._layouts, self._features = cache, writer, layouts, features
        self._migration, self._policy = migration, layouts.policy
        self._termination = Termination(cache, writer)
        self._watch = UpdateWatch()
        self.last_errors = LastErrors(cache.groups, writer)

    async def reconcile(self, key: ObjectKey) -> float | None:
        """Reconcile one scaling group. Return the requeue delay in seconds, or None if no retry is needed."""
        group = self._cache.groups.get(*key)
        if group is None:
            self._watch.forget(key)
            return None
        if group.metadata.deletion_timestamp is not None:
            cliques = self._cache.cliques
            members = cliques.indexed(BY_OWNER, group.metadata.uid)
            await self._writer.release(self._cache.groups, group, labels.SCALING_GROUP_FINALIZER, cliques, members)
            return None
        await self._adoption.adopt_for_group(group)
        pcs, placement = self._cache.set_of(group), self._layouts.placement_of(group)
        if pcs is not None and not self._migration.is_migrated(pcs, group):
            return None
        problem: ReconcileError | None = None
        wait: float | None = None
        if pcs is not None and pcs.metadata.deletion_timestamp is None:
            try:
                wait = await self._termination.terminate_in_group(pcs, group)
                if placement is not None:
                    await self._advance_update(pcs, group)
                    await self._sync_cliques(pcs, self._cache.groups.get(*key) or group, placement)
            except ReconcileError as caught:
                problem = caught
            except ApiError as error:
                await self.last_errors.report_refusal(key, "ERR_SYNC_PODCLIQUES", error)
                raise
        wait = shortest_wait(wait, await self._write_status(self._cache.groups.get(*key) or group, pcs))
        return shortest_wait(wait, await self.last_errors.report(key, problem))

    async def _advance_update(self, pcs: PodCliqueSet, group: PodCliqueScalingGroup) -> None:
        """Take the next step of an update. The progress is written before anything is deleted, and deletions precede
        creations, so that a partly deleted replica is never mistaken for a new one."""
        if update_progress.set_progress(pcs) is None:
            return
        group = self._cache.groups.get(*group.metadata.key) or group
        cliques = self._cache.cliques
        step = component_steps.group_step(
            pcs,
            group,
            self._cache.child_finder(cliques, group),
            self._cache.pods_of,
            lambda config: self._layouts.members_complete(pcs, group, config),
            now(),
            self._policy,
        )
        if step.progress is not None and step.progress != (group.status.update_progress if group.status else None):
            body = {"status": {"updateProgress": msgspec.to_builtins(step.progress)}}
            await self._writer.patch(self._cache.groups, group, body, status=True)
        for wave in step.deletion_waves:
            await await_all(self._writer.delete(cliques, clique) for clique in wave)

    async def _sync_cliques(self, pcs: PodCliqueSet, group: PodCliqueScalingGroup, placement: Placement) -> None:
        """Create missing cliques, and delete the cliques of surplus replicas and of replicas that have moved to another
        gang."""
        config = children.group_config(pcs, group.metadata.label(labels.REPLICA_INDEX), group.metadata.name)
        if config is None:
            return
        indices = [j for j in range(group.spec.replicas) if placement.gang_of(config.name, j) is not None]
        existing = {
            clique.metadata.name: clique for clique in self._cache.cliques.indexed(BY_OWNER, group.metadata.uid)
        }
        in_place = (
            {}
            if update_progress.is_on_delete(pcs)
            else members.replicas_in_place(placement, config.name, indices, existing, group)
        )
        target = desired.desired_members(
            pcs,
            group,
            config,
            [j for j in indices if j not in in_place],
            placement,
            self._layouts.line,
            channels=self._features.mnnvl,
            policy=self._policy,
        )
        if target.claims is not None:
            await self._sync_claims(pcs, group, target.claims)
        complete_cliques = {name for clique_names in in_place.values() for name in clique_names}
        existing = {name: clique for name, clique in existing.items() if name not in complete_cliques}

        def may_create(manifest: children.Manifest) -> bool:
            entry = placement.gangs[members.gang_of(manifest)].entry
            return self._layouts.may_recreate(pcs, index_of(group), entry, config.name)

        difference = members.difference(target.cliques, existing, may_create)
        outdated_cliques = self._outdated_cliques(pcs, existing, target)
        # A layout that does not hold every replica is about to be renewed, so no cliques are deleted because of it.
        surplus = difference.surplus if len(indices) == group.spec.replicas else []
        await await_all(self._writer.delete(self._cache.cliques, clique) for clique in surplus)
        await await_all(
            [
                *(self._writer.create(self._cache.cliques, manifest) for manifest in difference.missing),
                *(
                    self._writer.renew(self._cache.cliques, existing[clique_name], target.cliques[clique_name])
                    for clique_name in outdated_cliques
                ),
            ]
        )

    def _outdated_cliques(self, pcs: PodCliqueSet, existing: dict[str, PodClique], target: DesiredMembers) -> list[str]:
        """Return the cliques that get the current template in place. This happens only with the strategy OnDelete
        (CHG-OD-01). With other strategies, an update recreates the cliques."""
        if not update_progress.is_on_delete(pcs):
            return []
        current = {
            name: update_progress.revision(pcs, clique, self._policy)
            for name, clique in existing.items()
            if name in target.cliques
        }
        return [
            name
            for name, revision in current.items()
            if revision is not None and template_drift.is_outdated(existing[name], revision)
        ]

    async def _sync_claims(
        self, pcs: PodCliqueSet, group: PodCliqueScalingGroup, planned: Iterable[PlannedClaim]
    ) -> None:
        """Create the resource claims that the scaling group owns, and delete the claims of removed replicas."""
        owner = children.owner_reference(SCALING_GROUPS.api_version, "PodCliqueScalingGroup", group.metadata)
        manifests = [
            claims.manifest(pcs, claim, claims.claim_spec(pcs, claim.sharing, self._cache.claim_spec), owner)
            for claim in planned
        ]
        await self._writer.sync(self._cache.claims, manifests, self._cache.claims.indexed(BY_OWNER, group.metadata.uid))

    async def _write_status(self, group: PodCliqueScalingGroup, pcs: PodCliqueSet | None) -> float | None:
        """Write the status if it differs. Return the number of seconds after which an update would count as stuck."""
        status = statuses.group_status(group, pcs, self._cache.child_finder(self._cache.cliques, group), now())
        index = group.metadata.label(labels.REPLICA_INDEX)
        config = children.group_config(pcs, index, group.metadata.name) if pcs is not None else None
        deadline = update_condition.progress_deadline(config.rolling_update if config is not None else None)
        state = status.updated_replicas, status.available_replicas, update_progress.generation(pcs) if pcs else ""
        seconds_until_stuck = self._watch.seconds_until_stuck(group, state, deadline)
        condition = update_condition.component_condition(group, seconds_until_stuck == 0, now())
        status.conditions = conditions.with_condition(status.conditions, condition)
        # The write has a resourceVersion precondition, because gang termination also writes to the list of conditions.
        await self._writer.write_status(self._cache.groups, group, status, guard=True)
        previously_scheduled = group.status.scheduled_replicas if group.status else 0
        if previously_scheduled and not status.scheduled_replicas:
            note = f"All scheduled replicas lost (was {previously_scheduled})."
            await self._writer.warn(SCALING_GROUPS, group, statuses.ALL_REPLICAS_LOST, note)
        return seconds_until_stuck or None
