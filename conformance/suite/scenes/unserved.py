"""Delete all objects of a kind, or temporarily delete the kind's CRD from a cluster of the suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from conformance.errors import ClusterTooSlow
from conformance.implementation import installation
from conformance.suite.scenes.api import Api
from kube.client import MERGE_PATCH, Client
from kube.errors import ApiError
from kube.resource import CRDS, Resource


@contextmanager
def unserved(api: Api, kind: str, patience: float) -> Iterator[None]:
    """Delete the CRD of a kind (`plural.group`) with all its objects, and recreate the CRD at the end of the context.
    Raises ClusterTooSlow if the API server still serves the kind `patience` seconds after the deletion."""
    resource = api.of_plural(kind)
    crd = _manifest(api.get(CRDS.plural, None, kind))
    api.delete(CRDS.plural, None, [kind])
    try:
        _await_end(api, resource, patience)
        yield
    finally:
        api.work(lambda client: installation.install_crds(client, [crd]))


def clear(api: Api, kind: str, patience: float) -> None:
    """Delete all objects of a kind (`plural.group`), regardless of finalizers, because namespaces of earlier scenes may
    still be terminating. Raises ClusterTooSlow if some still exist after `patience` seconds."""
    resource = api.of_plural(kind)
    if remaining := _rest(lambda: api.work(lambda client: _delete_all(client, resource)), patience):
        raise ClusterTooSlow(f"{resource}: {remaining} exist {patience:g} s after their deletion")


def _rest(look: Callable[[], list[str]], patience: float) -> str:
    """Poll `look` for up to `patience` seconds. Return an empty string once it returns nothing, or its last result as
    text."""
    try:
        Retrying(retry=retry_if_result(bool), wait=wait_fixed(0.2), stop=stop_after_delay(patience))(look)
    except RetryError as error:
        return ", ".join(error.last_attempt.result())
    return ""


async def _delete_all(client: Client, resource: Resource) -> list[str]:
    """Request the deletion of each object and remove its finalizers. Return the names of the objects that existed."""
    objects = await client.list(resource)
    for metadata in (obj["metadata"] for obj in objects):
        namespace, name = metadata["namespace"], metadata["name"]
        await client.delete(resource, namespace, name)
        with _unless_missing():
            await client.patch(resource, namespace, name, {"metadata": {"finalizers": None}}, content_type=MERGE_PATCH)
    return [f"{obj['metadata']['namespace']}/{obj['metadata']['name']}" for obj in objects]


@contextmanager
def _unless_missing() -> Iterator[None]:
    """Ignore an error that says that an object does not exist."""
    try:
        yield
    except ApiError as error:
        if not error.not_found:
            raise


def _await_end(api: Api, resource: Resource, patience: float) -> None:
    if traces := _rest(lambda: _traces(api, resource), patience):
        raise ClusterTooSlow(f"the API server serves {resource} {patience:g} s after its CRD was deleted: {traces}")


def _traces(api: Api, resource: Resource) -> list[str]:
    """Return descriptions of the signs that the kind is still served."""
    traces = []
    with _unless_missing():
        crd = api.get(CRDS.plural, None, str(resource))
        conditions = {c["type"]: c.get("message", "") for c in crd.get("status", {}).get("conditions", [])}
        traces.append(f"the CRD exists ({conditions.get('Terminating') or 'it is not being deleted'})")
    if str(resource) in api.discover():
        traces.append("discovery names it")
    if api.work(lambda client: _listed(client, resource)):
        traces.append("its objects can be listed")
    return traces


async def _listed(client: Client, resource: Resource) -> bool:
    listed = False
    with _unless_missing():
        await client.request("GET", resource.path(), params={"limit": "1"})
        listed = True
    return listed


def _manifest(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored CRD in a form that can be created, without the fields that the API server has added."""
    metadata = {key: stored["metadata"][key] for key in ("name", "labels", "annotations") if key in stored["metadata"]}
    return {"apiVersion": CRDS.api_version, "kind": CRDS.kind, "metadata": metadata, "spec": stored["spec"]}
