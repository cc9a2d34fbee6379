"""PodClique: its pods, their gates, its status (spec OBJ-340, OBJ-501 to OBJ-508, OBJ-730 to OBJ-748)."""

from __future__ import annotations

import time
from collections.abc import Callable

from kube.errors import ApiError
from kube.objects import Key
from reference_impl.api import models
from reference_impl.api.models import PodClique, PodGang
from reference_impl.api.pods import Pod
from reference_impl.control.cache import Cache
from reference_impl.control.troubles import Troubles
from reference_impl.control.writer import Writer, now, together
from reference_impl.plan import gates, labels, pods, startup, statuses
from reference_impl.plan.statuses import ALL_LOST

STATUS_SECONDS = 1.0
"""What a clique passes through on its way is written at most this often, and this late; where it arrives, at once. A
write of a clique costs the API server more than one of a pod: it carries a whole pod spec through a CRD's schema."""


class CliqueReconciler:
    """`init_image` is that of the container that waits for parents; `say` wakes the queue of statuses."""

    def __init__(
        self, cache: Cache, writer: Writer, scheduler_name: str, init_image: str, say: Callable[[Key], None]
    ) -> None:
        self._cache, self._writer, self._scheduler, self._say = cache, writer, scheduler_name, say
        self._init_image = init_image
        self._unwritten: dict[Key, float] = {}
        self._troubles = Troubles("ERR_SYNC_PODS")

    async def reconcile(self, key: Key) -> float | None:
        clique = self._cache.cliques.get(*key)
        if clique is None:
            return None
        if clique.metadata.deletion_timestamp is not None:
            # The pods go through the garbage collector, by their owner reference (CHG-DEL-05).
            await self._writer.remove_finalizer(self._cache.cliques, clique, labels.CLIQUE_FINALIZER)
            return None
        gang = self._cache.gangs.get(clique.metadata.namespace, clique.metadata.label(labels.PODGANG))
        if gang is not None and gang.metadata.deletion_timestamp is None:
            # Gang before pods (GREP-375, OBJ-372): its arrival brings us back here.
            try:
                try:
                    await self._balance(clique)
                finally:  # pods that cannot be made hold those back that were, only through their gang
                    await self._release(clique, gang)
            except ApiError as error:
                if self._troubles.note(key, error):
                    self._say(key)
                raise
        if self._troubles.clear(key):
            self._say(key)
        return None

    async def _balance(self, clique: PodClique) -> None:
        """Creates the pods that are missing and deletes those that are too many."""
        missing, surplus = pods.difference(clique, self._cache.pods_of(clique))
        if not missing and not surplus:
            return
        waits: dict[str, int] = {}
        if missing and clique.spec.starts_after:
            pcs = self._cache.set_of(clique)
            if pcs is None:
                return  # going, and the clique with it
            waits = startup.floors(pcs, clique)
        builder = pods.PodBuilder(clique, self._scheduler, waits, self._init_image)
        await together(
            [
                *(self._writer.create(self._cache.pods, builder.pod(index)) for index in missing),
                *(self._writer.delete(self._cache.pods, pod) for pod in surplus),
            ]
        )

    async def _release(self, clique: PodClique, gang: PodGang) -> None:
        """Takes Grove's gate off the pods that may be scheduled."""
        namespace = clique.metadata.namespace
        ready = gates.removable(
            clique,
            self._cache.pods_of(clique),
            gang,
            self._cache.gangs.get(namespace, clique.metadata.label(labels.BASE_PODGANG)),
            lambda name: self._cache.scheduled_pods(namespace, name),
        )
        await together(self._ungate(pod) for pod in ready)

    async def _ungate(self, pod: Pod) -> None:
        body = {"spec": {"schedulingGates": [{"$patch": "delete", "name": labels.GATE}]}}
        await self._writer.strategic(self._cache.pods, pod, body)

    async def reconcile_status(self, key: Key) -> float | None:
        """Writes the status, if it differs. A queue of its own with few workers feeds this, so that under load pods
        come first and statuses are written less often."""
        clique = self._cache.cliques.get(*key)
        if clique is None or clique.metadata.deletion_timestamp is not None:
            self._unwritten.pop(key, None)
            return None
        pods_now = self._cache.pods_of(clique)
        status = statuses.clique_status(clique, pods_now, self._cache.set_of(clique), now())
        status.last_errors = self._troubles.of(key, status.last_errors)
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
            await self._writer.warn(models.PODCLIQUES, clique, ALL_LOST, note)
        return None
