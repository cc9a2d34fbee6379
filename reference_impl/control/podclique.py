"""The PodClique reconciler: resource claims, pods, scheduling gates, status (spec OBJ-340, OBJ-501 to OBJ-508, OBJ-730
to OBJ-748)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from kube.errors import ApiError
from kube.objects import Key
from reference_impl.api.models import PODCLIQUES, PodClique, PodCliqueSet, PodGang
from reference_impl.api.pods import Pod
from reference_impl.control.cache import OWNER, Cache
from reference_impl.control.clique_gangs import CliqueGangs
from reference_impl.control.gang_maps import GangMaps
from reference_impl.control.last_errors import LastErrors
from reference_impl.control.migration import HashMigration
from reference_impl.control.workload_api import GangPlans
from reference_impl.control.writer import Writer, together
from reference_impl.plan import (
    children,
    claims,
    gates,
    kai,
    labels,
    pods,
    startup,
    statuses,
    update_clique_pods,
    update_progress,
)
from reference_impl.plan.children import Manifest
from reference_impl.plan.coherent import update
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.reconcile_error import ReconcileError
from reference_impl.runtime.clock import now

STATUS_SECONDS = 1.0
"""Intermediate statuses of a clique are written at most this often, and with this delay; the final one is written at
once. Writing a status costs the API server about twice as much as creating a pod (`make bench`)."""


class CliqueReconciler:
    """Brings one PodClique at a time to its desired state."""

    def __init__(
        self,
        cache: Cache,
        writer: Writer,
        scheduler_name: str,
        init_image: str,
        migration: HashMigration,
        policy: Policy = STANDARD,
        *,
        held: GangMaps | None = None,
        plans: GangPlans,
        of_kai: bool = False,
    ) -> None:
        """`of_kai`: pods get the marks that KAI needs. `plans`: those of gangs on kube-scheduler."""
        self._cache, self._writer, self._scheduler, self._plans = cache, writer, scheduler_name, plans
        marked_for_kai: Callable[[Manifest], Manifest] = kai.marked if of_kai else lambda pod: pod
        self._marked: Callable[[Manifest], Manifest] = lambda pod: plans.marked(marked_for_kai(pod))
        self._maps = held or GangMaps(cache, policy)
        self._gangs = CliqueGangs(cache, writer, self._maps, plans)
        self._migration, self._policy = migration, policy
        self._init_image = init_image
        self._unwritten: dict[Key, float] = {}
        self.last_errors = LastErrors(cache.cliques, writer)

    async def reconcile(self, key: Key) -> float | None:
        """Reconcile one clique; returns after how many seconds to repeat it, None for never."""
        clique = self._cache.cliques.get(*key)
        if clique is None:
            return None
        if clique.metadata.deletion_timestamp is not None:
            cliques, pods_of = self._cache.cliques, self._cache.pods_of(clique)
            await self._writer.release(cliques, clique, labels.CLIQUE_FINALIZER, self._cache.pods, pods_of)
            return None
        pcs = self._cache.set_of(clique)
        if pcs is not None and self._maps.used_by(pcs) and not clique.metadata.label(labels.SCALING_GROUP):
            return await self._standalone(key, clique, pcs)
        gang = self._cache.gangs.get(clique.metadata.namespace, clique.metadata.label(labels.PODGANG))
        if gang is not None and gang.metadata.deletion_timestamp is None:
            # The gang comes before the pods (GREP-375, OBJ-372): its arrival triggers this clique again.
            if pcs is not None and not self._migration.settled(pcs, clique):
                return None
            try:
                await self._claims(clique, pcs)
            except ReconcileError as problem:
                return await self.last_errors.tell(key, problem)
            try:
                try:
                    await self._balance(clique, pcs)
                    await self._update(clique, pcs)
                finally:  # pods that cannot be created must not hold back existing ones, except through their gang
                    await self._release(clique, gang)
            except ApiError as error:
                message = pods.unnamed(str(error), clique.metadata.name)
                await self.last_errors.refused(key, "ERR_SYNC_PODS", error, message)
                raise
            return await self.last_errors.tell(key, None)
        return None

    async def _standalone(self, key: Key, clique: PodClique, pcs: PodCliqueSet) -> float | None:
        """Reconcile a clique whose pods are distributed over gangs by a PodGangMap. Without the map it is left
        alone."""
        held = self._maps.of(clique)
        if held is None or not self._migration.settled(pcs, clique) or pcs.metadata.deletion_timestamp is not None:
            return None
        try:
            await self._claims(clique, pcs)
            try:
                await self._gangs.follow(pcs, clique, held)
                await self._gangs.balance(pcs, clique, held, partial(self._manifests, clique, pcs))
                if not update.coherent(pcs):
                    await self._update(clique, pcs)
            finally:
                await self._ungate_all(self._gangs.removable(pcs, clique, held))
        except ReconcileError as problem:
            return await self.last_errors.tell(key, problem)
        except ApiError as error:
            await self.last_errors.refused(key, "ERR_SYNC_PODS", error, pods.unnamed(str(error), clique.metadata.name))
            raise
        return await self.last_errors.tell(key, None)

    def _manifests(self, clique: PodClique, pcs: PodCliqueSet, missing: list[tuple[int, str]]) -> list[Manifest]:
        """The pods of a standalone clique to create, with their gangs."""
        if not missing:
            return []
        builders = {
            gang: self._builder(pcs, clique, self._waits(pcs, clique, gang)) for gang in {g for _, g in missing}
        }
        vacancy = update_clique_pods.vacancy(clique, self._cache.pods_of(clique))
        made = [self._marked(builders[gang].pod_in(gang, index)) for index, gang in missing]
        return made if vacancy is None else [update_clique_pods.in_place_of(made[0], vacancy), *made[1:]]

    def _builder(self, pcs: PodCliqueSet, clique: PodClique, waits: dict[str, int]) -> pods.PodBuilder:
        return pods.PodBuilder(clique, self._scheduler, waits, self._init_image, claims.of_pod(pcs, clique))

    def _waits(self, pcs: PodCliqueSet, clique: PodClique, gang: str) -> dict[str, int]:
        """The parents that pods of a clique wait for in a gang of a PodGangMap."""
        held, template = self._maps.of(clique), children.clique_template(pcs, clique)
        entry = held.entry(gang) if held is not None else None
        if entry is None or template is None:
            return {}
        return startup.waits(pcs, template, self._maps.index_of(clique), entry)

    async def _claims(self, clique: PodClique, pcs: PodCliqueSet | None) -> None:
        """Create the resource claims of the clique's own level, and delete those that no pod has or will have."""
        template = children.clique_template(pcs, clique) if pcs is not None else None
        if pcs is None or template is None or not template.resource_sharing:
            return
        indices = {pods.index_of(pod) for pod in self._cache.pods_of(clique)}
        planned = claims.of_clique(clique, template, (index for index in indices if index >= 0))
        owner = children.owner_reference(PODCLIQUES.api_version, "PodClique", clique.metadata)
        made = [
            claims.manifest(pcs, claim, claims.claim_spec(pcs, claim.sharing, self._cache.claim_spec), owner)
            for claim in planned
        ]
        await self._writer.settle(self._cache.claims, made, self._cache.claims.indexed(OWNER, clique.metadata.uid))

    async def _balance(self, clique: PodClique, pcs: PodCliqueSet | None) -> None:
        """Create missing pods and delete surplus ones."""
        found = self._cache.pods_of(clique)
        stale = self._plans.stale(clique.metadata.name, found)
        # Their indices are taken again below, and no two pods may have the same one.
        await together(self._writer.delete(self._cache.pods, pod) for pod in stale)
        gang = self._cache.gangs.get(clique.metadata.namespace, clique.metadata.label(labels.PODGANG))
        possible = self._plans.possible_clique(gang, clique)
        missing, surplus = pods.difference(possible, [pod for pod in found if pod not in stale])
        if missing and pcs is not None and self._maps.moved(pcs, clique):
            missing = []
        if not missing and not surplus:
            return
        waits: dict[str, int] = {}
        if missing and clique.spec.starts_after:
            if pcs is None:
                return  # the set is being deleted, and the clique with it
            mapped = self._maps.of(clique) is not None
            waits = (
                self._waits(pcs, clique, clique.metadata.label(labels.PODGANG))
                if mapped
                else startup.minimums(pcs, clique)
            )
        claims_of = claims.of_pod(pcs, clique) if pcs is not None else None
        builder = pods.PodBuilder(clique, self._scheduler, waits, self._init_image, claims_of)
        vacancy = update_clique_pods.vacancy(clique, self._cache.pods_of(clique))
        made = [self._marked(builder.pod(index)) for index in missing]
        if made and vacancy is not None:
            made[0] = update_clique_pods.in_place_of(made[0], vacancy)
        # After a refusal, one pod is created before the others are tried, which would probably be refused as well.
        probes = 1 if clique.metadata.key in self.last_errors.keys else len(made)
        await together(
            [
                *(self._writer.create(self._cache.pods, manifest) for manifest in made[:probes]),
                *(self._writer.delete(self._cache.pods, pod) for pod in surplus),
            ]
        )
        await together(self._writer.create(self._cache.pods, manifest) for manifest in made[probes:])

    async def _update(self, clique: PodClique, pcs: PodCliqueSet | None) -> None:
        """Take the next step of an update. The progress is written before any pod is deleted."""
        if pcs is None or update_progress.of_set(pcs) is None or pcs.metadata.deletion_timestamp is not None:
            return
        clique = self._cache.cliques.get(*clique.metadata.key) or clique
        step = update_clique_pods.step(pcs, clique, self._cache.pods_of(clique), now(), self._policy)
        if step.progress is not None and step.progress != (clique.status.update_progress if clique.status else None):
            body = {"status": {"updateProgress": msgspec.to_builtins(step.progress)}}
            await self._writer.patch(self._cache.cliques, clique, body, status=True)
        await together(self._writer.delete(self._cache.pods, pod) for pod in step.forced)
        if step.selected is not None:
            await self._writer.delete(self._cache.pods, step.selected)

    async def _release(self, clique: PodClique, gang: PodGang) -> None:
        """Remove Grove's gate from the pods that may be scheduled."""
        namespace = clique.metadata.namespace
        pcs = self._cache.set_of(clique)
        if pcs is not None and self._maps.used_by(pcs):
            held = self._maps.of(clique)
            await self._ungate_all(self._gangs.removable(pcs, clique, held) if held is not None else ())
            return
        ready = gates.removable(
            clique,
            self._cache.pods_of(clique),
            gang,
            self._cache.gangs.get(namespace, clique.metadata.label(labels.BASE_PODGANG)),
            lambda name: self._cache.scheduled_pods(namespace, name),
        )
        await self._ungate_all(ready)

    async def _ungate_all(self, ready: Iterable[Pod]) -> None:
        await together(self._ungate(pod) for pod in self._plans.startable(ready))

    async def _ungate(self, pod: Pod) -> None:
        body = {"spec": {"schedulingGates": [{"$patch": "delete", "name": labels.GATE}]}}
        await self._writer.strategic(self._cache.pods, pod, body)

    async def reconcile_status(self, key: Key) -> float | None:
        """Write the status if it differs. It has a queue of its own with few workers, so that under load pods come
        first and statuses are written less often."""
        clique = self._cache.cliques.get(*key)
        if clique is None or clique.metadata.deletion_timestamp is not None:
            self._unwritten.pop(key, None)
            return None
        pcs = self._cache.set_of(clique)
        if pcs is not None and not self._migration.settled(pcs, clique):
            return None
        pods_now = self._cache.pods_of(clique)
        status = statuses.clique_status(clique, pods_now, pcs, now(), self._policy)
        if status == clique.status:
            self._unwritten.pop(key, None)
            return None
        arrived = status.ready_replicas == len(pods_now) == clique.spec.replicas
        since = self._unwritten.setdefault(key, time.monotonic())
        wait = since + STATUS_SECONDS - time.monotonic()
        if wait > 0 and not arrived:
            return wait
        await self._writer.status(self._cache.cliques, clique, status)
        self._unwritten.pop(key, None)
        lost = clique.status.scheduled_replicas if clique.status else 0
        if lost and not status.scheduled_replicas:
            note = f"All scheduled pods lost (was {lost})."
            await self._writer.warn(PODCLIQUES, clique, statuses.ALL_LOST, note)
        return None
