"""Timing markers: their names, their conditions, and the raw floors with which they are compared.

Markers that share a name with one in Grove's own scale tests are defined as they are in those tests (spec E2E-311 …
E2E-316). Stricter or additional markers have different names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from conformance.scale.phases import LoadPhase, Until
from conformance.scale.tracker import Tracker


@dataclass(frozen=True)
class Target:
    """The target of a phase, and the state at the start of the phase."""

    pods: int
    replicas: int
    generation: int
    """The generation of the set after the action of the phase."""
    pods_seen: int
    """The number of pods that had ever been created before the phase."""
    pods_deleted: int
    """The number of pods that had been deleted before the phase."""
    room: int | None = None
    """The number of pods for which there is room; None if there is room for all."""

    @property
    def schedulable_pods(self) -> int:
        """Return the number of pods that can be bound."""
        return self.pods if self.room is None else self.room


@dataclass(frozen=True)
class Marker:
    """One marker. `floor` is the time of the raw floor with which the marker is compared; None if there is none."""

    description: str
    floor: str | None
    upstream: bool
    is_reached: Callable[[Tracker, Target], bool]


MARKERS: dict[str, Marker] = {
    "first-pod-created": Marker(
        "the first pod of the phase exists", None, False, lambda now, target: len(now.pods) > target.pods_seen
    ),
    "pods-created": Marker(
        "as many pods as wanted exist, in any state",
        "pods-created",
        True,
        lambda now, target: now.present >= target.pods,
    ),
    "pods-scheduled": Marker(
        "as many pods as wanted, or as there is room for, are bound",
        "pods-ready",
        False,
        lambda now, target: now.bound >= target.schedulable_pods,
    ),
    "pods-ready": Marker(
        "as many pods as wanted, or as there is room for, are Ready",
        "pods-ready",
        True,
        lambda now, target: now.ready >= target.schedulable_pods,
    ),
    "pcs-available": Marker(
        "availableReplicas is at least 1: the first replica, not all",
        "pods-ready",
        True,
        lambda now, target: now.set_exists and now.status.available_replicas >= 1,
    ),
    "pcs-all-available": Marker(
        "availableReplicas is the number of replicas",
        "pods-ready",
        False,
        lambda now, target: now.set_exists and now.status.available_replicas >= target.replicas,
    ),
    "pods-at-target": Marker(
        "no more pods exist than wanted; terminating ones count",
        "pods-deleted",
        True,
        lambda now, target: now.present <= target.pods,
    ),
    "first-pod-deleted": Marker(
        "the first pod was deleted in the phase", None, False, lambda now, target: now.deleted > target.pods_deleted
    ),
    "pcs-observed": Marker(
        "observedGeneration is the generation of the set",
        None,
        False,
        lambda now, target: now.set_exists and now.status.observed_generation >= target.generation,
    ),
    "pcs-still-available": Marker(
        "availableReplicas is at least 1 after a trigger that changes nothing",
        None,
        True,
        lambda now, target: now.set_exists and now.status.available_replicas >= 1,
    ),
    "pcs-updated": Marker(
        "observedGeneration is current, updatedReplicas is the number of replicas, and the update has ended",
        "pods-ready",
        False,
        lambda now, target: _is_updated(now, target),
    ),
    "pcs-deleted": Marker("the set is gone; pods may exist", None, True, lambda now, target: not now.set_exists),
    "pods-deleted": Marker("the last pod is gone", "pods-deleted", False, lambda now, target: not now.present),
    "all-deleted": Marker(
        "the last pod, Grove object and Service is gone",
        "pods-deleted",
        False,
        lambda now, target: not now.remaining_objects,
    ),
}

GROWTH_MARKERS = (
    "first-pod-created",
    "pods-created",
    "pods-scheduled",
    "pods-ready",
    "pcs-available",
    "pcs-all-available",
)
SHRINKING_MARKERS = ("pods-at-target",)
UNTIL_MARKERS = {
    Until.UPDATED: ("first-pod-deleted", "pcs-observed", "pcs-updated"),
    Until.OBSERVED: ("pcs-observed", "pcs-still-available"),
    Until.GONE: ("pcs-deleted", "pods-deleted", "all-deleted"),
}


def markers_of(phase: LoadPhase) -> tuple[str, ...]:
    """Return the names of the markers that a phase reports."""
    if phase.until == Until.SETTLED:
        return SHRINKING_MARKERS if phase.replicas < phase.previous_replicas else GROWTH_MARKERS
    return UNTIL_MARKERS[phase.until]


def conditions(phase: LoadPhase, target: Target) -> Mapping[str, Callable[[Tracker], bool]]:
    """Map each marker of a phase with this target to its condition."""

    def condition_of(marker: Marker) -> Callable[[Tracker], bool]:
        return lambda tracker: marker.is_reached(tracker, target)

    return {name: condition_of(MARKERS[name]) for name in markers_of(phase)}


def is_over(phase: LoadPhase, tracker: Tracker, target: Target) -> bool:
    """Return whether a phase has reached its end."""
    match phase.until:
        case Until.SETTLED:
            return _is_settled(tracker, target)
        case Until.UPDATED:
            return _is_updated(tracker, target) and _is_settled(tracker, target)
        case Until.OBSERVED:
            return tracker.set_exists and tracker.status.observed_generation >= target.generation
        case Until.GONE:
            return not tracker.remaining_objects


def _is_settled(tracker: Tracker, target: Target) -> bool:
    if target.room is not None:
        return tracker.present == target.pods and tracker.ready >= target.room
    return (
        tracker.set_exists
        and tracker.present == tracker.ready == target.pods
        and not tracker.terminating
        and tracker.status.available_replicas == target.replicas
    )


def _is_updated(tracker: Tracker, target: Target) -> bool:
    status = tracker.status
    return (
        tracker.set_exists
        and status.observed_generation >= target.generation
        and status.updated_replicas == target.replicas
        and status.update_ended
    )
