"""HorizontalPodAutoscalers of standalone cliques and scaling groups (spec OBJ-111, OBJ-810, OBJ-811). Once an
autoscaler exists it owns `replicas`, and the operator no longer writes this field (OBJ-814)."""

from __future__ import annotations

from collections.abc import Iterator

from reference_impl.api import kubernetes, models
from reference_impl.api.models import AutoScaling, PodCliqueSet
from reference_impl.plan import labels, names
from reference_impl.plan.children import Manifest, group_configs, set_reference, standalone_templates


def replica_autoscalers(pcs: PodCliqueSet, index: int) -> Iterator[Manifest]:
    """Yield the autoscalers of one replica of a set."""
    name = pcs.metadata.name
    for template in standalone_templates(pcs):
        if (scale := template.spec.auto_scaling_config) is not None:
            yield _manifest(pcs, "PodClique", names.clique(name, index, template.name), scale, template.spec.replicas)
    for config in group_configs(pcs):
        if config.scale_config is not None:
            target = names.scaling_group(name, index, config.name)
            yield _manifest(pcs, "PodCliqueScalingGroup", target, config.scale_config, config.replicas)


def _manifest(pcs: PodCliqueSet, kind: str, target: str, scale: AutoScaling, replicas: int) -> Manifest:
    min_replicas = scale.min_replicas if scale.min_replicas is not None else replicas
    spec: Manifest = {
        "scaleTargetRef": {"apiVersion": models.PODCLIQUES.api_version, "kind": kind, "name": target},
        "minReplicas": min_replicas,
        "maxReplicas": scale.max_replicas,
    }
    if scale.metrics:
        spec["metrics"] = scale.metrics
    return {
        "apiVersion": kubernetes.AUTOSCALERS.api_version,
        "kind": "HorizontalPodAutoscaler",
        "metadata": {
            "name": target,
            "namespace": pcs.metadata.namespace,
            "labels": labels.common_labels(pcs.metadata.name, "pcs-hpa", target),
            "ownerReferences": [set_reference(pcs)],
        },
        "spec": spec,
    }
