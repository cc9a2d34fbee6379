"""Conditions under which a set is at rest, or deleted."""

from __future__ import annotations

from conformance.grove import health, pods
from conformance.grove.fields import finalizers, name, number, terminating
from conformance.history.query import History, Unmet, WaitTimeout
from conformance.history.view import View
from conformance.nemesis import normal_form
from conformance.nemesis.bed import FaultTestbed
from conformance.nemesis.watching import PointWatcher

FAULTLESS_REST_SECONDS = 8.0
"""Seconds without a change after which a step without a fault has ended: longer than the five seconds after which
Grove's operator requeues unfinished work."""
REST_LIMIT_SECONDS = 60.0
"""Seconds within which a set must be at rest if no fault is injected."""
DELETION_SECONDS = 30.0
"""Seconds within which a deleted set and everything that belongs to it must be gone."""


class NotAtRest(Exception):
    """The scenario did not come to rest without a fault."""


class Abandoned(Exception):
    """The plan was abandoned, because its result is not needed any more."""


def changing_resources(history: History) -> tuple[str, ...]:
    """Return the resources whose changes show that something is still happening."""
    return tuple(resource for resource in history.view().resources() if resource not in normal_form.IGNORED)


def are_bound_pods_ready(view: View) -> bool:
    """Return whether every pod that has a node is Ready, apart from pods whose status the scenario holds."""
    return all(
        pods.is_ready(pod) or health.HOLD_STATUS in pod["metadata"].get("annotations", {})
        for pod in view.list("pods")
        if pod["spec"].get("nodeName")
    )


def wait_for_faultless_rest(history: History, seconds: float, set_name: str = "") -> None:
    """Wait until a step without a fault has ended: nothing has changed for `seconds`, every pod that has a node is
    Ready, and the set `set_name`, if given, is available. Availability is checked because an operator may pause for
    longer than `seconds` before it goes on. Raises WaitTimeout."""

    def is_available(view: View) -> bool | Unmet:
        stored_set = view.get("podcliquesets", set_name)
        desired, available_replicas = (
            number(stored_set, "spec", "replicas") or 0,
            number(stored_set, "status", "availableReplicas") or 0,
        )
        return (
            not set_name
            or desired == available_replicas
            or Unmet(f"{available_replicas} of {desired} replicas are available")
        )

    history.quiet(seconds, REST_LIMIT_SECONDS, resources=changing_resources(history))
    while not (are_bound_pods_ready(history.view()) and is_available(history.view()) is True):
        history.wait("every pod that has a node is Ready", are_bound_pods_ready, REST_LIMIT_SECONDS)
        history.wait("the set is available", is_available, REST_LIMIT_SECONDS)
        history.quiet(seconds, REST_LIMIT_SECONDS, resources=changing_resources(history))


def waiting_objects(view: View) -> list[str]:
    """Return the objects that wait, each with the reason: pods that are gated, without a node or not Ready, and
    deletions."""
    lines = []
    for pod in view.list("pods"):
        if gates := pod["spec"].get("schedulingGates"):
            lines.append(f"pod {name(pod)} waits for the gate {', '.join(gate['name'] for gate in gates)}")
        elif not pod["spec"].get("nodeName"):
            lines.append(f"pod {name(pod)} waits for a node")
        elif not pods.is_ready(pod):
            lines.append(f"pod {name(pod)} is bound and not Ready")
    for resource in view.resources():
        for item in view.list(resource):
            if terminating(item):
                waits_for = ", ".join(finalizers(item)) or "whoever deletes it"
                lines.append(f"{resource}/{name(item)} is being deleted, and waits for {waits_for}")
    return lines


def delete_set(bed: FaultTestbed, history: History, set_name: str) -> list[str]:
    """Delete a set. Return the objects that are still in its namespace after DELETED_WITHIN seconds."""
    bed.set_interference(PointWatcher("clean", history.namespace))
    bed.api.delete("podcliquesets", history.namespace, [set_name])

    def is_deleted(view: View) -> bool:
        return not _remaining_objects(view, history.namespace)

    try:
        history.wait("all gone", is_deleted, DELETION_SECONDS)
    except WaitTimeout as error:
        return _remaining_objects(error.view, history.namespace)
    return []


def _remaining_objects(view: View, namespace: str) -> list[str]:
    return [
        f"{resource}/{name(item)}"
        for resource in view.resources()
        if resource not in normal_form.IGNORED
        for item in view.list(resource)
        if item["metadata"].get("namespace") == namespace
    ]
