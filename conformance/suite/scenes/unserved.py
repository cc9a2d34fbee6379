"""Take a kind from a cluster of the suite for a while, with its CRD."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tenacity import RetryError, Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from conformance.errors import ClusterTooSlow
from conformance.implementation import installation
from conformance.suite.scenes.api import Api
from kube.client import Client
from kube.errors import ApiError
from kube.resource import CRDS, Resource


@contextmanager
def unserved(api: Api, kind: str, patience: float) -> Iterator[None]:
    """Delete the CRD of a kind (`plural.group`) with all its objects, and create it again in the end. Raises
    ClusterTooSlow if the API server serves the kind for longer than `patience` seconds after that."""
    resource = api.of_plural(kind)
    crd = _manifest(api.get(CRDS.plural, None, kind))
    api.delete(CRDS.plural, None, [kind])
    try:
        _await_end(api, resource, patience)
        yield
    finally:
        api.work(lambda client: installation.install_crds(client, [crd]))


def _await_end(api: Api, resource: Resource, patience: float) -> None:
    left: list[str] = []

    def over() -> bool:
        left[:] = _left(api, resource)
        return not left

    try:
        Retrying(retry=retry_if_not_result(bool), wait=wait_fixed(0.2), stop=stop_after_delay(patience))(over)
    except RetryError as error:
        raise ClusterTooSlow(
            f"the API server serves {resource} {patience:g} s after its CRD was deleted: {', '.join(left)}"
        ) from error


def _left(api: Api, resource: Resource) -> list[str]:
    """Return what still shows the kind, in words."""
    left = []
    try:
        crd = api.get(CRDS.plural, None, str(resource))
        conditions = {c["type"]: c.get("message", "") for c in crd.get("status", {}).get("conditions", [])}
        left.append(f"the CRD exists ({conditions.get('Terminating') or 'it is not being deleted'})")
    except ApiError as error:
        if not error.not_found:
            raise
    if str(resource) in api.discover():
        left.append("discovery names it")
    if api.work(lambda client: _listed(client, resource)):
        left.append("its objects can be listed")
    return left


async def _listed(client: Client, resource: Resource) -> bool:
    try:
        await client.request("GET", resource.path(), params={"limit": "1"})
    except ApiError as error:
        if not error.not_found:
            raise
        return False
    return True


def _manifest(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored CRD as it can be created: without what the API server has added."""
    metadata = {key: stored["metadata"][key] for key in ("name", "labels", "annotations") if key in stored["metadata"]}
    return {"apiVersion": CRDS.api_version, "kind": CRDS.kind, "metadata": metadata, "spec": stored["spec"]}
