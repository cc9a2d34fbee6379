"""Rules about scaling groups: members, replicas, minimum, autoscaling (VAL-38, VAL-51 to VAL-59; VAL-57: DFT-04)."""

from __future__ import annotations

from collections.abc import Iterator

from reference_impl.admission.errors import FieldError, duplicate, invalid
from reference_impl.admission.rules import paths
from reference_impl.admission.rules.cliques import MINIMUM_ABOVE_REPLICAS, MUST_BE_POSITIVE
from reference_impl.admission.rules.syntax import duplicates
from reference_impl.api.models import PodCliqueSet, ScalingGroupConfig

MEMBER_AUTOSCALING = "AutoScalingConfig is not allowed to be defined for PodClique that is part of scaling group"


def violations(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Apply the rules for creates and updates."""
    template = pcs.spec.template
    groups = template.pod_clique_scaling_groups or []
    clique_names = {clique.name for clique in template.cliques}
    members = [name for group in groups for name in group.clique_names]
    for i, group in enumerate(groups):
        if unknown_names := [name for name in group.clique_names if name not in clique_names]:
            path = f"{paths.group(i)}.cliqueNames"
            yield invalid(path, ",".join(unknown_names), "unidentified PodClique names found")
        yield from _size_errors(paths.group(i), group)
    if repeated_names := duplicates(members):
        yield duplicate(f"{paths.GROUPS}.cliqueNames", repeated_names)
    for clique in template.cliques:
        if clique.spec.auto_scaling_config is not None and clique.name in members:
            yield invalid(paths.GROUPS, clique.name, MEMBER_AUTOSCALING)


def _size_errors(path: str, group: ScalingGroupConfig) -> Iterator[FieldError]:
    if group.replicas <= 0:
        yield invalid(f"{path}.replicas", group.replicas, MUST_BE_POSITIVE)
    if group.min_available <= 0:
        yield invalid(f"{path}.minAvailable", group.min_available, MUST_BE_POSITIVE)
    elif group.min_available > group.replicas:
        yield invalid(f"{path}.minAvailable", group.min_available, MINIMUM_ABOVE_REPLICAS)
    if (scale := group.scale_config) is None:
        return
    minimum = group.replicas if scale.min_replicas is None else scale.min_replicas
    if minimum < group.min_available:
        detail = "scaleConfig.minReplicas must be greater than or equal to minAvailable"
        yield invalid(f"{path}.scaleConfig.minReplicas", minimum, detail)
    if scale.max_replicas < minimum:
        detail = "must be greater than or equal to scaleConfig.minReplicas"
        yield invalid(f"{path}.scaleConfig.maxReplicas", scale.max_replicas, detail)
    if scale.max_replicas < group.replicas:
        yield invalid(
            f"{path}.scaleConfig.maxReplicas", scale.max_replicas, "must be greater than or equal to replicas"
        )
