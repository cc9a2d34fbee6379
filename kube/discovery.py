"""Aggregated discovery: reads all resources that an API server serves in two requests, regardless of the number of API
groups."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection

import orjson

from kube.client import Client
from kube.resource import Resource

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def served_resources(client: Client, verbs: Collection[str] = ()) -> dict[str, Resource]:
    """Return every resource that has all the `verbs`, keyed by `plural.group` (`pods.` for the core group), in its
    preferred version. Raises ApiError if a request is refused."""
    resources: dict[str, Resource] = {}
    async for resource, offered in _resources(client):
        if set(verbs) <= offered:
            resources.setdefault(f"{resource.plural}.{resource.group}", resource)
    return resources


async def resources_by_kind(client: Client) -> dict[tuple[str, str], Resource]:
    """Return every resource that can be created, in each version, keyed by API version and kind. Raises ApiError if a
    request is refused."""
    resources = [resource async for resource, verbs in _resources(client) if "create" in verbs]
    return {(resource.api_version, resource.kind): resource for resource in resources}


async def _resources(client: Client) -> AsyncIterator[tuple[Resource, set[str]]]:
    """Yield each resource with its verbs, in each version, the preferred version first."""
    for path in ("/api", "/apis"):
        answer = await client.request("GET", path, headers={"Accept": _AGGREGATED})
        for group in orjson.loads(answer).get("items", []):
            name = group.get("metadata", {}).get("name", "")
            for version in group.get("versions", []):
                for entry in version.get("resources", []):
                    kind = entry.get("responseKind", {}).get("kind", "")
                    namespaced = entry.get("scope") == "Namespaced"
                    resource = Resource(name, version["version"], entry["resource"], kind, namespaced)
                    yield resource, set(entry.get("verbs") or ())
