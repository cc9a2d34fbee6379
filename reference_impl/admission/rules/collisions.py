"""Objects of one set that would have the same name (OBJ-123 b, c), so that only the first of them could be created.

The number of replicas of a scaling group is not considered, because scaling does not pass this admission.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from reference_impl.admission.errors import FieldError, invalid
from reference_impl.admission.rules import paths
from reference_impl.api.models import CliqueTemplate, PodCliqueSet, ScalingGroupConfig

MAX_ERRORS = 100
"""The maximum number of collisions that are reported. For a stored set, up to ten times as many collisions are
computed."""
_MAX_NAME_LENGTH = 63
"""Maximum length of a name in characters. Longer names are rejected by another rule, and would be slow to split."""
_INDEX = re.compile(r"0|[1-9][0-9]*")


def violations(pcs: PodCliqueSet, old: PodCliqueSet | None) -> Iterator[FieldError]:
    """Yield the collisions of a set that its stored version does not have, so that stored sets remain editable."""
    old_errors = {_identity(error) for error in islice(_collisions(old), 10 * MAX_ERRORS)} if old is not None else set()
    yield from (error for error in islice(_collisions(pcs), MAX_ERRORS) if _identity(error) not in old_errors)


def _identity(error: FieldError) -> tuple[object, str]:
    """Return a key of a collision that does not depend on the order of the cliques."""
    return error.value, error.detail


def _collisions(pcs: PodCliqueSet) -> Iterator[FieldError]:
    groups = pcs.spec.template.pod_clique_scaling_groups or []
    by_name = {group.name: group for group in groups}
    members = {(group.name, member) for group in groups for member in group.clique_names}
    grouped = {member for _, member in members}
    for i, clique in enumerate(pcs.spec.template.cliques):
        if clique.name in grouped:
            continue
        colliding = [split for split in _splits(clique.name) if split in members]
        details = [
            f"PodCliques of '{member}' in PodCliqueScalingGroup '{group}' have this name" for group, member in colliding
        ]
        if clique.name in by_name:
            details += _other_collisions(clique, by_name[clique.name])
        yield from (invalid(f"{paths.clique(i)}.name", clique.name, detail) for detail in details)
    yield from _member_collisions(groups)


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Yield the parts before and after each index in a name: `sg-0-wk` → (`sg`, `wk`)."""
    parts = name.split("-") if len(name) <= _MAX_NAME_LENGTH else []
    for position, part in enumerate(parts):
        if _INDEX.fullmatch(part):
            yield "-".join(parts[:position]), "-".join(parts[position + 1 :])


def _other_collisions(clique: CliqueTemplate, group: ScalingGroupConfig) -> Iterator[str]:
    """Describe the other objects, besides PodCliques, that collide when a standalone clique and a scaling group have
    the same name."""
    if clique.spec.auto_scaling_config is not None and group.scale_config is not None:
        yield "a PodCliqueScalingGroup of this name is autoscaled, too; their HorizontalPodAutoscalers have one name"
    clique_shares = {(sharing.name, sharing.scope) for sharing in clique.resource_sharing or ()}
    for name, scope in sorted(
        clique_shares & {(sharing.name, sharing.scope) for sharing in group.resource_sharing or ()}
    ):
        shares = f"a PodCliqueScalingGroup of this name shares '{name}' with scope {scope}"
        yield f"{shares}, too; their ResourceClaims have one name"


def _member_collisions(groups: list[ScalingGroupConfig]) -> Iterator[FieldError]:
    """Yield the collisions between members of two scaling groups, as in `a`-0-`1-b` and `a-0`-1-`b`."""
    groups_by_split: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for number, group in enumerate(groups):
        for prefix, suffix in _splits(group.name):
            for member in group.clique_names:
                groups_by_split[prefix, suffix, member].append(number)
    for group in groups:
        for member in group.clique_names:
            for replica_index, other in _splits(member):
                for number in groups_by_split.get((group.name, replica_index, other), ()):
                    detail = (
                        f"PodCliques of '{member}' in PodCliqueScalingGroup '{group.name}' and of '{other}' in this"
                    )
                    yield invalid(f"{paths.group(number)}.name", groups[number].name, f"{detail} have one name")
