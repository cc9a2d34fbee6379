"""A scene with a set whose templates set every field of a pod spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.grove import pod_fields, pod_specs
from conformance.grove.expected import expected
from conformance.grove.fields import at, items, text
from conformance.grove.kinds import PODCLIQUESETS
from conformance.grove.served import VERSION
from conformance.testing import accepted_pods, predicates
from conformance.testing.scene import Scene, SceneEnvironment

PODS_EXIST = "all pods exist"
"""The step at which all pods have been created. They are never bound, because there are no nodes."""

_TEMPLATE_PATH = ("template", "cliques", "[]", "spec", "podSpec")
_POD_SPEC_PATHS = {"podcliquesets.grove.io": _TEMPLATE_PATH, "podcliques.grove.io": ("podSpec",)}
"""Kind → the path of the pod spec in its spec, for every kind that has a pod spec."""


class SetWithEveryPodField(Scene):
    """A set with a clique for each template of `fixtures/pods/fields.yaml`. Every field of the pod spec that the API
    server and the CRDs of the implementation serve is set in one of the templates. `accepted_pods` has the pods that
    the API server would store for the templates, and `removed_fields` has the fields whose values it rejects."""

    def play(self, env: SceneEnvironment) -> None:
        self.namespace, self.scheduler, self.set_name = env.namespace, env.implementation.scheduler_name, "every"
        schemas, served_schemas = accepted_pods.openapi_schemas(env), list(_served_schemas(env))
        specs = {}
        for template in pod_fields.templates():
            specs[template.name] = pod_fields.pod_spec(schemas, template, env.namespace)
            for schema in served_schemas:
                specs[template.name] = pod_specs.prune(specs[template.name], schema)
        for obj in _objects_for_names(env.namespace, next(iter(specs.values()))):
            env.create(obj)
        workload = env.placed(_set_manifest(self.set_name, specs))
        self.removed_fields = accepted_pods.remove_rejected_fields(env, workload)
        self.accepted_pods = accepted_pods.request_pods(env, workload)
        self.expected = expected(workload)
        env.create(workload)
        env.wait_for(PODS_EXIST, predicates.all_exist(list(self.expected.cliques.values())))


def _served_schemas(env: SceneEnvironment) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas of pod specs in the CRDs."""
    replies = env.dry_run.all([env.dry_run.get("customresourcedefinitions", kind) for kind in _POD_SPEC_PATHS])
    for path, reply in zip(_POD_SPEC_PATHS.values(), replies, strict=True):
        for version in items(reply.object, "spec", "versions"):
            if text(version, "name") == VERSION:
                schema = at(version, "schema", "openAPIV3Schema", "properties", "spec")
                for step in path:
                    schema = at(schema, "items") if step == "[]" else at(schema, "properties", step)
                if isinstance(schema, Mapping):
                    yield schema


def _objects_for_names(name: str, pod_spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects that the pod specs reference. Admission compares the pods with these objects."""
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    yield {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": pod_spec.get("priority", 0),
        "preemptionPolicy": pod_spec.get("preemptionPolicy", "PreemptLowerPriority"),
    }
    yield {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": name},
        "handler": "runc",
        "overhead": {"podFixed": pod_spec.get("overhead", {})},
    }


def _set_manifest(name: str, specs: Mapping[str, Any]) -> dict[str, Any]:
    cliques = [
        {"name": clique, "spec": {"roleName": clique, "replicas": 1, "minAvailable": 1, "podSpec": spec}}
        for clique, spec in specs.items()
    ]
    return {
        "apiVersion": PODCLIQUESETS.api_version,
        "kind": PODCLIQUESETS.kind,
        "metadata": {"name": name},
        "spec": {"replicas": 1, "template": {"cliques": cliques}},
    }
