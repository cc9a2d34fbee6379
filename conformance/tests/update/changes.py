"""Changes to templates, and predicates to wait for, in the scenes of this profile.

Pods of a changed template can be held. Held pods are bound and started, but do not become Ready until the scene
releases them, so each step of an update can be observed on any machine.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from conformance.grove import labels, pods, updates
from conformance.grove.fields import label, name, number, text, uid
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.record import ADDED
from conformance.history.view import View
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.api import Object
from conformance.suite.scenes.recorded import Span
from conformance.testing import predicates, replay
from conformance.testing.disruption import CLIQUES, GROUPS, SETS
from conformance.testing.scene import SceneEnvironment

__all__ = ["CLIQUES", "GROUPS", "SETS"]
ON_DELETE, ROLLING = "OnDelete", "RollingRecreate"
HOLD_ANNOTATION = "conformance.grove.io/hold-ready"
MAX_ROUNDS = 40

Pod = Mapping[str, Any]


def template(workload: Object, clique: str) -> Object:
    """Return the template of a clique in a workload."""
    matches: list[Object] = [entry for entry in workload["spec"]["template"]["cliques"] if entry["name"] == clique]
    return matches[0]


def set_image(workload: Object, *cliques: str, tag: str) -> None:
    """Set another image tag for the pods of these cliques, in the workload."""
    for clique in cliques:
        container = template(workload, clique)["spec"]["podSpec"]["containers"][0]
        container["image"] = f"{container['image'].rpartition(':')[0]}:{tag}"


def hold_pods(workload: Object, *cliques: str, undo: bool = False) -> None:
    """Keep new pods of these cliques from becoming Ready, in the workload."""
    for clique in cliques:
        annotations = template(workload, clique).setdefault("annotations", {})
        annotations.pop(HOLD_ANNOTATION, None)
        annotations.update({} if undo else {HOLD_ANNOTATION: "yes"})


def apply(env: SceneEnvironment, workload: Object) -> None:
    """Write the cliques of a workload, and nothing else, to its set."""
    env.patch(SETS, name(workload), {"spec": {"template": {"cliques": workload["spec"]["template"]["cliques"]}}})


def change_image(env: SceneEnvironment, workload: Object, *cliques: str, tag: str) -> str:
    """Change the image of these cliques, and return the generation hash that the set had before the change."""
    before = updates.generation_hash(env.history.view().get(SETS, name(workload)))
    set_image(workload, *cliques, tag=tag)
    apply(env, workload)
    return before


def set_strategy(env: SceneEnvironment, set_name: str, strategy_type: str) -> None:
    """Change the update strategy of a set. rollingUpdate is removed for OnDelete, which does not use it and may reject
    it."""
    changed: Object = {"updateStrategy": {"type": strategy_type}}
    stored = copy.deepcopy((env.history.view().get(SETS, set_name) or {})["spec"]["template"])
    parts = [*stored["cliques"], *stored.get("podCliqueScalingGroups", [])]
    if strategy_type == ON_DELETE and [part for part in parts if part.pop("rollingUpdate", None)]:
        changed["template"] = {key: stored[key] for key in ("cliques", "podCliqueScalingGroups") if key in stored}
    env.patch(SETS, set_name, {"spec": changed})


def require_held(env: SceneEnvironment, *cliques: str) -> None:
    """Raise Blocked if the first pods of the second template are not held. Copying the annotations of a template to
    pods is only a SHOULD (RES-115)."""

    def new(view: View) -> list[Pod]:
        return [pod for clique in cliques for pod in predicates.pods_of(view, clique) if image_tag(pod) == "2"]

    for pod in new(env.settled("a pod of the second template exists", new)):
        if not text(pod, "metadata", "annotations", HOLD_ANNOTATION):
            raise Blocked(f"{name(pod)} lacks the annotation of its template that would hold it", "circumstances")


def release(env: SceneEnvironment, clique: str, but: Iterable[str] = ()) -> None:
    """Let the held pods of a clique become Ready, except those with these UIDs."""
    for pod in held_pods(env.history.view(), clique):
        if uid(pod) not in but:
            env.patch("pods", name(pod), {"metadata": {"annotations": {HOLD_ANNOTATION: None}}}, missing_ok=True)


def release_until(env: SceneEnvironment, description: str, cliques: Iterable[str], end: Predicate) -> None:
    """Let each held pod of these cliques become Ready when it appears, until `end` holds."""
    names, released = list(cliques), set[str]()

    def waiting(view: View) -> list[Pod]:
        return [pod for clique in names for pod in held_pods(view, clique) if uid(pod) not in released]

    def check(view: View) -> bool | Unmet:
        return bool(end(view)) or bool(waiting(view)) or Unmet(str(end(view)))

    for _ in range(MAX_ROUNDS):
        view = env.settled(description, check, 60)
        waiting_pods = waiting(view)
        if end(view) or not waiting_pods:
            break
        for pod in waiting_pods:
            released.add(uid(pod))
            env.patch("pods", name(pod), {"metadata": {"annotations": {HOLD_ANNOTATION: None}}}, missing_ok=True)


# -- pods --------------------------------------------------------------------------------------------------------------


def held_pods(view: View, clique: str) -> list[Pod]:
    """Return the bound pods of a clique that wait for the scene to release them."""
    return [
        pod
        for pod in predicates.pods_of(view, clique)
        if text(pod, "metadata", "annotations", HOLD_ANNOTATION) and pods.is_bound(pod)
    ]


def uids(view: View, clique: str) -> set[str]:
    """Return the UIDs of the pods of a clique."""
    return {uid(pod) for pod in predicates.pods_of(view, clique)}


def template_hash(pod: Pod) -> str:
    """Return the template hash in the labels of a pod or clique."""
    return label(pod, labels.TEMPLATE_HASH)


def image_tag(pod: Pod) -> str:
    """Return the tag of a pod's image."""
    return text(pod, "spec", "containers", 0, "image").rpartition(":")[2]


def image_tags(view: View, clique: str) -> list[str]:
    """Return the image tags of a clique's pods, sorted."""
    return sorted(image_tag(pod) for pod in predicates.pods_of(view, clique))


def uids_where(view: View, clique: str, condition: Callable[[Pod], bool]) -> set[str]:
    """Return the UIDs of the pods of a clique for which the condition holds."""
    return {uid(pod) for pod in predicates.pods_of(view, clique) if condition(pod)}


def created_with_another_tag(span: Span, clique: str, expected_tag: str) -> list[str]:
    """Return the pods of a clique that were created during a span of a history with an image tag other than the
    expected tag."""
    created = [
        record for record in span.records("pods") if record.kind == ADDED and replay.clique_name(record) == clique
    ]
    return [record.name for record in created if image_tag(record.object) != expected_tag]


# -- conditions --------------------------------------------------------------------------------------------------------


@predicate
def has_one_held_pod(view: View, clique: str, of: str = "2") -> bool | Unmet:
    """A clique has two pods. Exactly one of them is held, and its image has this tag."""
    tags = [image_tag(pod) for pod in held_pods(view, clique)]
    two = len(predicates.pods_of(view, clique)) == 2
    return (tags == [of] and two) or Unmet(f"{clique}: held pods are of {tags}")


@predicate
def has_started(view: View, set_name: str, before: str) -> bool | Unmet:
    """A set reports a generation hash other than `before`, and an update that has started."""
    pcs = view.get(SETS, set_name)
    if updates.generation_hash(pcs) in ("", before):
        return Unmet(f"{set_name} still has the generation of before")
    return updates.start_time(pcs) != "" or Unmet(f"{set_name} has no updateProgress")


@predicate
def has_ended(view: View, set_name: str, before: str) -> bool | Unmet:
    """A set reports a generation hash other than `before`, the end of its update, and that all its replicas are
    updated."""
    if not (answer := has_started(set_name, before)(view)):
        return answer
    pcs = view.get(SETS, set_name)
    if not updates.has_ended(pcs):
        return Unmet(f"the update of {set_name} has not ended: {dict(updates.progress(pcs))}")
    desired, reported = number(pcs, "spec", "replicas"), number(pcs, "status", "updatedReplicas")
    return desired == reported or Unmet(f"updatedReplicas of {set_name} is {reported}, not {desired}")


@predicate
def reports_rest(view: View, set_name: str) -> bool | Unmet:
    """After the end of an update, a set reports no replica as being updated, and its counters equal their totals."""
    pcs = view.get(SETS, set_name)
    counts = updates.counts(pcs)
    behind = [counter for counter, total in updates.COUNTERS if counts[counter] != counts[total]]
    return not (behind or updates.updating_replicas(pcs)) or Unmet(f"{set_name} reports {dict(updates.progress(pcs))}")


@predicate
def have_parts_ended(view: View, set_name: str, parts: Collection[tuple[str, str]]) -> bool | Unmet:
    """A set and these of its cliques and groups (resource and name) report an update that has ended."""
    unfinished = [
        part for resource, part in ((SETS, set_name), *parts) if not updates.has_ended(view.get(resource, part))
    ]
    return not unfinished or Unmet(f"no update has started and ended at {', '.join(unfinished)}")


def are_deleted(clique: str, pod_uids: Iterable[str]) -> Predicate:
    """Each of these pods (UIDs) of a clique is deleted or being deleted."""
    before = set(pod_uids)

    def check(view: View) -> bool | Unmet:
        remaining = [name(pod) for pod in predicates.pods_of(view, clique) if uid(pod) in before]
        return not remaining or Unmet(f"still there: {', '.join(remaining)}")

    return check


def has_replaced_pods(clique: str, before: Iterable[str], counts: Collection[int], total: int) -> Predicate:
    """The number of deleted pods among these pods (UIDs) is one of `counts`, and the clique has `total` bound pods."""
    former_uids = set(before)

    def check(view: View) -> bool | Unmet:
        current = predicates.pods_of(view, clique)
        lost, bound = len(former_uids - {uid(pod) for pod in current}), sum(map(pods.is_bound, current))
        return (lost in counts and bound == total) or Unmet(
            f"{clique}: {lost} of {len(former_uids)} pods are deleted, wanted {' or '.join(map(str, counts))}; "
            f"{bound} are bound, wanted {total}"
        )

    return check


@predicate
def report_ready(view: View, sizes: Mapping[str, int]) -> bool | Unmet:
    """Each of these cliques reports this number of Ready pods."""
    reported = {clique: number(view.get(CLIQUES, clique), "status", "readyReplicas") for clique in sizes}
    return reported == dict(sizes) or Unmet(f"readyReplicas: {reported}, wanted: {dict(sizes)}")
