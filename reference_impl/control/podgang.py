"""The PodGang reconciler: pod references and the condition Initialized (spec OBJ-410 to OBJ-434).

References are written when all pods exist, and are kept up to date from then on. The scheduler writes to the same list
of conditions, so every write has a resourceVersion precondition. Gangs that their set does not control are ignored.
"""

from __future__ import annotations

import time
from functools import partial

import msgspec

from kube.objects import Key
from reference_impl.api.models import PodClique, PodCliqueSet, PodGang, PodGangStatus, to_json
from reference_impl.api.pods import Pod
from reference_impl.control.cache import BY_GANG, Cache, object_key
from reference_impl.control.layouts import Layouts, index_of
from reference_impl.control.workload_api import GangPlans
from reference_impl.control.writer import Writer
from reference_impl.plan import conditions, gangs, ownership
from reference_impl.plan.coherent import conditions as gang_conditions
from reference_impl.plan.workload_api import planned
from reference_impl.runtime.clock import now

PATIENCE_SECONDS = 5.0
"""The time, in seconds, for which a gang may remain incomplete before its status reports this. An ordinary start is
faster, which saves the write."""


class GangReconciler:
    """Writes the pod references of one PodGang at a time, and whether the gang is complete."""

    def __init__(self, cache: Cache, writer: Writer, layouts: Layouts, plans: GangPlans) -> None:
        self._cache, self._writer, self._layouts, self._plans = cache, writer, layouts, plans
        self._incomplete_since: dict[Key, float] = {}

    async def reconcile(self, key: Key) -> float | None:
        """Reconcile one gang. Return the requeue delay in seconds, or None if no retry is needed."""
        gang = self._cache.gangs.get(*key)
        if gang is None or gang.metadata.deletion_timestamp is not None:
            self._incomplete_since.pop(key, None)
            return None
        pcs = self._cache.set_of(gang)
        if pcs is None or not ownership.owns(pcs, gang):
            self._incomplete_since.pop(key, None)
            return None
        if pcs.metadata.deletion_timestamp is not None:
            return None  # the gang is about to be garbage collected, and its pods are already being deleted
        members = self._members(gang, pcs)
        groups = gangs.groups_with_references(gang, None, members)
        complete = gangs.is_complete(gang, groups, partial(self._clique, gang), self._shares(pcs, gang))
        initialized = gangs.is_initialized(gang)
        if (complete or initialized) and groups != gang.spec.podgroups:
            await self._writer.patch(self._cache.gangs, gang, {"spec": {"podgroups": to_json(groups)}}, guard=True)
            gang = self._cache.gangs.get(*key) or gang
        if complete or initialized:
            self._incomplete_since.pop(key, None)
            if not initialized:
                await self._write_initialized(gang, is_complete=True)
            if gang_conditions.operator_writes(pcs, gang) or self._plans.serves(gang):
                await self._write_conditions(self._cache.gangs.get(*key) or gang, members)
            return None
        waited = time.monotonic() - self._incomplete_since.setdefault(key, time.monotonic())
        if waited < PATIENCE_SECONDS:
            return PATIENCE_SECONDS - waited
        await self._write_initialized(gang, is_complete=False)
        return None

    def _clique(self, gang: PodGang, name: str) -> PodClique | None:
        """Return a clique of a gang, with as many replicas as the gang may have now, or None if the clique does not
        exist."""
        clique = self._cache.cliques.get(gang.metadata.namespace, name)
        return None if clique is None else self._plans.possible_clique(gang, clique)

    def _shares(self, pcs: PodCliqueSet, gang: PodGang) -> dict[str, int]:
        """Return the number of pods of each standalone clique that the gang holds and may have now."""
        placement = self._layouts.placement_of(gang)
        placed_gang = placement.gangs.get(gang.metadata.name) if placement is not None else None
        if placed_gang is None:
            return {}
        shares = gangs.standalone_pods(pcs, index_of(gang), placed_gang)
        return {name: self._plans.possible_pods(gang, name, count) for name, count in shares.items()}

    def _members(self, gang: PodGang, pcs: PodCliqueSet) -> list[Pod]:
        """Return the pods of a gang that count for its conditions."""
        gang_pods: list[Pod] = self._cache.pods.indexed(BY_GANG, object_key(*gang.metadata.key))
        return gang_conditions.members(pcs, gang_pods, self._cache.has_owner)

    async def _write_conditions(self, gang: PodGang, members: list[Pod]) -> None:
        """Write the conditions Scheduled and Ready, and the times at which they became True (COH-086, COH-087). For
        gangs on kube-scheduler, which writes no such conditions, they also say why a gang cannot be mapped (WL-H21,
        WL-HD4)."""
        status = gang_conditions.status(gang, members, now())
        if (plan := self._plans.plan_of(gang)) is not None and plan.refusal:
            status = planned.with_refusal(status, plan.refusal)
        if status != gang.status:
            await self._writer.patch(self._cache.gangs, gang, {"status": to_json(status)}, status=True, guard=True)

    async def _write_initialized(self, gang: PodGang, *, is_complete: bool) -> None:
        """Write the condition Initialized and the initial phase. The scheduler's conditions are kept (OBJ-434)."""
        old = gang.status or PodGangStatus()
        condition = gangs.initialized_condition(is_complete, now())
        if (current := conditions.find(old.conditions, gangs.INITIALIZED)) and current.status == condition.status:
            return
        status = msgspec.structs.replace(
            old, phase=old.phase or "Pending", conditions=conditions.with_condition(old.conditions, condition)
        )
        await self._writer.patch(self._cache.gangs, gang, {"status": to_json(status)}, status=True, guard=True)
        if is_complete:
            self._writer.metrics.count_initialized_gang()
