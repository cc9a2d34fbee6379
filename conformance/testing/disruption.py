"""Takes pods away from their gangs, and waits for the consequences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from conformance.grove import health, labels, pods
from conformance.grove.fields import condition, condition_is, label, name, text
from conformance.grove.health import ContainerHealth, PodHealth
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.record import Record
from conformance.history.view import View
from conformance.suite.scenes.scene_environment import SceneEnvironment
from conformance.testing import incarnations, predicates

SETS, CLIQUES, GROUPS, GANGS = "podcliquesets", "podcliques", "podcliquescalinggroups", "podgangs"
BREACHED, IN_PROGRESS = "MinAvailableBreached", "GangTerminationInProgress"
CRASHED = health.CRASHED
STALLED = PodHealth(containers=ContainerHealth(started=True))
"""The state of a pod that is not Ready although its containers have started. No document counts such a pod as ready or
starting."""
STARTING = PodHealth(containers=ContainerHealth(started=False))
SERVING = PodHealth(ready=True, containers=ContainerHealth(started=True))
RECOVERED = PodHealth(ready=True, containers=ContainerHealth(started=True, last_exit=1))
UNREACHABLE = PodHealth(containers=ContainerHealth(started=True, ready=True))
"""The state of a pod on an unreachable node: the node controller has set the pod to not Ready, and the statuses of its
containers no longer change."""


def pods_by_index(env: SceneEnvironment, clique: str) -> list[Mapping[str, Any]]:
    """Return the pods of a clique, ordered by index."""
    members = predicates.pods_of(env.history.view(), clique)
    return sorted(members, key=lambda pod: label(pod, labels.POD_INDEX))


def delete_pods(env: SceneEnvironment, clique: str, count: int) -> None:
    """Delete the first `count` pods of a clique."""
    for pod in pods_by_index(env, clique)[:count]:
        env.delete("pods", name(pod))


def set_pod_states(env: SceneEnvironment, clique: str, state: PodHealth, count: int) -> None:
    """Write a state into the statuses of the first `count` pods of a clique. The fake kubelet stops updating these
    pods."""
    for pod in pods_by_index(env, clique)[:count]:
        env.patch("pods", name(pod), {"metadata": {"annotations": {health.HOLD_STATUS: "yes"}}})
        env.patch("pods", name(pod), health.status(pod, state), subresource="status")


def cordon(env: SceneEnvironment, nodes: Iterable[str], *, undo: bool = False) -> None:
    """Cordon nodes, or uncordon them with `undo`."""
    for node in nodes:
        env.patch("nodes", node, {"spec": {"unschedulable": None if undo else True}})


def set_termination_delay(env: SceneEnvironment, sets: Iterable[str], seconds: str) -> None:
    """Set the terminationDelay of the named sets."""
    for set_name in sets:
        env.patch(SETS, set_name, {"spec": {"template": {"terminationDelay": seconds}}})


def are_breached(resource: str, names: Iterable[str], status: str = "True") -> Predicate:
    """The condition MinAvailableBreached of all these objects has this status."""
    return _have_condition(resource, names, BREACHED, status)


@predicate
def have_bound_pods(view: View, sizes: Mapping[str, int]) -> bool | Unmet:
    """Each of these cliques has this number of bound pods."""
    bound_counts = {clique: sum(map(pods.is_bound, predicates.pods_of(view, clique))) for clique in sizes}
    return bound_counts == dict(sizes) or Unmet(f"bound pods: {bound_counts}, wanted: {dict(sizes)}")


def are_terminating(groups: Iterable[str]) -> Predicate:
    """All these groups have the condition GangTerminationInProgress."""
    return _have_condition(GROUPS, groups, IN_PROGRESS, "True")


def are_not_terminating(groups: Iterable[str]) -> Predicate:
    """The condition GangTerminationInProgress of all these groups is absent, or not True."""
    expected = list(groups)

    def check(view: View) -> bool | Unmet:
        in_progress = [group for group in expected if condition_is(view.get(GROUPS, group), IN_PROGRESS) == "True"]
        return not in_progress or Unmet(f"{IN_PROGRESS} of {', '.join(in_progress)} is True")

    return check


def _have_condition(resource: str, names: Iterable[str], condition_type: str, status: str) -> Predicate:
    expected = list(names)

    def check(view: View) -> bool | Unmet:
        reported = {name: condition_is(view.get(resource, name), condition_type) for name in expected}
        pending = [
            f"{condition_type} of {name} is {current or 'absent'}"
            for name, current in reported.items()
            if current != status
        ]
        return not pending or Unmet("; ".join(pending))

    return check


def termination_delay(cause: Record | None, end: Record | None, started_at: float) -> float:
    """Return the seconds from the breach in `cause` to the deletion in `end`; -1 if either record is missing.

    The timestamps in the objects are used because a record may arrive late. They are rounded down to whole seconds,
    which never makes a delay of whole seconds look too short. `started_at` is a time of the history, in seconds. No
    breach can have started before this time, whatever is reported.
    """
    if cause is None or end is None:
        return -1.0
    reported = _timestamp(text(condition(cause.object, BREACHED), "lastTransitionTime"), cause)
    breach = max(reported, math.floor(cause.wall - cause.at + started_at))
    return round(_timestamp(text(end.object, "metadata", "deletionTimestamp"), end) - breach, 3)


def _timestamp(timestamp: str, record: Record) -> float:
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return record.wall


def incarnation_counts(history: incarnations.Records, cliques: Iterable[str]) -> dict[str, int]:
    """Return clique → number of its incarnations."""
    count_by_name = incarnations.counts(history, CLIQUES)
    return {clique: count_by_name.get(clique, 0) for clique in cliques}
