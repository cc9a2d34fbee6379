"""Informers for the objects that the filters read in addition to nodes and pods."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kube.client import Client
from kube.errors import REQUEST_FAILED, ApiError
from kube.informer import Informer, typed_decoder
from kube.resource import NAMESPACES, Resource
from reference_impl.runtime.waiting import is_temporary
from reference_impl.scheduler import storage
from reference_impl.scheduler.devices.ledger import Ledger
from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.model import Namespace, Pod
from reference_impl.scheduler.volume_decisions import Decision

log = logging.getLogger(__name__)

VOLUMES = Resource("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")


def _storage(plural: str, kind: str, *, namespaced: bool = False) -> Resource:
    return Resource("storage.k8s.io", "v1", plural, kind, namespaced)


WATCHED: dict[str, tuple[Resource, type[Any]]] = {
    "namespaces": (NAMESPACES, Namespace),
    "volumes": (VOLUMES, storage.PersistentVolume),
    "claims": (CLAIMS, storage.PersistentVolumeClaim),
    "storage_classes": (_storage("storageclasses", "StorageClass"), storage.StorageClass),
    "csi_nodes": (_storage("csinodes", "CSINode"), storage.CsiNode),
    "csi_drivers": (_storage("csidrivers", "CSIDriver"), storage.CsiDriver),
    "storage_capacities": (
        _storage("csistoragecapacities", "CSIStorageCapacity", namespaced=True),
        storage.CsiStorageCapacity,
    ),
    "attachments": (_storage("volumeattachments", "VolumeAttachment"), storage.VolumeAttachment),
}
"""The resource and the model of each field of the cluster state."""


class StateInformers:
    """The informer caches of namespaces and storage objects."""

    def __init__(self, client: Client, changed: Callable[[], None]) -> None:
        self._client = client
        self.informers: dict[str, Informer[Any]] = {}
        """Informer caches by field of the cluster state."""
        for field, (resource, form) in WATCHED.items():
            informer = self.informers[field] = Informer(client, resource, typed_decoder(form))
            informer.add_handler(lambda event_type, old, item: changed())

    def state(self, pods: Iterable[Pod], assumed_nodes: Mapping[str, str], devices: Ledger) -> ClusterState:
        """Return the cluster state that the filters read. Its indexes are built when they are first used."""
        fields: dict[str, Any] = dict(self.informers)
        return ClusterState(pods=pods, assumed_nodes=assumed_nodes, devices=devices, **fields)

    async def write_decision(self, decision: Decision) -> bool:
        """Write a decision about a claim, unless it has already been written. Return False if the write must be
        retried."""
        body = decision.body()
        if body is None:
            return True
        claim, volume = decision.claim.metadata, decision.volume
        try:
            if volume is None:
                answer = await self._client.patch(CLAIMS, claim.namespace, claim.name, body)
            else:
                answer = await self._client.patch(VOLUMES, None, volume.metadata.name, body)
        except REQUEST_FAILED as error:
            log.info("cannot decide on the volume of claim %s/%s: %s", *claim.key, error or repr(error))
            return not (is_temporary(error) or (isinstance(error, ApiError) and (error.conflict or error.not_found)))
        informer = self.informers["claims" if volume is None else "volumes"]
        informer.observe(informer.decode(answer))
        return True
