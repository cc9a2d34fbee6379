"""The operator's writes, and the few reads that bypass the caches. The response to each write is stored in the informer
cache, so that the next reconcile uses it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable
from typing import Any, TypeVar

import msgspec
import orjson

from kube.client import JSON_PATCH, Client
from kube.errors import REQUEST_FAILED, UNANSWERED, ApiError
from kube.informer import Informer
from kube.objects import Object
from kube.resource import PODS, Resource
from reference_impl.api import models
from reference_impl.control.metrics import OperatorMetrics
from reference_impl.control.terminating import TerminatingOwners
from reference_impl.plan import drift, ownership, reconcile_error
from reference_impl.runtime.events import EventRecorder, EventType

T = TypeVar("T", bound=Object)
U = TypeVar("U", bound=Object)
Result = TypeVar("Result")
log = logging.getLogger(__name__)
CONTROLLER = "grove-operator"
"""The reporting controller of events."""
ORPHAN = "orphan"
"""The finalizer of an object whose dependents will be kept (`kubectl delete --cascade=orphan`)."""


async def await_all(writes: Iterable[Awaitable[Result]]) -> list[Result]:
    """Await all writes and return their results in order. A failure must not cancel the other writes, so the first
    error is raised only after all writes."""
    results: list[Result] = []
    for result in await asyncio.gather(*writes, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
        results.append(result)
    return results


class Writer:
    """Creates, patches and deletes objects of the kinds in the cache."""

    def __init__(self, client: Client, metrics: OperatorMetrics) -> None:
        self._client, self.metrics = client, metrics
        self._events = EventRecorder(client, CONTROLLER)
        self._terminating = TerminatingOwners()
        self._doubtful_owners: set[str] = set()
        """UIDs of owners for which an object may have been created although no response arrived."""

    async def create(self, informer: Informer[T], manifest: dict[str, Any]) -> None:
        """Create an object, unless its namespace is being deleted. If our own object already exists, the next reconcile
        will see it. Raises ReconcileError if an object that is not ours has the name."""
        if self._terminating.holds(manifest):
            return
        try:
            answer = await self._client.create(informer.resource, manifest)
        except UNANSWERED:
            self._remember_owner(manifest)
            raise
        except ApiError as error:
            if error.status >= 500:
                self._remember_owner(manifest)
            if self._terminating.remember_refusal(manifest, error):
                return
            if not error.already_exists:
                raise
            await self._check_existing(informer, manifest)
        else:
            self.metrics.count_created(informer.resource.kind)
            informer.observe(informer.decode(answer))

    def _remember_owner(self, manifest: dict[str, Any]) -> None:
        """Remember the owner of an object that may have been created. The API server chooses the object's name, so
        another request would create a second object."""
        if "generateName" in manifest["metadata"]:
            self._doubtful_owners.update(owner["uid"] for owner in manifest["metadata"].get("ownerReferences", ()))

    async def refresh_dependents(self, informer: Informer[T], owner: Object, selector: str) -> None:
        """Read the dependents of an owner for which an object may have been created although no response arrived. The
        watch may lag, so call this before deciding what to create."""
        uid = owner.metadata.uid
        if uid not in self._doubtful_owners:
            return
        self._doubtful_owners.discard(uid)
        try:
            items = await self._client.list(informer.resource, owner.metadata.namespace, selector=selector)
        except REQUEST_FAILED:
            self._doubtful_owners.add(uid)
            raise
        for item in items:
            informer.observe(informer.decode(orjson.dumps(item)))

    async def _check_existing(self, informer: Informer[T], manifest: dict[str, Any]) -> None:
        """Raise ReconcileError if the existing object with the manifest's name is not ours."""
        namespace, name = manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]
        answer = await self._client.get_or_none(informer.resource, namespace, name)
        if answer is not None:
            existing = informer.decode(answer)
            if not _correctable(manifest, existing):
                raise reconcile_error.conflict(manifest["kind"], namespace, name)
        log.info("%s %s exists already", informer.resource.kind, name)

    async def ensure(self, informer: Informer[T], manifest: dict[str, Any]) -> None:
        """Create the object, or correct the fields that differ from the manifest. A terminating object is not changed,
        since its removal triggers another reconcile. Raises ReconcileError if an object that is not ours has the
        name."""
        metadata = manifest["metadata"]
        existing = informer.get(metadata["namespace"], metadata["name"])
        if existing is None:
            await self.create(informer, manifest)
            return
        if existing.metadata.deletion_timestamp is not None:
            return
        if not _correctable(manifest, existing):
            raise reconcile_error.conflict(manifest["kind"], metadata["namespace"], metadata["name"])
        body = drift.correction(manifest, existing)
        # The removal of the object triggers the next reconcile.
        if "roleRef" in body or ownership.is_replaceable(manifest, existing):  # immutable, or of unknown origin
            await self.delete(informer, existing)
        elif body:
            await self.patch(informer, existing, body)

    async def read(self, informer: Informer[T], item: T) -> T | None:
        """Return the object from the API server, or None if it does not exist or another object has its name."""
        answer = await self._client.get_or_none(informer.resource, item.metadata.namespace, item.metadata.name)
        current = None if answer is None else informer.decode(answer)
        if current is None or current.metadata.uid != item.metadata.uid:
            return None
        informer.observe(current)
        return current

    async def list_pods(self, namespace: str, selector: str) -> list[dict[str, Any]]:
        """Return complete pods from the API server. The cache holds only the fields that every reconcile needs."""
        return await self._client.list(PODS, namespace, selector=selector)

    async def sync(self, informer: Informer[T], manifests: list[dict[str, Any]], existing: list[T]) -> None:
        """Ensure that all these objects exist, and delete the existing objects that are not among them."""
        desired_names = {manifest["metadata"]["name"] for manifest in manifests}
        surplus = [
            item
            for item in existing
            if item.metadata.name not in desired_names and item.metadata.deletion_timestamp is None
        ]
        await await_all(
            [
                *(self.ensure(informer, manifest) for manifest in manifests),
                *(self.delete(informer, item) for item in surplus),
            ]
        )

    async def patch(
        self, informer: Informer[T], item: T, body: dict[str, Any], *, status: bool = False, guard: bool = False
    ) -> None:
        """Apply a JSON merge patch; a missing object is not an error. With `guard` the patch fails if the object has
        changed since it was cached. This is necessary if the patch contains a list that other clients also write."""
        meta = item.metadata
        preconditions: dict[str, Any] = {"uid": meta.uid}
        if guard:
            preconditions["resourceVersion"] = meta.resource_version
        body = {**body, "metadata": {**body.get("metadata", {}), **preconditions}}
        await self._send_patch(informer, item, body, "status" if status else None)

    async def renew(self, informer: Informer[T], item: T, manifest: dict[str, Any]) -> None:
        """Replace the pod spec, labels and annotations of the clique with this UID with the values in its manifest, in
        one write. A missing object is not an error."""
        meta = manifest["metadata"]
        body = [
            {"op": "test", "path": "/metadata/uid", "value": item.metadata.uid},
            {"op": "add", "path": "/metadata/labels", "value": meta["labels"]},
            {"op": "add", "path": "/metadata/annotations", "value": meta.get("annotations", {})},
            {"op": "add", "path": "/spec/podSpec", "value": manifest["spec"]["podSpec"]},
        ]
        await self._send_patch(informer, item, body, None, JSON_PATCH)

    async def patch_strategically(self, informer: Informer[T], item: T, body: dict[str, Any]) -> None:
        """Apply a strategic merge patch, which merges lists by their keys, to a built-in object."""
        body = {**body, "metadata": {"uid": item.metadata.uid}}
        await self._send_patch(informer, item, body, None, "application/strategic-merge-patch+json")

    async def remove_finalizer(self, informer: Informer[T], item: T, finalizer: str) -> None:
        """Remove one finalizer from the object with this UID. The test operations protect finalizers of other clients
        and finalizers of a recreated object with the same name, because a patch may arrive late."""
        finalizers = item.metadata.finalizers or []
        if finalizer not in finalizers:
            return
        path = f"/metadata/finalizers/{finalizers.index(finalizer)}"
        meta = item.metadata
        uid_test = {"op": "test", "path": "/metadata/uid", "value": meta.uid}
        body = [uid_test, {"op": "test", "path": path, "value": finalizer}, {"op": "remove", "path": path}]
        try:
            answer = await self._client.patch(
                informer.resource, meta.namespace, meta.name, body, content_type=JSON_PATCH
            )
        except ApiError as error:
            if not error.not_found:
                raise
        else:
            informer.observe(informer.decode(answer))

    async def release(
        self, informer: Informer[T], item: T, finalizer: str, dependents: Informer[U], existing: Iterable[U]
    ) -> None:
        """Remove our finalizer from an object that is being deleted, once all objects that it controls are also being
        deleted. The next object with the same name must not find any living dependents, even if the garbage collector
        lags (COH-127). Dependents that will be orphaned are not deleted: the garbage collector changes them before it
        removes its finalizer, and each deletion applies only to the cached version."""
        if ORPHAN in (item.metadata.finalizers or ()):
            return
        living_dependents = [dependent for dependent in existing if dependent.metadata.deletion_timestamp is None]
        await await_all(
            self._delete(dependents, dependent, dependent.metadata.resource_version) for dependent in living_dependents
        )
        await self.remove_finalizer(informer, item, finalizer)

    async def _send_patch(
        self,
        informer: Informer[T],
        item: T,
        body: dict[str, Any] | list[dict[str, Any]],
        subresource: str | None,
        content_type: str = "application/merge-patch+json",
    ) -> None:
        meta = item.metadata
        try:
            answer = await self._client.patch(
                informer.resource, meta.namespace, meta.name, body, content_type=content_type, subresource=subresource
            )
        except ApiError as error:
            if not error.not_found:
                raise
        else:
            informer.observe(informer.decode(answer))

    async def write_status(
        self, informer: Informer[Any], item: Any, status: msgspec.Struct, *, guard: bool = False
    ) -> bool:
        """Write a status if it differs from the cached one, and return whether it was written. For `guard`, see
        `patch`."""
        if item.status == status:
            return False
        old_fields = msgspec.to_builtins(item.status) if item.status is not None else {}
        new_fields = msgspec.to_builtins(status)
        changed_fields = {
            key: value for key, value in new_fields.items() if key not in old_fields or old_fields[key] != value
        }
        if item.status is None:
            changed_fields = models.to_json(status)
        await self.patch(informer, item, {"status": changed_fields}, status=True, guard=guard)
        return True

    async def warn(self, resource: Resource, item: Object, reason: str, note: str) -> None:
        """Post a Warning event about an object."""
        await self.post_event(resource, item, "Warning", reason, note)

    async def post_event(self, resource: Resource, item: Object, kind: EventType, reason: str, note: str) -> None:
        """Post an event about an object. A failure is only logged."""
        await self._events.record(resource, item.metadata, kind, reason, note, action="Reconcile")

    async def delete(self, informer: Informer[T], item: T) -> None:
        """Delete the object with this UID, with background propagation."""
        await self._delete(informer, item)

    async def _delete(self, informer: Informer[T], item: T, version: str | None = None) -> None:
        meta = item.metadata
        await self._client.delete(informer.resource, meta.namespace, meta.name, uid=meta.uid, version=version)
        informer.observe_deletion(item)


def _correctable(manifest: dict[str, Any], existing: Object) -> bool:
    """Return whether an object may be corrected to match its manifest, or replaced."""
    return any(
        permits(manifest, existing)
        for permits in (ownership.has_expected_controller, ownership.is_adoptable, ownership.is_replaceable)
    )
