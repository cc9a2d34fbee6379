"""Mutants of pods whose template has native sidecars and init containers, if the operator adds its own init container
or a scale-out adds replicas."""

from __future__ import annotations

from typing import Any

from mutants.registry import mutant
from mutants.replacement import alter, on_result_of
from reference_impl.plan import children, labels, pods, startup
from reference_impl.plan.children import Manifest


@mutant("operator", "makes init containers of sidecars when it adds its own", "CORE-014")
@on_result_of(startup, "with_init_container")
def _waits_end_sidecars(spec: Manifest, _: Manifest, __: str, waits: dict[str, int], *___: Any) -> Manifest:
    if not waits:
        return spec
    containers = [{key: c[key] for key in c if key != "restartPolicy"} for c in spec["initContainers"]]
    return {**spec, "initContainers": containers}


@mutant("operator", "replaces the init containers of the template by its own", "CORE-014")
@on_result_of(startup, "with_init_container")
def _waits_replace(spec: Manifest, _: Manifest, __: str, waits: dict[str, int], *___: Any) -> Manifest:
    wait_containers = [c for c in spec.get("initContainers") or () if c["name"] == labels.INIT_CONTAINER]
    return {**spec, "initContainers": wait_containers} if waits else spec


@mutant("operator", "gives native sidecars none of its variables", "CORE-008")
def _sidecars_without_variables() -> None:
    def with_environment(spec: Manifest, before: Manifest, *_: Any) -> Manifest:
        pairs = zip(spec.get("initContainers") or (), before.get("initContainers") or (), strict=True)
        containers = [old if old.get("restartPolicy") == "Always" else new for new, old in pairs]
        return {**spec, "initContainers": containers} if containers else spec

    for module in (children, pods):
        alter(module, "with_environment", with_environment)


@mutant(
    "operator",
    "creates replicas of scaling groups beyond those of the template without init containers",
    "CORE-014",
    "CORE-015",
)
@on_result_of(children, "_clique_manifest")
def _added_replicas_bare(manifest: Manifest, pcs: Any, *_: Any, **__: Any) -> Manifest:
    tags, spec = manifest["metadata"]["labels"], manifest["spec"]
    config = children.group_config(pcs, tags[labels.REPLICA_INDEX], tags.get(labels.SCALING_GROUP, ""))
    if config is None or int(tags[labels.SCALING_GROUP_REPLICA_INDEX]) < config.replicas:
        return manifest
    pod_spec = {key: item for key, item in spec["podSpec"].items() if key != "initContainers"}
    return {**manifest, "spec": {**spec, "podSpec": pod_spec}}
