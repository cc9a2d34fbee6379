"""The next step in the update of a clique or a scaling group. With the strategy Coherent, pods follow the layout, and
nothing but the progress is reported here; with other strategies, pods and replicas are replaced one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reference_impl.api.models import PodClique, PodCliqueScalingGroup, PodCliqueSet
from reference_impl.api.pods import Pod
from reference_impl.plan import children, labels, revisions, update_clique_pods, update_group_replicas
from reference_impl.plan.children import CliqueOf
from reference_impl.plan.coherent import update
from reference_impl.plan.hashing.window import STANDARD, Policy
from reference_impl.plan.update_clique_pods import CliqueUpdateStep
from reference_impl.plan.update_group_replicas import GroupUpdateStep, PodsOf


def clique_step(
    pcs: PodCliqueSet,
    clique: PodClique,
    clique_pods: list[Pod],
    shares: Callable[[], Mapping[str, int]],
    now: str,
    policy: Policy = STANDARD,
) -> CliqueUpdateStep:
    """Return the next step of a clique's update. `shares` returns how many of its pods each gang holds."""
    if not update.is_coherent(pcs):
        return update_clique_pods.step(pcs, clique, clique_pods, now, policy)
    template = children.clique_template(pcs, clique)
    if template is None or clique.metadata.label(labels.SCALING_GROUP):
        return CliqueUpdateStep(None)
    current = revisions.template_revision(pcs, template, policy)
    complete = update.is_clique_complete(clique, clique_pods, shares(), current)
    return CliqueUpdateStep(update.clique_progress(pcs, clique, current.hash, complete, now))


def group_step(
    pcs: PodCliqueSet,
    group: PodCliqueScalingGroup,
    clique: CliqueOf,
    pods_of: PodsOf,
    members_complete: Callable[[str], bool],
    now: str,
    policy: Policy = STANDARD,
) -> GroupUpdateStep:
    """Return the next step of a scaling group's update. `members_complete` says whether the replicas of a group, given
    its template's name, have the new version and are where the layout has them."""
    if not update.is_coherent(pcs):
        return update_group_replicas.step(pcs, group, clique, pods_of, now, policy)
    config = children.group_config(pcs, group.metadata.label(labels.REPLICA_INDEX), group.metadata.name)
    complete = config is not None and members_complete(config.name)
    return GroupUpdateStep(update.group_progress(pcs, group, complete, now))
