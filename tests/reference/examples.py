"""Example sets, cliques, pods and nodes for the tests of the reference."""

from __future__ import annotations

from typing import Any

import msgspec

from kube.objects import ObjectMeta, OwnerReference
from reference_impl.api.models import CliqueTemplate, PodClique, PodCliqueScalingGroup, PodCliqueSet
from reference_impl.api.pods import Gate, Pod, PodCondition, PodSpecView, PodStatusView
from reference_impl.plan import children, components, labels, lines, names, pods
from reference_impl.plan.lines import NAMES, Placement
from reference_impl.scheduler import model

NAMESPACE = "ns"


def disaggregated(replicas: int = 1, group_replicas: int = 3, min_available: int = 1) -> PodCliqueSet:
    """Return a set with a standalone router clique, and with prefill and decode in one scaling group."""

    def clique(name: str, pods: int, minimum: int) -> dict[str, Any]:
        container = {"name": "main", "image": "x", "env": [{"name": "OWN", "value": "1"}]}
        spec = {"roleName": name, "replicas": pods, "minAvailable": minimum, "podSpec": {"containers": [container]}}
        return {"name": name, "spec": spec, "labels": {"role": name}}

    group = {
        "name": "workers",
        "cliqueNames": ["prefill", "decode"],
        "replicas": group_replicas,
        "minAvailable": min_available,
    }
    return msgspec.convert(
        {
            "metadata": {
                "name": "llm",
                "namespace": NAMESPACE,
                "uid": "u-llm",
                "generation": 1,
                "resourceVersion": "1",
            },
            "spec": {
                "replicas": replicas,
                "template": {
                    "cliques": [clique("router", 2, 1), clique("prefill", 2, 2), clique("decode", 1, 1)],
                    "podCliqueScalingGroups": [group],
                },
            },
        },
        PodCliqueSet,
    )


def placement(pcs: PodCliqueSet, index: int = 0, live: int | None = None) -> Placement:
    """Return the gangs of a replica on the release line `names`. `live` is the number of replicas of its scaling
    groups, which defaults to the template's number."""
    cliques = [components.clique(t.name, t.spec.replicas, t.spec.minimum) for t in children.standalone_templates(pcs)]
    groups = [
        components.group(config.name, config.replicas if live is None else live, config.min_available)
        for config in children.group_configs(pcs)
    ]
    return Placement(NAMES, names.replica(pcs.metadata.name, index), lines.derived_layout([*cliques, *groups], ""))


def standalone(pcs: PodCliqueSet, index: int, template: CliqueTemplate, **options: Any) -> dict[str, Any]:
    """Return the manifest of a standalone clique on the release line `names`."""
    return children.standalone_clique(pcs, index, template, NAMES, **options)


def members(pcs: PodCliqueSet, group: PodCliqueScalingGroup, **options: Any) -> list[dict[str, Any]]:
    """Return the manifests of the cliques of the first scaling group on the release line `names`."""
    replicas, index = group.spec.replicas, int(group.metadata.label(labels.REPLICA_INDEX))
    config = children.group_configs(pcs)[0]
    gang_placement = placement(pcs, index, replicas)
    return list(children.member_cliques(pcs, group, config, range(replicas), gang_placement, NAMES, **options))


def balanced(clique: PodClique, current: list[Pod]) -> tuple[list[int], list[Pod]]:
    """Return the indices of the missing pods and the surplus pods of a clique whose replicas are all in one gang."""
    gang, target = clique.metadata.label(labels.PODGANG), clique.metadata.label(labels.TEMPLATE_HASH)
    difference = pods.difference({gang: clique.spec.replicas}, current, target, lambda _: True)
    return [index for index, _ in difference.missing], difference.surplus


def clique(manifest: dict[str, Any], uid: str = "u-clique") -> PodClique:
    """Return a clique as the API server would return it."""
    metadata = {**manifest["metadata"], "uid": uid, "generation": 1, "resourceVersion": "1"}
    return msgspec.convert({**manifest, "metadata": metadata}, PodClique)


def pod(owner: PodClique, index: int, **options: Any) -> Pod:
    """Return a pod of a clique. `options`: node, gated, ready, terminating, phase, gang."""
    pod_labels = {**(owner.metadata.labels or {}), labels.PODCLIQUE: owner.metadata.name}
    if "gang" in options:
        pod_labels[labels.PODGANG] = options["gang"]
    reference = OwnerReference(kind="PodClique", name=owner.metadata.name, uid=owner.metadata.uid, controller=True)
    metadata = ObjectMeta(
        name=f"{owner.metadata.name}-{index:05}",
        namespace=NAMESPACE,
        uid=f"{owner.metadata.uid}-{index}",
        resource_version="1",
        labels=pod_labels,
        owner_references=[reference],
        deletion_timestamp="2026-01-01T00:00:00Z" if options.get("terminating") else None,
    )
    gates = [Gate(labels.GATE)] if options.get("gated") else None
    spec = PodSpecView(options.get("node", ""), f"{owner.metadata.name}-{index}", gates)
    conditions = [PodCondition("Ready", "True")] if options.get("ready") else []
    return Pod(metadata, spec, PodStatusView(options.get("phase", "Pending"), conditions))


def node(name: str, gpus: int, **options: Any) -> model.Node:
    """Return a node. `options`: labels, taints, unschedulable, ready."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": options.get("labels", {})},
            "spec": {"taints": options.get("taints", []), "unschedulable": options.get("unschedulable", False)},
            "status": {
                "allocatable": {"nvidia.com/gpu": str(gpus), "cpu": "96", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True" if options.get("ready", True) else "False"}],
            },
        },
        model.Node,
    )


def gpu_pod(name: str, gpus: int, **spec: Any) -> model.Pod:
    """Return an unbound pod that requests GPUs."""
    container = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"u-{name}"},
            "spec": {"containers": [container], **spec},
        },
        model.Pod,
    )
