"""Runs on a cluster that is not one of the suite's: check the user's rights, and describe the effects for the cluster's
owner."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from conformance.errors import UsageError
from conformance.implementation import installation
from conformance.implementation.descriptor import Descriptor
from conformance.suite.scenes.api import Api
from kube.client import Client
from kube.resource import CRDS, Resource

ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
NEEDED_PERMISSIONS = (
    ("create", "", "namespaces", ""),
    ("delete", "", "namespaces", ""),
    ("create", "", "nodes", ""),
    ("patch", "", "nodes", ""),
    ("delete", "", "nodes", ""),
    ("create", "", "pods", ""),
    ("patch", "", "pods", "status"),
    ("delete", "", "pods", ""),
    ("watch", "", "events", ""),
    ("patch", "apiextensions.k8s.io", "customresourcedefinitions", ""),
    ("create", "admissionregistration.k8s.io", "validatingwebhookconfigurations", ""),
    ("create", "grove.io", "podcliquesets", ""),
    ("patch", "grove.io", "podcliques", "status"),
    ("create", "scheduler.grove.io", "podgangs", ""),
)
"""Verb, group, resource and subresource of requests that tests send in any namespace; a representative selection."""


def require_rights(api: Api, place: str) -> None:
    """Raise UsageError if the user of a kubeconfig lacks rights, with the requests that the user may not send."""
    if forbidden_requests := api.work(_forbidden_requests):
        hint = "give a kubeconfig of a cluster administrator"
        raise UsageError(f"its user may not {', '.join(forbidden_requests)}", where=place, hint=hint)


def effects(api: Api, implementations: Sequence[Descriptor]) -> list[str]:
    """Return one line for each kind of change that a run will make in a cluster, saying whether it stays."""
    crds = sorted(
        {
            name
            for implementation in implementations
            for path in implementation.manifests("crds")
            for name in _names(path)
        }
    )
    existing = set(api.names(CRDS.plural))
    changed_crds = [name for name in crds if name in existing]
    objects = sum(len(implementation.manifests("objects")) for implementation in implementations)
    deployed_implementations = [implementation for implementation in implementations if implementation.deployments]
    hooks = sum(len(implementation.manifests("webhooks")) for implementation in implementations)
    return [
        "makes a namespace and nodes for each test, and removes them after it",
        f"installs {len(crds)} CRDs, which stay"
        + (f"; of these it changes {', '.join(changed_crds)}" if changed_crds else ""),
        *([f"installs the objects of {objects} files, which stay"] if objects else []),
        *(
            f"deploys {implementation.name} by {implementation.start}, and removes what of that is new"
            for implementation in deployed_implementations
        ),
        *([f"installs the webhook configurations of {hooks} files, and removes them at the end"] if hooks else []),
    ]


async def _forbidden_requests(client: Client) -> list[str]:
    responses = await asyncio.gather(*(_is_allowed(client, *permission) for permission in NEEDED_PERMISSIONS))
    return [
        f"{verb} {'/'.join(filter(None, (resource, subresource)))}"
        for (verb, _, resource, subresource), is_allowed in zip(NEEDED_PERMISSIONS, responses, strict=True)
        if not is_allowed
    ]


async def _is_allowed(client: Client, verb: str, group: str, resource: str, subresource: str) -> bool:
    attributes = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
    review = {
        "apiVersion": ACCESS_REVIEWS.api_version,
        "kind": ACCESS_REVIEWS.kind,
        "spec": {"resourceAttributes": attributes},
    }
    response: Any = orjson.loads(await client.create(ACCESS_REVIEWS, review))
    return bool(response["status"]["allowed"])


def _names(path: Path) -> list[str]:
    return [crd["metadata"]["name"] for crd in installation.read_manifests(path, installation.text(path), _CRD)]


_CRD = ("CustomResourceDefinition",)
