"""Checks of the state after a phase, like those in Grove's own scale tests (spec E2E-331 … E2E-334).

The times of a run whose objects are wrong are meaningless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from conformance.grove.expected import ExpectedObjects
from conformance.grove.kinds import PODCLIQUES, PODGANGS, SCALING_GROUPS
from conformance.scale.markers import Target
from conformance.scale.tracker import ObservedClique, Tracker

TIMEOUT_SECONDS = 60.0
"""Seconds that statuses have to become current (E2E-334)."""


def object_errors(tracker: Tracker, expected: ExpectedObjects, target: Target, *, coherent: bool = False) -> list[str]:
    """Return a message for each kind whose number of objects differs from the expected number. The PodGangs of a
    `coherent` set are not checked, because they follow its PodGangMaps."""
    counts = {
        "pods": (tracker.present - tracker.terminating, target.pods),
        PODCLIQUES.plural: (_count_objects(tracker, PODCLIQUES.plural), len(expected.cliques)),
        SCALING_GROUPS.plural: (_count_objects(tracker, SCALING_GROUPS.plural), len(expected.groups)),
    }
    if not coherent:
        counts[PODGANGS.plural] = (_count_objects(tracker, PODGANGS.plural), len(expected.gangs))
    messages = [f"{actual} {name} instead of {count}" for name, (actual, count) in counts.items() if actual != count]
    terminating_count = tracker.terminating + sum(
        existing_object.terminating for existing_object in tracker.objects.values()
    )
    return [*messages, *([f"{terminating_count} objects are being deleted"] if terminating_count else [])]


def status_errors(tracker: Tracker, target: Target) -> Iterator[str]:
    """Yield a message for each status that is not current or has errors, starting with the PodCliqueSet's."""
    yield from outdated_statuses(tracker, target)
    yield from last_errors(tracker)


def outdated_statuses(tracker: Tracker, target: Target) -> Iterator[str]:
    """Yield a message for each status that is not current, starting with the PodCliqueSet's."""
    yield from _set_errors(tracker, target)
    outdated_cliques = _matching_cliques(tracker, lambda clique: not clique.is_current)
    if outdated_cliques:
        yield f"the status of {len(outdated_cliques)} podcliques is not current, the first is {min(outdated_cliques)}"


def last_errors(tracker: Tracker) -> Iterator[str]:
    """Yield a message for each kind of object whose status has lastErrors."""
    if tracker.status.last_errors:
        yield f"the set has {len(tracker.status.last_errors)} lastErrors"
    failing_cliques = _matching_cliques(tracker, lambda clique: clique.has_last_errors)
    if failing_cliques:
        yield f"{len(failing_cliques)} podcliques have lastErrors, the first is {min(failing_cliques)}"


def _count_objects(tracker: Tracker, resource: str) -> int:
    return sum(kind == resource for kind, _ in tracker.objects)


def _set_errors(tracker: Tracker, target: Target) -> Iterator[str]:
    status = tracker.status
    counts = {
        "replicas": status.replicas,
        "availableReplicas": status.available_replicas,
        "updatedReplicas": status.updated_replicas,
    }
    for name, count in counts.items():
        if count != target.replicas:
            yield f"{name} of the set is {count} instead of {target.replicas}"
    if status.observed_generation < target.generation:
        yield f"observedGeneration of the set is {status.observed_generation} instead of {target.generation}"


def _matching_cliques(tracker: Tracker, condition: Callable[[ObservedClique], bool]) -> list[str]:
    """Return the names of the PodCliques that fulfil a condition."""
    return [
        name
        for (resource, name), existing_object in tracker.objects.items()
        if resource == PODCLIQUES.plural and condition(existing_object.clique)
    ]
