"""The update of a clique, pod by pod (spec CHG-RU-20 to CHG-RU-28).

Old pods that are not Ready are deleted at once, without waiting for their successors. Ready pods are replaced one at a
time, or as many at a time as `maxUnavailable` permits, the oldest first (GM-103). The selected pod is written to the
status before it is deleted. Its successor names it in an annotation, so that a pod that was created for another reason
is not mistaken for the successor (CHG-DF03, CHG-DF06).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from reference_impl.api.models import CliqueUpdateProgress, PodClique, PodCliqueSet, PodSelection
from reference_impl.api.pods import Pod
from reference_impl.plan import labels, pods, revisions, update_progress
from reference_impl.plan.children import Manifest
from reference_impl.plan.hashing.window import STANDARD, Policy


@dataclass
class CliqueUpdateStep:
    """The next step: the progress to write, and then the pods to delete, first the pods that are not Ready and then the
    selected pod."""

    progress: CliqueUpdateProgress | None
    unready_pods: list[Pod] = field(default_factory=list)
    selected: Pod | None = None
    additional_pods: list[Pod] = field(default_factory=list)
    """Ready pods that are deleted in addition to the selected one, within `maxUnavailable`."""


def step(
    pcs: PodCliqueSet, clique: PodClique, clique_pods: list[Pod], now: str, policy: Policy = STANDARD
) -> CliqueUpdateStep:
    """Return the next step of a clique's update. If there is nothing to do, the step has the current progress and no
    pods."""
    old = clique.status.update_progress if clique.status else None
    current = update_progress.revision(pcs, clique, policy)
    if current is None or not current.has(clique.metadata.label(labels.TEMPLATE_HASH)):
        return CliqueUpdateStep(_ended_on_delete(pcs, old, now))  # the new template has not been written yet
    if update_progress.is_on_delete(pcs):
        if update_progress.must_record_update(pcs, clique, old):
            return CliqueUpdateStep(update_progress.ended_progress(_started_progress(pcs, current.hash, now), now))
        return CliqueUpdateStep(_ended_on_delete(pcs, old, now))
    if clique.metadata.label(labels.SCALING_GROUP) or not update_progress.has_turn(pcs, clique):
        return CliqueUpdateStep(old)
    generation = update_progress.generation(pcs)
    if old is None or old.pod_clique_set_generation_hash != generation:
        selection = carried_selection(clique, old, clique_pods)
        old = msgspec.structs.replace(
            _started_progress(pcs, current.hash, now), ready_pods_selected_to_update=selection
        )
    if old.update_ended_at is not None:
        return CliqueUpdateStep(old)
    next_step = _next_step(clique, old, clique_pods, current, now)
    next_step.additional_pods = additional_pods(
        next_step, clique, clique_pods, current, update_progress.clique_budget(pcs, clique)
    )
    return next_step


def additional_pods(
    next_step: CliqueUpdateStep, clique: PodClique, clique_pods: list[Pod], current: revisions.Revision, budget: int
) -> list[Pod]:
    """Return the old Ready pods that may be deleted in addition to the pods that a step deletes, the oldest first, so
    that at most `budget` of the desired pods are not Ready, regardless of `minAvailable` (GM-103)."""
    deleted_names = {pod.metadata.name for pod in (*next_step.unready_pods, next_step.selected) if pod is not None}
    remaining_pods = [pod for pod in clique_pods if pod.active and pod.ready and pod.metadata.name not in deleted_names]
    room = budget - (clique.spec.replicas - len(remaining_pods))
    if budget <= 1 or room <= 0:
        return []
    return sorted((pod for pod in remaining_pods if is_outdated(pod, current)), key=age_key)[:room]


def _started_progress(pcs: PodCliqueSet, target: str, now: str) -> CliqueUpdateProgress:
    return CliqueUpdateProgress(
        update_started_at=now, pod_clique_set_generation_hash=update_progress.generation(pcs), pod_template_hash=target
    )


def _ended_on_delete(pcs: PodCliqueSet, progress: CliqueUpdateProgress | None, now: str) -> CliqueUpdateProgress | None:
    """Return the progress, and end it if the strategy is OnDelete, which ends any unfinished update (CHG-DF11)."""
    if progress is None or progress.update_ended_at is not None or not update_progress.is_on_delete(pcs):
        return progress
    return update_progress.ended_progress(msgspec.structs.replace(progress, ready_pods_selected_to_update=None), now)


def carried_selection(
    clique: PodClique, old: CliqueUpdateProgress | None, clique_pods: list[Pod]
) -> PodSelection | None:
    """Return the selection that a new update takes over from the interrupted one: the selected pod, if its successor is
    not Ready yet. Without the selection, the next pod would be deleted while the successor is missing."""
    selection = old.ready_pods_selected_to_update if old is not None and old.update_ended_at is None else None
    if selection is None or is_replaced(clique, selection, clique_pods):
        return None
    return PodSelection(current=selection.current)


def _next_step(
    clique: PodClique, progress: CliqueUpdateProgress, clique_pods: list[Pod], current: revisions.Revision, now: str
) -> CliqueUpdateStep:
    active = [pod for pod in clique_pods if pod.active]
    old = [pod for pod in active if is_outdated(pod, current)]
    forced_pods = unready_pods(old)
    ready_old_pods = [pod for pod in old if pod not in forced_pods]
    selection = progress.ready_pods_selected_to_update
    if selection is not None and not is_replaced(clique, selection, clique_pods):
        return CliqueUpdateStep(
            progress, forced_pods, next((pod for pod in ready_old_pods if pod.metadata.name == selection.current), None)
        )
    next_pod = oldest_pod(ready_old_pods)
    has_minimum = sum(pod.ready for pod in active) >= update_progress.minimum(clique)
    if next_pod is not None and has_minimum:
        completed = [*(selection.completed or ()), selection.current] if selection is not None else None
        selection = PodSelection(current=next_pod.metadata.name, completed=completed)
        return CliqueUpdateStep(
            msgspec.structs.replace(progress, ready_pods_selected_to_update=selection), forced_pods, next_pod
        )
    if not old and _has_all_pods_ready(clique, active):
        progress = update_progress.ended_progress(
            msgspec.structs.replace(progress, ready_pods_selected_to_update=None), now
        )
    return CliqueUpdateStep(progress, forced_pods)


def _has_all_pods_ready(clique: PodClique, active: list[Pod]) -> bool:
    """Return whether all desired pods are Ready, even if `minAvailable` is lower (GM-106)."""
    return sum(pod.ready for pod in active) >= clique.spec.replicas


def is_outdated(pod: Pod, current: revisions.Revision) -> bool:
    """Return whether a pod has an old template (CHG-RU-40)."""
    return not current.has(pod.metadata.label(labels.TEMPLATE_HASH))


def unready_pods(old: list[Pod]) -> list[Pod]:
    """Return the old pods that are not Ready, which are deleted at once. Earlier failures of a pod that is Ready now do
    not count (CHG-DF02)."""
    return [pod for pod in old if not pod.ready]


def oldest_pod(ready: list[Pod]) -> Pod | None:
    """Return the old Ready pod to replace next, which is the oldest (CHG-RU-23), or None if there is none."""

    return min(ready, key=age_key, default=None)


def age_key(pod: Pod) -> tuple[str, int, str]:
    """Return a sort key that puts older pods first."""
    return pod.metadata.creation_timestamp or "", pods.index_of(pod), pod.metadata.name


def is_replaced(clique: PodClique, selection: PodSelection, clique_pods: list[Pod]) -> bool:
    """Return whether the selected pod no longer exists, and its successor is Ready or its place has been removed by
    scaling in."""
    active = [pod for pod in clique_pods if pod.active]
    if any(pod.metadata.name == selection.current for pod in active):
        return False
    successors = [pod for pod in active if is_successor(pod, selection)]
    if successors:
        return any(pod.ready for pod in successors)
    return len(active) >= clique.spec.replicas


def is_successor(pod: Pod, selection: PodSelection) -> bool:
    """Return whether a pod is the successor of the selected pod."""
    return (pod.metadata.annotations or {}).get(labels.REPLACES) == selection.current


def with_replaced_pod(manifest: Manifest, replaced_pod: str) -> Manifest:
    """Return the manifest of a pod with an annotation that names the pod that it replaces."""
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), labels.REPLACES: replaced_pod}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def pod_to_replace(clique: PodClique, clique_pods: list[Pod]) -> str | None:
    """Return the name of the selected pod that the next created pod replaces, or None if there is none."""
    progress = clique.status.update_progress if clique.status else None
    selection = progress.ready_pods_selected_to_update if progress is not None else None
    if selection is None or not selection.current:
        return None
    active = [pod for pod in clique_pods if pod.active]
    filled = any(pod.metadata.name == selection.current or is_successor(pod, selection) for pod in active)
    return None if filled else selection.current
