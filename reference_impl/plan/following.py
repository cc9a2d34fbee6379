"""What of a clique or scaling group that exists follows its template (spec OBJ-815): all but the replicas, which belong
to whoever scales it (OBJ-814), and the pod spec, whose change is an update."""

from __future__ import annotations

from reference_impl.api.models import CliqueTemplate, PodClique, PodCliqueScalingGroup, ScalingGroupConfig, wire
from reference_impl.plan.children import Manifest


def clique(template: CliqueTemplate, found: PodClique) -> Manifest:
    """What of a standalone clique has to be corrected, as a merge patch; empty where nothing has."""
    spec: Manifest = {}
    if found.spec.min_available != template.spec.floor:
        spec["minAvailable"] = template.spec.floor
    if found.spec.role_name != template.spec.role_name:
        spec["roleName"] = template.spec.role_name
    wanted, seen = template.spec.auto_scaling_config, found.spec.auto_scaling_config
    if wanted != seen:
        gone = dict.fromkeys(wire(seen)) if seen is not None else {}
        spec["autoScalingConfig"] = {**gone, **wire(wanted)} if wanted is not None else None
    return {"spec": spec} if spec else {}


def group(config: ScalingGroupConfig, found: PodCliqueScalingGroup) -> Manifest:
    """As `clique`, for a scaling group."""
    spec: Manifest = {}
    if found.spec.min_available != config.min_available:
        spec["minAvailable"] = config.min_available
    if found.spec.clique_names != config.clique_names:
        spec["cliqueNames"] = config.clique_names
    return {"spec": spec} if spec else {}
