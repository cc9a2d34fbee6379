"""What of a clique or scaling group that exists follows its template (spec OBJ-815): all but the replicas, which belong
to whoever scales it (OBJ-814). What pods are made of follows at once, as a whole (CHG-RU-17, CHG-OD-01); which pods are
made anew for it is the business of updates."""

from __future__ import annotations

from reference_impl.api.models import CliqueTemplate, PodClique, PodCliqueScalingGroup, ScalingGroupConfig, wire
from reference_impl.plan import labels
from reference_impl.plan.children import Manifest
from reference_impl.plan.revisions import Revision


def clique(template: CliqueTemplate, found: PodClique) -> Manifest:
    """What of a standalone clique has to be corrected, as a merge patch; empty where nothing has."""
    spec: Manifest = {}
    if found.spec.min_available != template.spec.minimum:
        spec["minAvailable"] = template.spec.minimum
    if found.spec.role_name != template.spec.role_name:
        spec["roleName"] = template.spec.role_name
    wanted, seen = template.spec.auto_scaling_config, found.spec.auto_scaling_config
    if wanted != seen:
        gone = dict.fromkeys(wire(seen)) if seen is not None else {}
        spec["autoScalingConfig"] = {**gone, **wire(wanted)} if wanted is not None else None
    return {"spec": spec} if spec else {}


def outdated(found: PodClique, current: Revision) -> bool:
    """Whether pod spec, labels and annotations of a clique are to be written anew. The label says so, which is written
    together with them: the pod spec itself cannot be compared, as the API server fills in defaults."""
    return found.metadata.deletion_timestamp is None and found.metadata.label(labels.TEMPLATE_HASH) != current.hash


def group(config: ScalingGroupConfig, found: PodCliqueScalingGroup) -> Manifest:
    """As `clique`, for a scaling group."""
    spec: Manifest = {}
    if found.spec.min_available != config.min_available:
        spec["minAvailable"] = config.min_available
    if found.spec.clique_names != config.clique_names:
        spec["cliqueNames"] = config.clique_names
    return {"spec": spec} if spec else {}
