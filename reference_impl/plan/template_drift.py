"""Drift of existing cliques and scaling groups from their templates (spec OBJ-815), in all fields except `replicas`,
which the client that scales them owns (OBJ-814). A new pod spec is written at once and as a whole (CHG-RU-17,
CHG-OD-01); the update decides when pods are replaced."""

from __future__ import annotations

from collections.abc import Mapping

from kube.objects import Object
from reference_impl.api.models import CliqueTemplate, PodClique, PodCliqueScalingGroup, ScalingGroupConfig, to_json
from reference_impl.plan import labels
from reference_impl.plan.children import Manifest
from reference_impl.plan.revisions import Revision


def label_patch(existing: Object, desired: Mapping[str, str | None]) -> Manifest:
    """Return the merge patch that gives an object these labels (None removes a label), or an empty dict if the object
    has them."""
    different = {key: value for key, value in desired.items() if existing.metadata.label(key) != (value or "")}
    return {"metadata": {"labels": different}} if different else {}


def clique_patch(template: CliqueTemplate, existing: PodClique) -> Manifest:
    """Return the merge patch that corrects a standalone clique, or an empty dict if the clique matches its template."""
    spec: Manifest = {}
    if existing.spec.min_available != template.spec.minimum:
        spec["minAvailable"] = template.spec.minimum
    if existing.spec.role_name != template.spec.role_name:
        spec["roleName"] = template.spec.role_name
    desired, current = template.spec.auto_scaling_config, existing.spec.auto_scaling_config
    if desired != current:
        removed_fields = dict.fromkeys(to_json(current)) if current is not None else {}
        spec["autoScalingConfig"] = {**removed_fields, **to_json(desired)} if desired is not None else None
    return {"spec": spec} if spec else {}


def is_outdated(existing: PodClique, current: Revision) -> bool:
    """Return whether pod spec, labels and annotations of a clique must be rewritten. The hash label, which is written
    in the same write, decides, because pod specs cannot be compared: the API server adds defaults to them."""
    return (
        existing.metadata.deletion_timestamp is None and existing.metadata.label(labels.TEMPLATE_HASH) != current.hash
    )


def group_patch(config: ScalingGroupConfig, existing: PodCliqueScalingGroup) -> Manifest:
    """Return the merge patch that corrects a scaling group, or an empty dict if the group matches its configuration."""
    spec: Manifest = {}
    if existing.spec.min_available != config.min_available:
        spec["minAvailable"] = config.min_available
    if existing.spec.clique_names != config.clique_names:
        spec["cliqueNames"] = config.clique_names
    return {"spec": spec} if spec else {}
