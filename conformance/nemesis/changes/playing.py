"""Changes of a set on a real cluster, and a comparison of the state in which the set ends."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from conformance.grove.fields import at, name, terminating, uid
from conformance.history.query import History, WaitTimeout
from conformance.history.view import View
from conformance.nemesis.bed import FaultTestbed
from conformance.nemesis.changes import desired
from conformance.nemesis.changes.desired import CLIQUE, GROUP, SET, DesiredState, SetChange
from conformance.nemesis.changes.observed import ObservedState, difference, observe
from conformance.nemesis.rest import (
    FAULTLESS_REST_SECONDS,
    REST_LIMIT_SECONDS,
    NotAtRest,
    are_bound_pods_ready,
    changing_resources,
    delete_set,
    wait_for_faultless_rest,
)
from conformance.testing.predicates import pods_of
from kube.errors import ApiError

REST_SECONDS = 1.5
"""Seconds without a change after which a change counts as having had its effect."""
FINAL_REST_SECONDS = 15.0
"""Seconds without a change after which a difference is considered final."""
_numbers = itertools.count(1)


class ChangeRunner:
    """Runs sequences of changes, and remembers the results."""

    def __init__(self, bed: FaultTestbed) -> None:
        self._bed = bed
        self._expected_ends: dict[DesiredState, ObservedState] = {}
        self._differences: dict[tuple[SetChange, ...], list[str]] = {}
        self.played = 0
        """Number of sequences that were run."""

    def find_differences(self, changes: Sequence[SetChange]) -> list[str]:
        """Return the differences between the end after the changes and the end of a set that was brought directly to
        the desired state; an empty list if there are none. Raises NotAtRest if the latter set does not come to rest."""
        key = tuple(changes)
        if key not in self._differences:
            self._differences[key] = self.run_again(changes)
        return self._differences[key]

    def run_again(self, changes: Sequence[SetChange]) -> list[str]:
        """Run changes even if they have already been run. Raises NotAtRest if a set that was brought directly to the
        desired state does not come to rest."""
        goal = desired.apply_changes(changes)
        if goal not in self._expected_ends:
            self._expected_ends[goal] = self._run_directly(goal)
        self.played += 1
        return self._run(changes, self._expected_ends[goal])

    def known_differences(self, changes: Sequence[SetChange]) -> list[str] | None:
        """Return the differences after changes that have been run; None if they have not."""
        return self._differences.get(tuple(changes))

    def _run_directly(self, goal: DesiredState) -> ObservedState:
        with self._bed.namespace(f"changes-{next(_numbers)}") as history:
            self._create(history, goal)
            _wait_for_learnt_rest(history)
            for change in desired.direct_changes(goal):
                self._make_change(history, change, goal)
                _wait_for_learnt_rest(history)
            observed = observe(history.view(), history.namespace)
            self._delete(history)
            return observed

    def _run(self, changes: Iterable[SetChange], expected_end: ObservedState) -> list[str]:
        state = desired.TEMPLATE
        with self._bed.namespace(f"changes-{next(_numbers)}") as history:
            self._create(history, state)
            _wait_for_rest(history, REST_SECONDS)
            for change in changes:
                state = desired.apply_change(state, change)
                try:
                    self._make_change(history, change, state)
                    if change.rests:
                        _wait_for_rest(history, REST_SECONDS)
                except (WaitTimeout, NotAtRest, ApiError) as error:
                    return [f"{change}: {error}"]
            lines = _differences(history, expected_end)
            leftovers = self._delete(history)
            return lines or [f"still there after the set was deleted: {leftover}" for leftover in leftovers]

    def _create(self, history: History, goal: DesiredState) -> None:
        history.record_action()
        self._bed.api.create(self._bed.manifest(desired.manifest(goal), history.namespace))

    def _delete(self, history: History) -> list[str]:
        return delete_set(self._bed, history, SET)

    def _make_change(self, history: History, change: SetChange, state: DesiredState) -> None:
        api, namespace = self._bed.api, history.namespace
        history.record_action()
        match change.what:
            case "scale-set":
                api.patch("podcliquesets", namespace, SET, {"spec": {"replicas": change.value}})
            case "scale-clique" | "scale-group":
                resource, object_name = (
                    ("podcliques", CLIQUE) if change.what == "scale-clique" else ("podcliquescalinggroups", GROUP)
                )
                history.wait(
                    f"{object_name} is there", lambda view: _exists(view, resource, object_name), REST_LIMIT_SECONDS
                )
                api.patch(resource, namespace, object_name, {"spec": {"replicas": change.value}}, "scale")
            case "image":
                stored = api.get("podcliquesets", namespace, SET)["spec"]["template"]["cliques"]
                template = {"cliques": desired.cliques(state, stored)}
                api.patch("podcliquesets", namespace, SET, {"spec": {"template": template}})
            case "recreate":
                delete_set(self._bed, history, SET)
                self._create(history, state)
            case "lose-pod":
                clique = desired.clique_to_lose_pod(change.part)
                [*pods] = history.wait(f"{clique} has a pod", lambda view: pods_of(view, clique), REST_LIMIT_SECONDS)
                api.delete("pods", namespace, [min(map(name, pods))])
            case "restart":
                self._bed.restart()


def _exists(view: View, resource: str, object_name: str) -> bool:
    """Return whether an object exists that belongs to the current set."""
    item = view.get(resource, object_name)
    owner = at(item, "metadata", "ownerReferences", 0, "uid")
    return item is not None and not terminating(item) and owner == uid(view.get("podcliquesets", SET))


def _wait_for_rest(history: History, seconds: float) -> None:
    """Wait until nothing changes any more. Raises NotAtRest if changes continue."""
    try:
        history.quiet(seconds, REST_LIMIT_SECONDS, resources=changing_resources(history))
        while not are_bound_pods_ready(history.view()):
            history.wait("every pod that has a node is Ready", are_bound_pods_ready, REST_LIMIT_SECONDS)
            history.quiet(seconds, REST_LIMIT_SECONDS, resources=changing_resources(history))
    except WaitTimeout as error:
        raise NotAtRest(str(error)) from None


def _wait_for_learnt_rest(history: History) -> None:
    try:
        wait_for_faultless_rest(history, FAULTLESS_REST_SECONDS, SET)
    except WaitTimeout as error:
        raise NotAtRest(str(error)) from None


def _differences(history: History, expected_end: ObservedState) -> list[str]:
    """Return the differences between a set at rest and `end`, or an empty list as soon as there are none."""
    lines = [""]
    for quiet_seconds in (REST_SECONDS, FINAL_REST_SECONDS):
        try:
            history.quiet(quiet_seconds, REST_LIMIT_SECONDS, resources=changing_resources(history))
        except WaitTimeout as error:
            return [f"in the end: {error}"]
        if not (lines := difference(expected_end, observe(history.view(), history.namespace))):
            return []
    return lines
