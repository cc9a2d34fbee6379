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
from http import HTTPStatus
from pathlib import Path
from typing import Any

import orjson

from conformance.cluster.existing.marks import with_run_label_if_new
from conformance.documents import display_path
from conformance.errors import HarnessError, UsageError
from conformance.implementation.installation import MANAGER, Manifest, served_resources
from kube.client import Client
from kube.errors import ApiError
from kube.resource import CONFIG_MAPS, Resource

TIMEOUT_SECONDS = 25.0
"""Seconds within which the API server must have accepted all objects and must apply all policies."""
RETRY_INTERVAL = 0.2
"""Seconds between two attempts."""
BUSY_CODES = (429, 500, 503, 504)
"""Status codes of responses after which a request is repeated."""
MUTATING = "MutatingAdmissionPolicy"
POLICIES = (MUTATING, "ValidatingAdmissionPolicy")
MUTATING_POLICIES = Resource("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", MUTATING, False)
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
    client: Client, desired: Sequence[DesiredObject], crds: Sequence[Manifest], run: str = ""
) -> list[CreatedObject]:
    """Apply the objects in their order, and return the objects that did not exist before. `crds` were installed just
    now: the API server may not list their kinds yet, nor apply mutating policies to them. If a run is given, the
    objects that did not exist before it get its label.

    Raises HarnessError with the API server's reason if an object is rejected.
    """
    groups = {crd["spec"]["group"] for crd in crds}
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
    kinds = {(obj.manifest["apiVersion"], obj.manifest["kind"]) for obj in desired}
    if crds and await _has_mutating_policies(client):
        kinds.add((MUTATING_POLICIES.api_version, MUTATING))
    for version, kind in sorted(kinds):
        if kind in POLICIES:
            await _wait_until_applied(client, version, kind, crds if kind == MUTATING else (), deadline)
    return created


async def _has_mutating_policies(client: Client) -> bool:
    """Return whether there are mutating policies, such as those of a cluster's owner. Return False if the API server
    does not serve this version, as before Kubernetes 1.36, or if the user may not list them."""
    try:
        return bool(await client.list(MUTATING_POLICIES))
    except ApiError as error:
        if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            return False
        raise


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


async def _wait_until_applied(
    client: Client, api_version: str, kind: str, crds: Sequence[Manifest], deadline: float
) -> None:
    """Wait until the API server applies all policies of a kind that have been created so far, to built-in kinds and to
    those of `crds`.

    The API server refreshes its policies from its watches about once a second, all of them at the same time. Therefore
    one more policy is created, which matches dry-run requests of the suite, and it is deleted once it has an effect:
    by then all earlier policies have an effect. For mutating policies the API server also needs the schema of the kind,
    which it fetches every 5 s; until then it responds with 503 to each request that such a policy matches.
    """
    unique_name = f"grove-conformance-{secrets.token_hex(4)}"
    group, _, version = api_version.partition("/")
    resources = [Resource(group, version, _plural(name), name, namespaced=False) for name in (kind, f"{kind}Binding")]
    custom_resources = [resource for crd in crds for resource in served_resources(crd)]
    groups = {resource.group for resource in custom_resources}
    bodies = [_policy(kind, unique_name, groups), _binding(kind, unique_name)]
    try:
        for resource, body in zip(resources, bodies, strict=True):
            metadata = {"apiVersion": api_version, "kind": resource.kind, "metadata": {"name": unique_name}}
            await client.apply(resource, {**metadata, **body}, manager=MANAGER)
        while not (
            await _has_effect(client, unique_name) and await _have_schemas(client, unique_name, custom_resources)
        ):
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


def _policy(kind: str, unique_name: str, groups: Collection[str]) -> Mapping[str, Any]:
    """Return the barrier's policy. It matches ConfigMaps and objects of `groups` that have the barrier's label."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]
    if groups:
        rules.append({"apiGroups": sorted(groups), "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*"]})
    constraints = {"resourceRules": rules, "objectSelector": {"matchLabels": {BARRIER: unique_name}}}
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
    try:
        response = await _create_probe(client, unique_name, CONFIG_MAPS)
    except ApiError as error:
        return unique_name in error.message and error.status not in (404, *BUSY_CODES)
    return bool(orjson.loads(response)["metadata"]["labels"][BARRIER] != unique_name)


async def _have_schemas(client: Client, unique_name: str, resources: Sequence[Resource]) -> bool:
    """Return whether the API server has the schemas that it needs to mutate objects of `resources`. Any other response
    than 503 shows it, such as the rejection of an object without a spec."""
    for resource in resources:
        try:
            await _create_probe(client, unique_name, resource)
        except ApiError as error:
            if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
                return False
    return True


async def _create_probe(client: Client, unique_name: str, resource: Resource) -> bytes:
    """Create an object with the barrier's label in a dry run, and return the response."""
    metadata = {"name": unique_name, "labels": {BARRIER: unique_name}}
    probe = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    params = {"dryRun": "All", "fieldManager": MANAGER}
    path = resource.path("default" if resource.namespaced else None)
    return await client.request("POST", path, params=params, body=probe)
