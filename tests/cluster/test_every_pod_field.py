"""Tests, on a real API server, of pod specs that set every field: the API server accepts the specs, the specs omit no
field, and the created pod changes if a field is removed."""

from __future__ import annotations

import asyncio
import copy
import re
import zlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import orjson
import pytest

from conformance.cluster.controlplane import Cluster
from conformance.cluster.settings import ClusterSettings
from conformance.grove import pod_fields
from kube.client import Answer, Client
from tests.conftest import THOROUGH

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

Spec = dict[str, Any]
NAME = "every-field"
PREREQUISITES: dict[str, Spec] = {
    "/api/v1/namespaces/default/serviceaccounts": {},
    "/apis/scheduling.k8s.io/v1/priorityclasses": {"value": 1000, "preemptionPolicy": "Never"},
    "/apis/node.k8s.io/v1/runtimeclasses": {"handler": "runc", "overhead": {"podFixed": {"cpu": "10m"}}},
}
FIELDS_WITHOUT_EFFECT = {
    "apiVersion": "v1 is the only value",
    "overhead": "admission writes it",
    "overhead.cpu": "admission writes it",
    "preemptionPolicy": "admission writes it",
    "priority": "admission writes it",
    "restartPolicy": "Grove's documents differ about other values than the default (OBJ-257)",
    "serviceAccount": "an alias of serviceAccountName",
    "serviceAccountName": "an alias of serviceAccount",
    "stopSignal": "a feature gate is off",
    "successThreshold": "1 is the only value in two of three probes",
    "clusterTrustBundle": "a feature gate is off",
    "podCertificate": "a feature gate is off",
    "hostPort": "it is the container's port in the host's network",
}
"""Fields whose removal does not change the created pod: part of their path → reason."""
TRIED_SHARE = 1 if THOROUGH else 5
"""How many fields there are for each field whose removal is tried: each removal is a pod of 20 KiB."""
UNSET_FIELDS = {
    "EphemeralContainer": "Kubernetes refuses new pods that have some",
    "ObjectMeta": "templates of volume claims have labels and annotations only",
    "PodSchedulingGate": "Grove sets them",
    "PodSchedulingGroup": "back-ends set it",
    "TopologySpreadConstraint": "a new PodCliqueSet must not have any",
    "TypedLocalObjectReference.apiGroup": "claims, which are sources, have none",
    "TypedObjectReference.apiGroup": "claims, which are sources, have none",
    "TypedObjectReference.namespace": "a feature gate is off, and it excludes dataSource",
    "ResourceRequirements.claims": "of the resources of pods",
}
"""Types and fields that no template sets, in addition to the fields that the templates exclude: name → reason."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GROVE_CONFORMANCE_STATE", str(tmp_path_factory.mktemp("state")))
        cluster = Cluster.up("pod-fields", settings=ClusterSettings(audit=False, scheduler=False), owner=True)
        yield cluster
        cluster.down()


class DryRunClient:
    """A client of the API server that creates pods as dry runs."""

    def __init__(self, client: Client) -> None:
        self._client, self._semaphore = client, asyncio.Semaphore(8)

    async def create(self, spec: Spec, namespace: str = "default") -> Answer:
        body = {"metadata": {"name": "pod"}, "spec": spec}
        async with self._semaphore:
            path = f"/api/v1/namespaces/{namespace}/pods"
            return await self._client.exchange("POST", path, params={"dryRun": "All"}, body=body)

    async def create_object(self, path: str, body: Spec) -> None:
        answer = await self._client.exchange("POST", path, body=body)
        assert answer.status in (201, 409), answer.content[:500]

    async def schemas(self) -> Spec:
        answer = await self._client.exchange("GET", "/openapi/v3/api/v1")
        schemas: Spec = orjson.loads(answer.content)["components"]["schemas"]
        return schemas


@pytest.fixture
async def pods(cluster: Cluster) -> AsyncIterator[DryRunClient]:
    async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="test-pod-fields") as client:
        pods = DryRunClient(client)
        for path, body in PREREQUISITES.items():
            await pods.create_object(path, {"metadata": {"name": NAME}, **body})
        yield pods


def generated_specs(schemas: Spec) -> dict[str, Spec]:
    return {template.name: pod_fields.pod_spec(schemas, template, NAME) for template in pod_fields.templates()}


async def test_the_api_server_accepts_every_field(pods: DryRunClient) -> None:
    for name, spec in generated_specs(await pods.schemas()).items():
        answer = await pods.create(spec)
        assert answer.status == 201, f"{name}: {answer.content[:2000]!r}"


async def test_pod_security_permits_the_first_template_only(pods: DryRunClient) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await pods.create_object("/api/v1/namespaces", {"metadata": {"name": "restricted", "labels": labels}})
    await pods.create_object("/api/v1/namespaces/restricted/serviceaccounts", {"metadata": {"name": NAME}})
    specs = generated_specs(await pods.schemas())
    statuses = {name: (await pods.create(spec, "restricted")).status for name, spec in specs.items()}
    assert statuses == {name: 201 if name == "restricted" else 403 for name in specs}


async def test_a_missing_field_changes_the_created_pod(pods: DryRunClient) -> None:
    """CORE-014 detects a missing field only if the value of the field appears in the created pod."""
    has_effect: dict[str, bool] = {}
    for spec in generated_specs(await pods.schemas()).values():
        created_spec = orjson.loads((await pods.create(spec)).content)["spec"]
        steps_by_path = {
            path: steps
            for steps in nested_paths(spec)
            if is_tried(path := path_without_indices(steps)) and not has_effect.get(path)
        }
        answers = await asyncio.gather(*(pods.create(spec_without(spec, steps)) for steps in steps_by_path.values()))
        for path, answer in zip(steps_by_path, answers, strict=True):
            has_effect[path] = answer.status != 201 or orjson.loads(answer.content)["spec"] != created_spec
    paths_without_effect = [path for path, is_noticed in has_effect.items() if not is_noticed]
    assert len(has_effect) > (500 if THOROUGH else 80)
    assert [
        path
        for path in paths_without_effect
        if not any(f".{key}." in f".{path}.".replace("[]", "") for key in FIELDS_WITHOUT_EFFECT)
    ] == []


async def test_every_field_is_set_or_listed(pods: DryRunClient) -> None:
    """Each field that a new version of Kubernetes adds has to be set by a template, or listed in this module."""
    schemas = await pods.schemas()
    by_kind = {name.rpartition(".")[2]: schema for name, schema in schemas.items() if pod_fields.is_of_pods(name)}
    used_fields: set[str] = set()
    for spec in generated_specs(schemas).values():
        gather_fields(by_kind, "PodSpec", spec, used_fields)
    excluded_fields = {key for template in pod_fields.templates() for key in template.excluded} | UNSET_FIELDS.keys()
    assert [
        field
        for field in reachable_fields(by_kind)
        if not {field, field.partition(".")[0]} & (used_fields | excluded_fields)
    ] == []
    excluded_by_all = set.intersection(*(set(template.excluded) for template in pod_fields.templates()))
    assert not {key for key in excluded_by_all & used_fields if not key[0].islower()}


async def test_an_invented_field_is_set_at_every_level(pods: DryRunClient) -> None:
    schemas = copy.deepcopy(await pods.schemas())
    types = ("PodSpec", "Container", "SecurityContext", "HTTPGetAction", "VolumeMount", "KeyToPath", "SecretProjection")
    for type_name in types:
        schemas[f"io.k8s.api.core.v1.{type_name}"]["properties"]["invented"] = {"type": "string"}
    spec = generated_specs(schemas)["restricted"]
    holders = {
        steps[-2] if isinstance(steps[-2:][0], str) else steps[-3]
        for steps in nested_paths(spec)
        if steps[-1] == "invented" and len(steps) > 2
    }
    assert spec["invented"].startswith("invented-")
    assert {"containers", "initContainers", "securityContext", "httpGet", "volumeMounts", "items", "secret"} <= holders


def nested_paths(value: Any, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield (*steps, key)
        yield from nested_paths(item, (*steps, key))


def is_tried(path: str) -> bool:
    """Return whether a field is removed in this run: always the same share of all fields."""
    return zlib.crc32(path.encode()) % TRIED_SHARE == 0


def path_without_indices(steps: tuple[str | int, ...]) -> str:
    """Return a path without indices, with `containers` in place of `initContainers`."""
    path = re.sub(r"\.\d+", "[]", ".".join(map(str, steps)))
    return path.replace("initContainers", "containers")


def spec_without(spec: Spec, steps: tuple[str | int, ...]) -> Spec:
    changed_spec = holder = copy.deepcopy(spec)
    for step in steps[:-1]:
        holder = holder[step]  # type: ignore[index]
    del holder[steps[-1]]  # type: ignore[arg-type]
    return changed_spec


def referenced_type(schema: Spec) -> str:
    schema = schema.get("items", schema)
    references = [part["$ref"] for part in [schema, *schema.get("allOf", ())] if "$ref" in part]
    return str(references[0]).rpartition(".")[2] if references else ""


def gather_fields(types: Spec, type_name: str, value: Any, used_fields: set[str]) -> None:
    """Add the fields of a value and of its nested values to `used_fields`, as `Type.field`."""
    for item in value if isinstance(value, list) else [value]:
        for field, schema in types.get(type_name, {}).get("properties", {}).items():
            if isinstance(item, dict) and field in item:
                used_fields.add(f"{type_name}.{field}")
                gather_fields(types, referenced_type(schema), item[field], used_fields)


def reachable_fields(types: Spec, type_name: str = "PodSpec", visited: set[str] | None = None) -> list[str]:
    """Return all fields that a pod spec can have, as `Type.field`, except the fields of types in UNSET."""
    visited = set() if visited is None else visited
    if type_name in visited or type_name in UNSET_FIELDS or type_name not in types:
        return []
    visited.add(type_name)
    fields = types[type_name].get("properties", {})
    inner = [name for schema in fields.values() for name in reachable_fields(types, referenced_type(schema), visited)]
    return [*(f"{type_name}.{field}" for field in fields), *inner]
