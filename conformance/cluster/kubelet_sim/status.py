"""Status writes like those of a kubelet: a status is written only if the object is still in the observed state."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

from kube.client import STRATEGIC_PATCH, Client
from kube.errors import ApiError
from kube.informer import Informer
from kube.objects import Object

T = TypeVar("T", bound=Object)


async def patch_status(client: Client, cache: Informer[T], item: T, status: Mapping[str, object]) -> None:
    """Patch the status of an object, if the object is still in the observed state. Raises ApiError for errors other
    than a conflict or a missing object."""
    guard = {"uid": item.metadata.uid, "resourceVersion": item.metadata.resource_version}
    body = {"metadata": guard, "status": status}
    object_path = (item.metadata.namespace or None, item.metadata.name)
    try:
        response = await client.patch(
            cache.resource, *object_path, body, content_type=STRATEGIC_PATCH, subresource="status"
        )
    except ApiError as error:
        if not (error.conflict or error.not_found):
            raise
        return  # another client was faster: its change arrives through the watch
    cache.observe(cache.decode(response))


def now() -> str:
    """Return the current time in the format of Kubernetes."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
