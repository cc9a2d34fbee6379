"""The PodClique reconciler: resource claims, pods, scheduling gates, status (spec OBJ-340, OBJ-501 to OBJ-508, OBJ-730
to OBJ-748)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import msgspec

from kube.errors import ApiError
from kube.objects import Key
from reference_impl.api.models import (
    PODCLIQUES,
    CliqueTemplate,
    PodClique,
    PodCliqueSet,
    PodCliqueStatus,
    PodGang,
)
from reference_impl.api.pods import Pod
from reference_impl.control.cache import BY_OWNER, Cache
from reference_impl.control.last_errors import LastErrors
from reference_impl.control.layouts import Layouts, index_of
from reference_impl.control.migration import HashMigration
from reference_impl.control.ownership import Adoption
from reference_impl.control.update_watch import UpdateWatch
from reference_impl.control.workload_api import GangPlans
from reference_impl.control.writer import Writer, await_all
from reference_impl.plan import (
    children,
    claims,
    conditions,
    gates,
    kai,
    labels,
    names,
    pods,
    startup,
    statuses,
    update_clique_pods,
    update_condition,
    update_progress,
)
from reference_impl.plan.children import Manifest
from reference_impl.plan.coherent import component_steps
from reference_impl.plan.lines import Placement
from reference_impl.plan.reconcile_error import ReconcileError
from reference_impl.runtime.clock import now

STATUS_SECONDS = 1.0
"""The delay, in seconds, of intermediate status writes of a clique, and the minimum interval between them. The final
status is written at once. Writing a status costs the API server about twice as much as creating a pod (`make
bench`)."""


@dataclass(frozen=True)
class CliqueContext:
    """A clique, its set, and the gangs of its replica."""

    pcs: PodCliqueSet
    clique: PodClique
    placement: Placement

    @property
    def index(self) -> int:
        """The index of the set's replica."""
        return index_of(self.clique)

    @property
    def replica(self) -> str:
        """The name of the replica, `<set>-<index>`."""
        return names.replica(self.pcs.metadata.name, self.index)

    @cached_property
    def template(self) -> CliqueTemplate | None:
        """The template of the clique, or None if the set no longer has it."""
        return children.clique_template(self.pcs, self.clique)

    @cached_property
    def shares(self) -> dict[str, int]:
        """The number of the clique's pods that each gang holds. A scaling group's clique whose replica has moved to
        another gang is about to be deleted, so it gets no more pods (COH-I11)."""
        meta = self.clique.metadata
        if not meta.label(labels.SCALING_GROUP):
            return self.placement.shares(self.template.name) if self.template is not None else {}
        config = children.clique_config(self.pcs, self.clique)
        replica = int(meta.label(labels.SCALING_GROUP_REPLICA_INDEX))
        gang = self.placement.gang_of(config.name, replica) if config is not None else None
        return {gang: self.clique.spec.replicas} if gang is not None and gang == meta.label(labels.PODGANG) else {}

    def awaited_cliques(self, gang: str) -> dict[str, int]:
        """Return the cliques that the pods in a gang wait for, with the number of their pods that must be Ready."""
        if self.template is None:
            return {}
        return startup.awaited_cliques(self.pcs, self.template, self.index, self.placement.gangs[gang])


class CliqueReconciler:
    """Brings one PodClique at a time to its desired state."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        scheduler_name: str,
        init_image: str,
        migration: HashMigration,
        layouts: Layouts,
        adoption: Adoption,
        *,
        plans: GangPlans,
        of_kai: bool = False,
    ) -> None:
        """`of_kai` says whether pods get the labels and annotations that KAI needs. `plans` holds the plans of gangs on
        kube-scheduler."""
        self._cache, self._writer, self._scheduler, self._plans = cache, writer, scheduler_name, plans
        self._adoption = adoption
        marked_for_kai: Callable[[Manifest], Manifest] = kai.with_marks if of_kai else lambda pod: pod
        self._with_marks: Callable[[Manifest], Manifest] = lambda pod: plans.with_pod_group(marked_for_kai(pod))
        self._layouts, self._migration, self._policy = layouts, migration, layouts.policy
        self._init_image = init_image
        self._unwritten_since: dict[Key, float] = {}
        self._watch = UpdateWatch()
        self.last_errors = LastErrors(cache.cliques, writer)

    async def reconcile(self, key: Key) -> float | None:
        """Reconcile one clique. Return the requeue delay in seconds, or None if no retry is needed."""
        clique = self._cache.cliques.get(*key)
        if clique is None:
            return None
        if clique.metadata.deletion_timestamp is not None:
            await self._finalize(clique)
            return None
        await self._adoption.adopt_for_clique(clique)
        pcs, placement = self._cache.set_of(clique), self._layouts.placement_of(clique)
        if pcs is None or placement is None or not self._migration.is_migrated(pcs, clique):
            return None
        context = CliqueContext(pcs, clique, placement)
        try:
            await self._sync_claims(context)
            try:
                await self._relabel(context)
                await self._sync_pods(context)
                await self._advance_update(context)
            finally:  # pods that cannot be created must not block existing pods, except through their gang
                await self._remove_gates(context)
        except ReconcileError as problem:
            return await self.last_errors.report(key, problem)
        except ApiError as error:
            message = pods.without_attempt_details(str(error), clique.metadata.name)
            await self.last_errors.report_refusal(key, "ERR_SYNC_PODS", error, message)
            raise
        return await self.last_errors.report(key, None)

    async def _finalize(self, clique: PodClique) -> None:
        """Remove the finalizer from a clique that is being deleted, after deleting its pods."""
        cliques, pods_of = self._cache.cliques, self._cache.pods_of(clique)
        await self._writer.release(cliques, clique, labels.CLIQUE_FINALIZER, self._cache.pods, pods_of)

    async def _sync_claims(self, context: CliqueContext) -> None:
        """Create the resource claims that the clique owns, and delete claims that no existing or future pod uses."""
        pcs, clique, template = context.pcs, context.clique, context.template
        if template is None or not template.resource_sharing:
            return
        indices = {pods.index_of(pod) for pod in self._cache.pods_of(clique)}
        planned = claims.clique_claims(clique, template, (index for index in indices if index >= 0))
        owner = children.owner_reference(PODCLIQUES.api_version, "PodClique", clique.metadata)
        manifests = [
            claims.manifest(pcs, claim, claims.claim_spec(pcs, claim.sharing, self._cache.claim_spec), owner)
            for claim in planned
        ]
        await self._writer.sync(
            self._cache.claims, manifests, self._cache.claims.indexed(BY_OWNER, clique.metadata.uid)
        )

    async def _relabel(self, context: CliqueContext) -> None:
        """Assign pods whose gang label names no possible gang to their gang, if the clique has only one gang
        (GM-62)."""
        shares = context.shares
        if len(shares) != 1:
            return
        (gang,) = shares
        line, replica = self._layouts.line, context.replica
        misplaced_pods = [
            pod
            for pod in self._cache.pods_of(context.clique)
            if pod.active and not line.knows_gang(replica, pod.metadata.label(labels.PODGANG))
        ]
        body = {"metadata": {"labels": {labels.PODGANG: gang}}}
        await await_all(self._writer.patch(self._cache.pods, pod, body) for pod in misplaced_pods)

    async def _sync_pods(self, context: CliqueContext) -> None:
        """Create missing pods in gangs that exist, and delete surplus pods."""
        clique, template_hash = context.clique, context.clique.metadata.label(labels.TEMPLATE_HASH)
        await self._writer.refresh_dependents(self._cache.pods, clique, f"{labels.PODCLIQUE}={clique.metadata.name}")
        current_pods = self._cache.pods_of(clique)
        stale_pods = self._plans.stale_pods(clique.metadata.name, current_pods)
        # Delete these pods first: their indices are reused below, and no two pods may have the same index.
        await await_all(self._writer.delete(self._cache.pods, pod) for pod in stale_pods)
        shares = {
            gang: self._plans.possible_pods(self._gang(context, gang), clique.metadata.name, count)
            for gang, count in context.shares.items()
        }
        remaining = [pod for pod in current_pods if pod not in stale_pods]
        difference = pods.difference(shares, remaining, template_hash, lambda gang: self._may_create(context, gang))
        # A layout that does not hold all pods is about to be renewed, so no pods are deleted because of it.
        is_complete = sum(context.shares.values()) == clique.spec.replicas
        surplus = [pod for pod in difference.surplus if is_complete or pod.finished]
        manifests = self._manifests(context, difference.missing)
        await await_all(self._writer.delete(self._cache.pods, pod) for pod in surplus)
        # After a refusal, only one pod is created at first: if it is refused again, the other pods would probably be
        # refused as well.
        probe_count = 1 if clique.metadata.key in self.last_errors.failed_keys else len(manifests)
        await await_all(self._writer.create(self._cache.pods, manifest) for manifest in manifests[:probe_count])
        await await_all(self._writer.create(self._cache.pods, manifest) for manifest in manifests[probe_count:])

    def _gang(self, context: CliqueContext, name: str) -> PodGang | None:
        return self._cache.gangs.get(context.clique.metadata.namespace, name)

    def _may_create(self, context: CliqueContext, name: str) -> bool:
        """Return whether pods may be created in a gang: the gang exists (GREP-375, OBJ-372; its creation triggers the
        clique again), and the pods would have the gang's version."""
        gang = self._gang(context, name)
        if gang is None or gang.metadata.deletion_timestamp is not None:
            return False
        return self._layouts.may_refill(context.pcs, context.placement.gangs[name].entry, context.clique)

    def _manifests(self, context: CliqueContext, missing: list[tuple[int, str]]) -> list[Manifest]:
        """Return the pods to create, given their indices and gangs."""
        if not missing:
            return []
        pcs, clique = context.pcs, context.clique
        builders = {
            gang: pods.PodBuilder(
                clique, self._scheduler, context.awaited_cliques(gang), self._init_image, claims.pod_claims(pcs, clique)
            )
            for gang in {gang for _, gang in missing}
        }
        replaced_pod = update_clique_pods.pod_to_replace(clique, self._cache.pods_of(clique))
        manifests = [self._with_marks(builders[gang].pod(index, gang)) for index, gang in missing]
        return (
            manifests
            if replaced_pod is None
            else [update_clique_pods.with_replaced_pod(manifests[0], replaced_pod), *manifests[1:]]
        )

    async def _advance_update(self, context: CliqueContext) -> None:
        """Take the next step of an update. The progress is written before any pod is deleted."""
        pcs = context.pcs
        if update_progress.set_progress(pcs) is None or pcs.metadata.deletion_timestamp is not None:
            return
        clique = self._cache.cliques.get(*context.clique.metadata.key) or context.clique
        clique_pods = self._cache.pods_of(clique)
        step = component_steps.clique_step(pcs, clique, clique_pods, lambda: context.shares, now(), self._policy)
        if step.progress is not None and step.progress != (clique.status.update_progress if clique.status else None):
            body = {"status": {"updateProgress": msgspec.to_builtins(step.progress)}}
            await self._writer.patch(self._cache.cliques, clique, body, status=True)
        await await_all(
            self._writer.delete(self._cache.pods, pod) for pod in (*step.unready_pods, *step.additional_pods)
        )
        if step.selected is not None:
            await self._writer.delete(self._cache.pods, step.selected)

    async def _remove_gates(self, context: CliqueContext) -> None:
        """Remove Grove's gate from the pods that may be scheduled."""
        namespace, by_gang = context.clique.metadata.namespace, dict[str, list[Pod]]()
        current_pods = self._cache.pods_of(context.clique)
        if not any(pod.gated_by(labels.GATE) for pod in current_pods):
            return
        for pod in current_pods:
            by_gang.setdefault(pod.metadata.label(labels.PODGANG), []).append(pod)
        ready: list[Pod] = []
        for name, gang_pods in by_gang.items():
            if name in context.placement.gangs:
                ready += gates.pods_to_ungate(
                    gang_pods,
                    context.clique.metadata.name,
                    self._gang(context, name),
                    self._awaited_gangs(context, name),
                    lambda clique: self._cache.count_scheduled_pods(namespace, clique),
                )
        await self._ungate_all(self._plans.startable_pods(ready))

    def _awaited_gangs(self, context: CliqueContext, name: str) -> list[PodGang | None]:
        """Return the gangs that must be scheduled before the pods of a gang may be scheduled; None for a gang that does
        not exist."""
        return [self._gang(context, other) for other in context.placement.awaited_gangs(name)]

    async def _ungate_all(self, ready: Iterable[Pod]) -> None:
        await await_all(self._ungate(pod) for pod in ready)

    async def _ungate(self, pod: Pod) -> None:
        body = {"spec": {"schedulingGates": [{"$patch": "delete", "name": labels.GATE}]}}
        await self._writer.patch_strategically(self._cache.pods, pod, body)

    async def reconcile_status(self, key: Key) -> float | None:
        """Write the status if it differs. Statuses have a separate queue with few workers, so that under load pods come
        first and statuses are written less often."""
        clique = self._cache.cliques.get(*key)
        if clique is None or clique.metadata.deletion_timestamp is not None:
            self._unwritten_since.pop(key, None)
            self._watch.forget(key)
            return None
        pcs = self._cache.set_of(clique)
        if pcs is not None and not self._migration.is_migrated(pcs, clique):
            return None
        current_pods = self._cache.pods_of(clique)
        status = statuses.clique_status(clique, current_pods, pcs, now(), self._policy)
        seconds_until_stuck = self._put_update_condition(clique, status, pcs)
        if status == clique.status:
            self._unwritten_since.pop(key, None)
            return seconds_until_stuck
        is_final = status.ready_replicas == len(current_pods) == clique.spec.replicas
        changed_at = self._unwritten_since.setdefault(key, time.monotonic())
        wait = changed_at + STATUS_SECONDS - time.monotonic()
        if wait > 0 and not is_final:
            return wait
        await self._writer.write_status(self._cache.cliques, clique, status)
        self._unwritten_since.pop(key, None)
        previously_scheduled = clique.status.scheduled_replicas if clique.status else 0
        if previously_scheduled and not status.scheduled_replicas:
            note = f"All scheduled pods lost (was {previously_scheduled})."
            await self._writer.warn(PODCLIQUES, clique, statuses.ALL_REPLICAS_LOST, note)
        return seconds_until_stuck

    def _put_update_condition(
        self, clique: PodClique, status: PodCliqueStatus, pcs: PodCliqueSet | None
    ) -> float | None:
        """Set the condition UpdateInProgress in the status of a standalone clique (GM-108). Return the number of
        seconds after which its update would count as stuck."""
        if clique.metadata.label(labels.SCALING_GROUP):
            return None
        template = children.clique_template(pcs, clique) if pcs is not None else None
        deadline = update_condition.progress_deadline(template.rolling_update if template is not None else None)
        state = status.updated_replicas, status.ready_replicas, update_progress.generation(pcs) if pcs else ""
        seconds_until_stuck = self._watch.seconds_until_stuck(clique, state, deadline)
        condition = update_condition.component_condition(clique, seconds_until_stuck == 0, now())
        status.conditions = conditions.with_condition(status.conditions, condition)
        return seconds_until_stuck or None
