"""Mutants of per-component updates: maxUnavailable, the UpdateInProgress condition, progressDeadline and completion."""

from __future__ import annotations

from mutants.registry import mutant
from mutants.replacement import Original, around, replace
from reference_impl.api.models import PodClique
from reference_impl.api.pods import Pod
from reference_impl.plan import update_clique_pods, update_condition, update_group_replicas, update_progress


@mutant("operator", "takes one pod more down than maxUnavailable permits", "UPD-047", "UPD-060")
def _clique_over_budget() -> None:
    original = update_progress.clique_budget
    replace(update_progress, "clique_budget", lambda pcs, clique: original(pcs, clique) + 1)


@mutant("operator", "takes one group replica more down than maxUnavailable permits", "UPD-048")
def _group_over_budget() -> None:
    original = update_progress.group_budget
    replace(update_progress, "group_budget", lambda pcs, group: original(pcs, group) + 1)


@mutant("operator", "replaces one member at a time, whatever maxUnavailable is", "UPD-049")
def _one_at_a_time() -> None:
    replace(update_clique_pods, "additional_pods", lambda step, clique, members, current, budget: [])
    replace(update_group_replicas, "additional_replicas", lambda step, replicas, budget: [])


@mutant("operator", "says of no set that it is being updated", "UPD-061")
def _sets_tell_no_update() -> None:
    original = update_condition.set_condition
    replace(
        update_condition, "set_condition", lambda parts, now, *, in_progress: original(parts, now, in_progress=False)
    )


@mutant("operator", "says of every group that it is being updated", "UPD-050")
@around(update_condition, "component_condition")
def _groups_tell_of_their_set(original: Original, item: object, stuck: bool, now: str) -> object:
    result = original(item, stuck, now)
    if type(item).__name__ == "PodCliqueScalingGroup":
        return update_condition._condition("True", result.message, now)
    return result


@mutant("operator", "lets an update stand still for ever", "UPD-051")
def _deadline_ignored() -> None:
    replace(update_condition, "progress_deadline", lambda given: None)


@mutant("operator", "ends the update of a clique with minAvailable Ready pods", "UPD-052", name="ends-with-the-minimum")
def end_with_the_minimum() -> None:
    """End the update of a clique as soon as minAvailable of its pods are Ready."""

    def enough(clique: PodClique, members: list[Pod]) -> bool:
        return sum(pod.ready for pod in members if pod.active) >= update_progress.minimum(clique)

    replace(update_clique_pods, "_has_all_pods_ready", enough)
    replace(update_clique_pods, "is_replaced", lambda clique, selection, members: enough(clique, members))
