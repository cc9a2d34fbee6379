"""The plan for one PodGang: its objects, its state, and the changes that may be made to its pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from reference_impl.api.models import PodCliqueSet, PodGang, PodGangStatus
from reference_impl.api.pods import Pod
from reference_impl.plan import labels
from reference_impl.plan.coherent.conditions import SCHEDULED
from reference_impl.plan.workload_api import difference as differences
from reference_impl.plan.workload_api import manifests, names, standing, tree
from reference_impl.plan.workload_api.difference import LEAVES, TREES, GangDifference, Observed, controls
from reference_impl.plan.workload_api.mode import Mode
from reference_impl.plan.workload_api.standing import Standing
from reference_impl.plan.workload_api.tree import MappingError

REFUSED = "KubeBackendSyncFailed"
"""Reason of the condition and of the event for a gang that cannot be mapped (WL-HC15)."""
PREFERRED = "KubeBackendPreferredTopologyIgnored"
"""Reason of the event for a gang whose preferred topology is ignored (WL-H12, WL-HC15)."""
PREFERRED_NOTE = "kube-scheduler has no preferred topology: it is ignored, and required topology is enforced"


NOTHING = GangDifference()


@dataclass(frozen=True)
class Planned:
    """The plan for one gang."""

    now: Standing
    minimums: Mapping[str, int]
    """The number of pods of each clique that the gang needs, at least 1."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """The PodGroup that the pods of each clique refer to, which is empty if the gang cannot be mapped."""
    difference: GangDifference = NOTHING
    refusal: str = ""
    """The reason why the gang cannot be mapped, or an empty string if it can be mapped."""

    @property
    def in_place(self) -> bool:
        """Whether the gate of the gang's pods may be removed. Without the gang's objects, kube-scheduler would not
        schedule the pods as a gang (WL-HD4)."""
        return not self.refusal and self.difference.in_place


def with_refusal(status: PodGangStatus, refusal: str) -> PodGangStatus:
    """Return the status of a gang that cannot be mapped, in which the condition Scheduled=False gives the reason."""
    new_conditions = [
        msgspec.structs.replace(condition, reason=REFUSED, message=refusal)
        if condition.type == SCHEDULED and condition.status == "False"
        else condition
        for condition in status.conditions or ()
    ]
    return msgspec.structs.replace(status, conditions=new_conditions)


def plan(
    gang: PodGang,
    pcs: PodCliqueSet | None,
    pods: Iterable[Pod],
    observed: Observed,
    templates: Mapping[str, int],
    mode: Mode,
) -> Planned:
    """Return the plan for a gang of a set. `pods` holds the pods with the gang's label, `observed` the existing objects
    with its labels or with names that it needs, and `templates` the minimums in its cliques' templates."""
    members = list(pods)
    minimums = standing.minimums(gang, _recorded_minimums(gang, observed), templates)
    now = standing.standing(gang, minimums, members)
    try:
        gang_tree = tree.tree(gang, minimums, tree.priority_class(gang, pcs), mode.form)
        groups = manifests.group_names(gang, gang_tree, mode.form)
        counts = standing.min_counts(gang, minimums, groups, members)
        required = standing.required_groups(now, mode)
        desired = manifests.desired(gang, gang_tree, mode.form, counts, required_groups=required)
        return Planned(now, minimums, groups, differences.difference(gang, desired, observed))
    except MappingError as error:
        return Planned(now, minimums, refusal=str(error))


def _recorded_minimums(gang: PodGang, observed: Observed) -> dict[str, int]:
    """Return the minimum of each clique as the gang's existing objects show it. The Workload takes precedence over the
    PodGroups, because it shows the intended gang."""
    minimums: dict[str, int] = {}
    by_template: dict[str, int] = {}
    for (kind, _), item in observed.items():
        if not controls(gang, item):
            continue
        if kind == "PodGroup" and (clique := item.metadata.label(labels.PODCLIQUE)):
            minimums[clique] = max(minimums.get(clique, 0), _min_count(item.spec))
        elif kind == "Workload":
            by_template |= {leaf["name"]: _min_count(leaf) for leaf in _leaves(item.spec)}
    for group in gang.spec.podgroups:
        if count := by_template.get(names.template("leaf", group.name)):
            minimums[group.name] = count
    return minimums


def _min_count(spec: Mapping[str, Any]) -> int:
    policy = spec.get("schedulingPolicy") or {}
    return int((policy.get("gang") or {}).get("minCount") or 0)


def _leaves(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from spec.get(LEAVES) or ()
    for node in spec.get(TREES) or ():
        yield from _leaves(node)
