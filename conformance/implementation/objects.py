"""Installation of objects of any kind that an implementation needs in the API server: queues, configuration, priority
classes, admission policies.

`install` returns once the objects are stored and admission policies are applied to requests.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from conformance.cluster.existing.marks import with_run_label_if_new
from conformance.documents import display_path
from conformance.errors import HarnessError, UsageError
from conformance.implementation.installation import MANAGER, Manifest
from kube.client import Client
from kube.errors import ApiError
from kube.resource import CONFIG_MAPS, Resource

TIMEOUT_SECONDS = 25.0
"""Seconds within which the API server must have accepted all objects and must apply all policies."""
RETRY_INTERVAL = 0.2
"""Seconds between two attempts."""
BUSY_CODES = (429, 500, 503, 504)
"""Status codes of responses after which a request is repeated."""
POLICIES = ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy")
BARRIER = "conformance.grove.io/barrier"
"""The label of the request that shows whether policies are applied. A mutating policy changes the label's value."""


@dataclass(frozen=True)
class DesiredObject:
    """An object to install, and the file that contains it."""

    manifest: Manifest
    path: Path

    @property
    def title(self) -> str:
        """Return the kind and the name of the object."""
        return f"{self.manifest['kind']} {self.manifest['metadata']['name']}"


CreatedObject = tuple[Resource, str | None, str]
"""Resource, namespace and name of an object."""


def check(path: Path, manifest: Manifest) -> None:
    """Raise UsageError for an object that belongs in another part of `install`."""
    for kind, part in (("CustomResourceDefinition", "crds"), ("WebhookConfiguration", "webhooks")):
        if manifest["kind"].endswith(kind):
            name = manifest["metadata"]["name"]
            hint = f"list its file in install.{part}"
            raise UsageError(
                f"the {manifest['kind']} {name} is not for install.objects", where=display_path(path), hint=hint
            )


async def install(
    client: Client, desired: Sequence[DesiredObject], groups: Collection[str], run: str = ""
) -> list[CreatedObject]:
    """Apply the objects in their order, and return the objects that did not exist before. `groups` are API groups of
    CRDs that were installed just now, whose kinds the API server may not list yet. If a run is given, the objects that
    did not exist before it get its label.

    Raises HarnessError with the API server's reason if an object is rejected.
    """
    deadline = time.monotonic() + TIMEOUT_SECONDS
    created: list[CreatedObject] = []
    for obj in desired:
        resource = await _resource(client, obj, groups, deadline)
        metadata = obj.manifest["metadata"]
        namespace = metadata.get("namespace") or "default" if resource.namespaced else None
        existing = await client.get_or_none(resource, namespace, metadata["name"])
        if existing is None:
            created.append((resource, namespace, metadata["name"]))
        manifest = with_run_label_if_new(obj.manifest, existing, run)
        await _apply(client, resource, DesiredObject(manifest, obj.path), deadline)
    for version, kind in sorted({(obj.manifest["apiVersion"], obj.manifest["kind"]) for obj in desired}):
        if kind in POLICIES:
            await _wait_until_applied(client, version, kind, deadline)
    return created


async def _resource(client: Client, desired: DesiredObject, groups: Collection[str], deadline: float) -> Resource:
    """Find the resource for an object's kind through API discovery. Raises HarnessError if the API server does not
    serve the kind."""
    api_version, kind = desired.manifest["apiVersion"], desired.manifest["kind"]
    group, _, version = api_version.rpartition("/")
    path = f"/apis/{api_version}" if group else f"/api/{version}"
    while True:
        try:
            resources = orjson.loads(await client.request("GET", path))["resources"]
        except ApiError as error:
            if error.status not in (404, *BUSY_CODES):
                raise _rejection(desired, error.message) from error
            resources = []
        for entry in resources:
            if entry["kind"] == kind and "/" not in entry["name"]:
                return Resource(group, version, entry["name"], kind, entry["namespaced"])
        if group not in groups or time.monotonic() > deadline:
            raise HarnessError(
                f"{desired.title} cannot be created: the API server serves no {kind} of {api_version}",
                where=display_path(desired.path),
                hint="is its CRD among those of install.crds?",
            )
        await asyncio.sleep(RETRY_INTERVAL)


async def _apply(client: Client, resource: Resource, desired: DesiredObject, deadline: float) -> None:
    manifest = desired.manifest
    if resource.namespaced and not manifest["metadata"].get("namespace"):
        manifest = {**manifest, "metadata": {**manifest["metadata"], "namespace": "default"}}
    while True:
        try:
            await client.apply(resource, manifest, manager=MANAGER)
            return
        except ApiError as error:
            if error.status not in BUSY_CODES or time.monotonic() > deadline:
                raise _rejection(desired, error.message) from error
        await asyncio.sleep(RETRY_INTERVAL)


def _rejection(desired: DesiredObject, reason: str) -> HarnessError:
    return HarnessError(
        f"the API server rejected {desired.title}: {' '.join(reason.split())}",
        where=display_path(desired.path),
        hint="fix the object, or what it needs",
    )


async def _wait_until_applied(client: Client, api_version: str, kind: str, deadline: float) -> None:
    """Wait until the API server applies all policies of a kind that have been created so far.

    The API server refreshes its policies from its watches about once a second, all of them at the same time. Therefore
    one more policy is created, which matches a dry-run request of the suite, and it is deleted once it has an effect:
    by then all earlier policies have an effect.
    """
    unique_name = f"grove-conformance-{secrets.token_hex(4)}"
    group, _, version = api_version.partition("/")
    resources = [Resource(group, version, _plural(name), name, namespaced=False) for name in (kind, f"{kind}Binding")]
    bodies = [_policy(kind, unique_name), _binding(kind, unique_name)]
    try:
        for resource, body in zip(resources, bodies, strict=True):
            metadata = {"apiVersion": api_version, "kind": resource.kind, "metadata": {"name": unique_name}}
            await client.apply(resource, {**metadata, **body}, manager=MANAGER)
        while not await _has_effect(client, unique_name):
            if time.monotonic() > deadline:
                raise HarnessError(
                    f"the API server does not apply policies of the kind {kind} after {TIMEOUT_SECONDS:g} s"
                )
            await asyncio.sleep(RETRY_INTERVAL)
    finally:
        for resource in reversed(resources):
            await client.delete(resource, None, unique_name)


def _plural(kind: str) -> str:
    return f"{kind.lower()[:-1]}ies" if kind.endswith("y") else f"{kind.lower()}s"


def _policy(kind: str, unique_name: str) -> Mapping[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    constraints = {"resourceRules": [rule], "objectSelector": {"matchLabels": {BARRIER: unique_name}}}
    spec: dict[str, Any] = {"matchConstraints": constraints, "failurePolicy": "Fail"}
    if kind == "ValidatingAdmissionPolicy":
        return {"spec": {**spec, "validations": [{"expression": "false", "message": unique_name}]}}
    expression = f'Object{{metadata: Object.metadata{{labels: {{"{BARRIER}": "{unique_name}-seen"}}}}}}'
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    return {"spec": {**spec, "reinvocationPolicy": "Never", "mutations": [mutation]}}


def _binding(kind: str, unique_name: str) -> Mapping[str, Any]:
    actions = {"validationActions": ["Deny"]} if kind == "ValidatingAdmissionPolicy" else {}
    return {"spec": {"policyName": unique_name, **actions}}


async def _has_effect(client: Client, unique_name: str) -> bool:
    """Return whether the barrier's policy rejects or changes a request."""
    labels = {BARRIER: unique_name}
    probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": unique_name, "labels": labels}}
    params = {"dryRun": "All", "fieldManager": MANAGER}
    try:
        response = await client.request("POST", CONFIG_MAPS.path("default"), params=params, body=probe)
    except ApiError as error:
        return unique_name in error.message and error.status not in (404, *BUSY_CODES)
    return bool(orjson.loads(response)["metadata"]["labels"][BARRIER] != unique_name)
