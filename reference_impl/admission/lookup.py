"""Queries of the webhooks. They bypass the cache, because it might not contain an object that was created immediately
before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
import orjson

from kube.client import Client
from reference_impl.api.models import (
    PODCLIQUES,
    PODCLIQUESETS,
    SCALING_GROUPS,
    TOPOLOGY_BINDINGS,
    ClusterTopologyBinding,
)

_SCALABLE_RESOURCES = {resource.plural: resource for resource in (PODCLIQUES, SCALING_GROUPS)}
_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class ClusterLookup:
    """Queries to the API server; implements `server.Lookup`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def levels(self, binding: str) -> list[str] | None:
        """Return the domains of a ClusterTopologyBinding, broadest first, or None if the binding does not exist. Raises
        ApiError if the request is refused."""
        content = await self._client.get_or_none(TOPOLOGY_BINDINGS, None, quote(binding, safe=""))
        if content is None:
            return None
        return [level.domain for level in msgspec.json.decode(content, type=ClusterTopologyBinding).spec.levels]

    async def pod_clique_set(self, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return a PodCliqueSet as JSON, or None if it does not exist. Raises ApiError if the request is refused."""
        content = await self._client.get_or_none(PODCLIQUESETS, namespace, quote(name, safe=""))
        return None if content is None else orjson.loads(content)

    async def labels(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Return the labels of a PodClique or a PodCliqueScalingGroup, or None if the object does not exist or has no
        labels."""
        if resource not in _SCALABLE_RESOURCES:
            return None
        content = await self._client.get_or_none(_SCALABLE_RESOURCES[resource], namespace, quote(name, safe=""))
        return None if content is None else orjson.loads(content)["metadata"].get("labels")

    async def own_user(self) -> str:
        """Return the user name of this process, which the authorizer exempts, regardless of the credentials in use."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        answer = orjson.loads(await self._client.request("POST", _REVIEWS, body=body))
        return str(answer["status"]["userInfo"]["username"])
