"""The operator's writes, and the few reads that no cache answers. The answer to a write goes into the watch cache, so
that the next reconcile sees it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import msgspec

from kube.client import JSON_PATCH, Client
from kube.errors import REQUEST_FAILED, ApiError
from kube.informer import Informer
from kube.objects import Object
from kube.resource import EVENTS, PODS, Resource
from reference_impl.api import models
from reference_impl.control.metrics import OperatorMetrics
from reference_impl.plan import drift, events, reconcile_error

T = TypeVar("T", bound=Object)
log = logging.getLogger(__name__)
CONTROLLER = "grove-operator"
"""Who events come from."""


def now() -> str:
    """The present time as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def precise_now() -> str:
    """The present time with microseconds, as events have it."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


async def together(writes: Iterable[Awaitable[Any]]) -> None:
    """Awaits all writes, then raises the first error, if any: one failure must not hide the others' results."""
    for result in await asyncio.gather(*writes, return_exceptions=True):
        if isinstance(result, BaseException):
            raise result


class Writer:
    """Creates, patches and deletes objects of the kinds that the cache follows."""

    def __init__(self, client: Client, metrics: OperatorMetrics) -> None:
        self._client, self.metrics = client, metrics

    async def create(self, informer: Informer[T], manifest: dict[str, Any]) -> None:
        """Creates an object. One of ours that exists already is left to the next reconcile, which will see it. Raises
        ReconcileError where somebody else's has the name."""
        try:
            answer = await self._client.create(informer.resource, manifest)
        except ApiError as error:
            if not error.already_exists:
                raise
            await self._look_at(informer, manifest)
        else:
            self.metrics.created(informer.resource.kind)
            informer.observe(informer.decode(answer))

    async def _look_at(self, informer: Informer[T], manifest: dict[str, Any]) -> None:
        """Raises ReconcileError if the object that has the manifest's name is not ours."""
        namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
        answer = await self._client.get_or_none(informer.resource, namespace, name)
        if answer is not None:
            found = informer.decode(answer)
            if not drift.owned(manifest, found) and not drift.adoptable(manifest, found):
                raise reconcile_error.conflict(manifest["kind"], namespace, name)
        log.info("%s %s exists already", informer.resource.kind, name)

    async def ensure(self, informer: Informer[T], manifest: dict[str, Any]) -> None:
        """Creates the object, or corrects what of it differs from the manifest. One that is on its way out is waited
        for: its end is an event. Raises ReconcileError where somebody else's has the name."""
        metadata = manifest["metadata"]
        found = informer.get(metadata["namespace"], metadata["name"])
        if found is None:
            await self.create(informer, manifest)
            return
        if found.metadata.deletion_timestamp is not None:
            return
        if not drift.owned(manifest, found) and not drift.adoptable(manifest, found):
            raise reconcile_error.conflict(manifest["kind"], metadata["namespace"], metadata["name"])
        body = drift.correction(manifest, found)
        if "roleRef" in body:
            await self.delete(informer, found)  # cannot be changed; its end brings us back
        elif body:
            await self.patch(informer, found, body)

    async def fresh(self, informer: Informer[T], item: T) -> T | None:
        """The object as the API server has it, None when it has gone or is another one by now."""
        answer = await self._client.get_or_none(informer.resource, item.metadata.namespace, item.metadata.name)
        found = None if answer is None else informer.decode(answer)
        if found is None or found.metadata.uid != item.metadata.uid:
            return None
        informer.observe(found)
        return found

    async def pods(self, namespace: str, selector: str) -> list[dict[str, Any]]:
        """Pods as the API server has them, whole: the cache keeps just what every reconcile needs."""
        return await self._client.list(PODS, namespace, selector=selector)

    async def settle(self, informer: Informer[T], manifests: list[dict[str, Any]], present: list[T]) -> None:
        """Ensures all of these objects, and deletes those that are present and not among them."""
        wanted = {manifest["metadata"]["name"] for manifest in manifests}
        surplus = [
            item for item in present if item.metadata.name not in wanted and item.metadata.deletion_timestamp is None
        ]
        await together(
            [
                *(self.ensure(informer, manifest) for manifest in manifests),
                *(self.delete(informer, item) for item in surplus),
            ]
        )

    async def patch(
        self, informer: Informer[T], item: T, body: dict[str, Any], *, status: bool = False, guard: bool = False
    ) -> None:
        """Patches by JSON merge patch. With `guard` only if nobody has changed the object since the cache saw it: the
        patch holds a whole list that others write too. An object that is gone is no error."""
        meta = item.metadata
        own: dict[str, Any] = {"uid": meta.uid}
        if guard:
            own["resourceVersion"] = meta.resource_version
        body = {**body, "metadata": {**body.get("metadata", {}), **own}}
        await self._send_patch(informer, item, body, "status" if status else None)

    async def renew(self, informer: Informer[T], item: T, manifest: dict[str, Any]) -> None:
        """Gives exactly this clique the pod spec, labels and annotations of its manifest, all at once and whole: what
        the manifest doesn't say goes. An object that is gone is no error."""
        meta = manifest["metadata"]
        body = [
            {"op": "test", "path": "/metadata/uid", "value": item.metadata.uid},
            {"op": "add", "path": "/metadata/labels", "value": meta["labels"]},
            {"op": "add", "path": "/metadata/annotations", "value": meta.get("annotations", {})},
            {"op": "add", "path": "/spec/podSpec", "value": manifest["spec"]["podSpec"]},
        ]
        await self._send_patch(informer, item, body, None, JSON_PATCH)

    async def strategic(self, informer: Informer[T], item: T, body: dict[str, Any]) -> None:
        """Patches a built-in object by strategic merge patch (lists by their keys)."""
        body = {**body, "metadata": {"uid": item.metadata.uid}}
        await self._send_patch(informer, item, body, None, "application/strategic-merge-patch+json")

    async def remove_finalizer(self, informer: Informer[T], item: T, finalizer: str) -> None:
        """Takes one finalizer away from this very object, if it is there. The tests before the removal keep others'
        finalizers, and those of an object that has been made anew under the name: a patch may arrive late."""
        finalizers = item.metadata.finalizers or []
        if finalizer not in finalizers:
            return
        place = f"/metadata/finalizers/{finalizers.index(finalizer)}"
        meta = item.metadata
        same = {"op": "test", "path": "/metadata/uid", "value": meta.uid}
        body = [same, {"op": "test", "path": place, "value": finalizer}, {"op": "remove", "path": place}]
        try:
            answer = await self._client.patch(
                informer.resource, meta.namespace, meta.name, body, content_type=JSON_PATCH
            )
        except ApiError as error:
            if not error.not_found:
                raise
        else:
            informer.observe(informer.decode(answer))

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

    async def status(self, informer: Informer[Any], item: Any, status: msgspec.Struct, *, guard: bool = False) -> bool:
        """Writes a status where it differs from the one in the cache; says whether it did. `guard`: see `patch`."""
        if item.status == status:
            return False
        before = msgspec.to_builtins(item.status) if item.status is not None else {}
        after = msgspec.to_builtins(status)
        changed = {key: value for key, value in after.items() if key not in before or before[key] != value}
        if item.status is None:
            changed = models.wire(status)
        await self.patch(informer, item, {"status": changed}, status=True, guard=guard)
        return True

    async def warn(self, resource: Resource, item: Object, reason: str, note: str) -> None:
        """Says in an event what is wrong with an object."""
        await self.tell(resource, item, "Warning", reason, note)

    async def tell(
        self, resource: Resource, item: Object, kind: Literal["Normal", "Warning"], reason: str, note: str
    ) -> None:
        """Says something about an object in an event. That it cannot be said stops nothing."""
        manifest = events.event(
            resource,
            item.metadata,
            kind=kind,
            reason=reason,
            action="Reconcile",
            note=note,
            controller=CONTROLLER,
            timestamp=precise_now(),
        )
        try:
            await self._client.create(EVENTS, manifest)
        except REQUEST_FAILED as error:
            log.info("no event for %s: %s", item.metadata.name, error)

    async def delete(self, informer: Informer[T], item: T) -> None:
        """Deletes exactly this object, in the background."""
        meta = item.metadata
        await self._client.delete(informer.resource, meta.namespace, meta.name, uid=meta.uid)
        informer.observe_deletion(item)
