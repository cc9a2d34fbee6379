"""The back-end for the KAI scheduler: maintains a PodGroup for each PodGang, labels and annotations of its pods, and a
Topology for each ClusterTopologyBinding (spec OBJ-525 to OBJ-530, CTV-08).

The back-end serves all gangs that name KAI, including gangs that no PodCliqueSet owns. The garbage collector deletes a
PodGroup with its gang, and a Topology with its binding.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from kube.client import Client
from kube.informer import Informer, typed_decoder
from kube.objects import Key, Object
from kube.resource import PODS
from kube.workqueue import WorkQueue
from reference_impl.api import kai as api
from reference_impl.api import models
from reference_impl.api.kai import KaiPod, KaiPodGroup, KaiTopology
from reference_impl.api.models import ClusterTopologyBinding, PodCliqueSet, PodGang, to_json
from reference_impl.control.writer import Writer
from reference_impl.plan import kai, labels, ownership, topology_status
from reference_impl.plan.children import Manifest
from reference_impl.runtime.clock import now

FOREIGN_PODS_SELECTOR = f"{labels.PODGANG},{labels.MANAGED_BY}!={labels.MANAGER}"
"""Selector for pods of gangs that the operator did not create. The operator marks its own pods when it creates them."""
WORKERS = 8


class KaiBackend:
    """Watches the objects that KAI's gangs depend on, and writes KAI's objects."""

    def __init__(
        self,
        client: Client,
        writer: Writer,
        set_of: Callable[[Object], PodCliqueSet | None],
        bindings: Informer[ClusterTopologyBinding] | None,
    ) -> None:
        """`bindings` is None if topology constraints are not enabled."""
        self._writer, self._set_of, self._bindings = writer, set_of, bindings
        selector = f"{labels.SCHEDULER_NAME}={kai.SCHEDULER}"
        self._gangs = Informer(client, models.PODGANGS, typed_decoder(PodGang), label_selector=selector)
        self._pods = Informer(client, PODS, typed_decoder(KaiPod), label_selector=FOREIGN_PODS_SELECTOR)
        self._pod_groups = Informer(client, api.POD_GROUPS, typed_decoder(KaiPodGroup))
        self._topologies = Informer(client, api.TOPOLOGIES, typed_decoder(KaiTopology))
        self._gang_queue: WorkQueue[Key] = WorkQueue()
        self._pod_queue: WorkQueue[Key] = WorkQueue()
        self._binding_queue: WorkQueue[Key] = WorkQueue()
        self._gangs.add_handler(self._on_gang)
        self._pod_groups.add_handler(lambda event_type, old, item: self._gang_queue.add(item.metadata.key))
        self._pods.add_handler(lambda event_type, old, item: self._pod_queue.add(item.metadata.key))
        self._topologies.add_handler(self._on_topology)
        if bindings is not None:
            bindings.add_handler(lambda event_type, old, item: self._binding_queue.add(item.metadata.key))

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """The informers that must run for the back-end."""
        with_topologies = (self._topologies,) if self._bindings is not None else ()
        return (self._gangs, self._pods, self._pod_groups, *with_topologies)

    @property
    def work(self) -> tuple[tuple[str, WorkQueue[Key], Callable[[Key], Awaitable[float | None]], int], ...]:
        """The name, queue, reconciler and number of workers of each kind of work."""
        return (
            ("kai-podgroup", self._gang_queue, self.reconcile_gang, WORKERS),
            ("kai-pod", self._pod_queue, self.reconcile_pod, WORKERS),
            ("kai-topology", self._binding_queue, self.reconcile_binding, 1),
        )

    def _on_gang(self, event_type: str, old: PodGang | None, item: PodGang) -> None:
        """Trigger the reconciler of a gang, except for changes to its status (GS-09)."""
        if old is None or old.spec != item.spec or old.metadata.annotations != item.metadata.annotations:
            self._gang_queue.add(item.metadata.key)

    def _on_topology(self, event_type: str, old: KaiTopology | None, item: KaiTopology) -> None:
        """Trigger the binding of a Topology and the bindings that name it."""
        self._binding_queue.add(item.metadata.key)
        for binding in self._bindings or ():
            if kai.external_topology(binding) == item.metadata.name:
                self._binding_queue.add(binding.metadata.key)

    async def reconcile_gang(self, key: Key) -> float | None:
        """Mark a gang for KAI's podgrouper, and write its PodGroup. Return None, because the gang is never requeued
        after a delay."""
        gang = self._gangs.get(*key)
        if gang is None or gang.metadata.deletion_timestamp is not None:
            return None
        if (gang.metadata.annotations or {}).get(kai.SKIP_PODGROUPER) != "true":
            note = {"metadata": {"annotations": {kai.SKIP_PODGROUPER: "true"}}}
            await self._writer.patch(self._gangs, gang, note)
        owned = gang.metadata.controller is not None
        try:
            desired = kai.pod_group(gang, kai.queue(gang, self._set_of(gang) if owned else None))
        except kai.KaiMappingError as error:
            await self._writer.warn(models.PODGANGS, gang, kai.MAPPING_FAILED, str(error))
            return None
        existing = self._pod_groups.get(*key)
        if existing is None:
            await self._writer.create(self._pod_groups, desired)
        elif ownership.owns(gang, existing) and (change := kai.correction(desired, existing)):
            await self._writer.patch(self._pod_groups, existing, change)
        return None

    async def reconcile_pod(self, key: Key) -> float | None:
        """Mark a pod that another client has created for a gang of KAI. Return None, because the pod is never requeued
        after a delay."""
        pod = self._pods.get(*key)
        if pod is None or pod.metadata.deletion_timestamp is not None or pod.spec.scheduler_name != kai.SCHEDULER:
            return None
        meta = pod.metadata
        desired = kai.pod_marks(meta.label(labels.PODGANG), meta.label(labels.PODCLIQUE))
        current = {"annotations": meta.annotations or {}, "labels": meta.labels or {}}
        if any(current[field].get(name) != value for field, marks in desired.items() for name, value in marks.items()):
            await self._writer.patch(self._pods, pod, {"metadata": desired})
        return None

    async def reconcile_binding(self, key: Key) -> float | None:
        """Write the Topology of a binding, and report in the binding's status whether the two agree."""
        binding = self._bindings.get(*key) if self._bindings is not None else None
        if self._bindings is None or binding is None or binding.metadata.deletion_timestamp is not None:
            return None
        if (desired := kai.topology(binding)) is not None:
            await self._write_topology(binding, desired)
        status = topology_status.status(binding, lambda name: self._topologies.get("", name), now())
        if status != binding.status:
            await self._writer.patch(self._bindings, binding, {"status": to_json(status)}, status=True)
        return None

    async def _write_topology(self, binding: ClusterTopologyBinding, desired: Manifest) -> None:
        """Write a Topology. Its levels are immutable, so a Topology with other levels is deleted and recreated."""
        existing = self._topologies.get("", binding.metadata.name)
        if existing is None:
            await self._writer.create(self._topologies, desired)
        elif ownership.owns(binding, existing) and existing.keys != [
            level["nodeLabel"] for level in desired["spec"]["levels"]
        ]:
            await self._writer.delete(self._topologies, existing)
