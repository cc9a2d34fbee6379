"""Variants of pod manifests."""

from __future__ import annotations

import copy
import secrets
from typing import Any

from mutants.registry import variant
from mutants.replacement import Original, alter, around, on_result_of
from reference_impl.api.pods import Pod
from reference_impl.plan import children, labels, names, pods, startup
from reference_impl.plan.children import Manifest
from reference_impl.plan.pods import PodBuilder


@variant("operator", "writes literal values of variables instead of references to labels", "CORE-008", "CORE-009")
@around(PodBuilder, "pod")
def _literal_variables(original: Original, self: PodBuilder, index: int, gang: str) -> Manifest:
    manifest = copy.deepcopy(original(self, index, gang))
    by_path = {f"metadata.labels['{key}']": value for key, value in manifest["metadata"]["labels"].items()}
    spec: dict[str, Any] = manifest["spec"]
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        for variable in container.get("env", ()):
            path = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            if path in by_path:
                del variable["valueFrom"]
                variable["value"] = by_path[path]
    return manifest


@variant("operator", "deletes excess pods of phase Unknown in the turn of running ones", "SCALE-015")
@on_result_of(pods, "deletion_rank")
def _unknown_is_running(result: tuple[float, ...], pod: Pod, target: str) -> tuple[float, ...]:
    return (result[0], 2, *result[2:]) if pod.status.phase == "Unknown" else result


@variant("operator", "writes its own variables in the reverse order", "CORE-008", "CORE-009")
@on_result_of(pods, "with_environment")
def _variables_reversed(spec: Manifest, _: Manifest, environment: list[Manifest]) -> Manifest:
    def container(old: Manifest) -> Manifest:
        env = old["env"]
        return {**old, "env": [*reversed(env[: len(environment)]), *env[len(environment) :]]}

    container_fields = [field for field in ("initContainers", "containers") if spec.get(field)]
    return {**spec, **{field: [container(item) for item in spec[field]] for field in container_fields}}


@variant("operator", "gives pods names with a random suffix of eight characters", "CORE-007")
@on_result_of(PodBuilder, "pod")
def _longer_suffixes(manifest: Manifest, *_: Any) -> Manifest:
    metadata = dict(manifest["metadata"])
    metadata["name"] = f"{metadata.pop('generateName')}{secrets.token_hex(4)}"
    return {**manifest, "metadata": metadata}


@variant("operator", "lets pods tolerate a taint of its scheduler", "CORE-014")
@on_result_of(PodBuilder, "pod")
def _tolerations_of_the_back_end(manifest: Manifest, *_: Any) -> Manifest:
    toleration = {"key": "scheduler.example.com/queue", "operator": "Exists"}
    spec = manifest["spec"]
    return {**manifest, "spec": {**spec, "tolerations": [toleration, *spec.get("tolerations", ())]}}


@variant("operator", "puts its waiting init container before those of the template", "CORE-014", "INV-006")
@on_result_of(startup, "with_init_container")
def _wait_first(spec: Manifest, _: Manifest, __: str, waits: dict[str, int], *___: Any) -> Manifest:
    *other_containers, wait = spec.get("initContainers") or [None]
    return {**spec, "initContainers": [wait, *other_containers]} if waits else spec


@variant("operator", "omits values from cliques that mean nothing, as typed libraries do", "CORE-015")
@on_result_of(children, "_clique_manifest")
def _empty_values_omitted(manifest: Manifest, *_: Any, **__: Any) -> Manifest:
    return {**manifest, "spec": {**manifest["spec"], "podSpec": _typed(manifest["spec"]["podSpec"])}}


@variant(
    "operator",
    "writes an init container of its own, with a volume, into the pod specs of cliques",
    "CORE-014",
    "CORE-015",
    conflict="scenes that write statuses of init containers know those of the template",
)
def _cliques_with_preparation() -> None:
    mount = {"name": "prepared", "mountPath": "/prepared"}
    init_container = {"name": "prepare", "image": "registry.example/prepare:1", "volumeMounts": [mount]}
    volume = {"name": "prepared", "emptyDir": {}}

    def clique(manifest: Manifest, *_: Any, **__: Any) -> Manifest:
        spec = manifest["spec"]["podSpec"]
        containers, volumes = spec.get("initContainers") or [], spec.get("volumes") or []
        prepared = {**spec, "initContainers": [*containers, init_container], "volumes": [*volumes, volume]}
        return {**manifest, "spec": {**manifest["spec"], "podSpec": prepared}}

    alter(children, "_clique_manifest", clique)


def _typed(value: Any) -> Any:
    """Return a value without empty lists and without a probe's initialDelaySeconds of 0."""
    if isinstance(value, dict):
        return {
            key: _typed(item)
            for key, item in value.items()
            if item != [] and not (key == "initialDelaySeconds" and item == 0)
        }
    return [_typed(item) for item in value] if isinstance(value, list) else value


@variant(
    "operator",
    "gives pods a further init container with a volume, and the ServiceAccount of their set",
    "CORE-008",
    "CORE-009",
    "CORE-014",
)
def _init_containers_of_its_own() -> None:
    helper = {
        "name": "grove-helper",
        "image": "registry.example/helper:1",
        "volumeMounts": [{"name": "grove-helper", "mountPath": "/grove-helper"}],
    }

    def pod(manifest: Manifest, *_: Any) -> Manifest:
        spec, tags = manifest["spec"], manifest["metadata"]["labels"]
        additions = {
            "initContainers": [helper, *spec.get("initContainers", ())],
            "volumes": [*spec.get("volumes", ()), {"name": "grove-helper", "emptyDir": {}}],
            "serviceAccountName": spec.get("serviceAccountName") or names.service_account(tags[labels.PART_OF]),
        }
        return {**manifest, "spec": {**spec, **additions}}

    alter(PodBuilder, "pod", pod)
