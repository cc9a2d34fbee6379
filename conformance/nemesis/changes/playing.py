"""Changes of a set on a real cluster, and a comparison of the state in which the set ends."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from conformance.grove.fields import at, name, terminating, uid
from conformance.history.query import History, WaitTimeout
from conformance.history.view import View
from conformance.nemesis.bed import FaultTestbed
from conformance.nemesis.changes import desired
from conformance.nemesis.changes.desired import CLIQUE, GROUP, SET, Desired, SetChange
from conformance.nemesis.changes.observed import Observed, difference, observe
from conformance.nemesis.rest import LEARNT_REST, LIMIT, NotAtRest, changing, delete_set, learnt_rest, started
from conformance.testing.predicates import pods_of
from kube.errors import ApiError

REST_SECONDS = 1.5
"""Seconds without a change after which a change counts as having had its effect."""
PATIENCE = 15.0
"""Seconds without a change after which a difference is considered final."""
_numbers = itertools.count(1)


class ChangeRunner:
    """Runs sequences of changes, and remembers the results."""

    def __init__(self, bed: FaultTestbed) -> None:
        self._bed = bed
        self._expected_ends: dict[Desired, Observed] = {}
        self._differences: dict[tuple[SetChange, ...], list[str]] = {}
        self.played = 0
        """Number of sequences that were run."""

    def differs(self, changes: Sequence[SetChange]) -> list[str]:
        """Return the differences between the end after the changes and the end of a set that was brought directly to
        the desired state; an empty list if there are none. Raises NotAtRest if the latter set does not come to rest."""
        key = tuple(changes)
        if key not in self._differences:
            self._differences[key] = self.play_again(changes)
        return self._differences[key]

    def play_again(self, changes: Sequence[SetChange]) -> list[str]:
        """Run changes even if they have already been run. Raises NotAtRest if a set that was brought directly to the
        desired state does not come to rest."""
        goal = desired.after_all(changes)
        if goal not in self._expected_ends:
            self._expected_ends[goal] = self._run_directly(goal)
        self.played += 1
        return self._run(changes, self._expected_ends[goal])

    def played_differences(self, changes: Sequence[SetChange]) -> list[str] | None:
        """Return the differences after changes that have been run; None if they have not."""
        return self._differences.get(tuple(changes))

    def _run_directly(self, goal: Desired) -> Observed:
        with self._bed.namespace(f"changes-{next(_numbers)}") as history:
            self._create(history, goal)
            _wait_for_learnt_rest(history)
            for change in desired.straight(goal):
                self._make(history, change, goal)
                _wait_for_learnt_rest(history)
            observed = observe(history.view(), history.namespace)
            self._delete(history)
            return observed

    def _run(self, changes: Iterable[SetChange], end: Observed) -> list[str]:
        current = desired.TEMPLATE
        with self._bed.namespace(f"changes-{next(_numbers)}") as history:
            self._create(history, current)
            _wait_for_rest(history, REST_SECONDS)
            for change in changes:
                current = desired.after(current, change)
                try:
                    self._make(history, change, current)
                    if change.rests:
                        _wait_for_rest(history, REST_SECONDS)
                except (WaitTimeout, NotAtRest, ApiError) as error:
                    return [f"{change}: {error}"]
            lines = _differences(history, end)
            leftovers = self._delete(history)
            return lines or [f"still there after the set was deleted: {leftover}" for leftover in leftovers]

    def _create(self, history: History, goal: Desired) -> None:
        history.record_action()
        self._bed.api.create(self._bed.manifest(desired.manifest(goal), history.namespace))

    def _delete(self, history: History) -> list[str]:
        return delete_set(self._bed, history, SET)

    def _make(self, history: History, change: SetChange, current: Desired) -> None:
        api, namespace = self._bed.api, history.namespace
        history.record_action()
        match change.what:
            case "scale-set":
                api.patch("podcliquesets", namespace, SET, {"spec": {"replicas": change.value}})
            case "scale-clique" | "scale-group":
                resource, object_name = (
                    ("podcliques", CLIQUE) if change.what == "scale-clique" else ("podcliquescalinggroups", GROUP)
                )
                history.wait(f"{object_name} is there", lambda view: _exists(view, resource, object_name), LIMIT)
                api.patch(resource, namespace, object_name, {"spec": {"replicas": change.value}}, "scale")
            case "image":
                stored = api.get("podcliquesets", namespace, SET)["spec"]["template"]["cliques"]
                template = {"cliques": desired.cliques(current, stored)}
                api.patch("podcliquesets", namespace, SET, {"spec": {"template": template}})
            case "recreate":
                delete_set(self._bed, history, SET)
                self._create(history, current)
            case "lose-pod":
                clique = desired.lost(change.part)
                [*pods] = history.wait(f"{clique} has a pod", lambda view: pods_of(view, clique), LIMIT)
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
        history.quiet(seconds, LIMIT, resources=changing(history))
        while not started(history.view()):
            history.wait("every pod that has a node is Ready", started, LIMIT)
            history.quiet(seconds, LIMIT, resources=changing(history))
    except WaitTimeout as error:
        raise NotAtRest(str(error)) from None


def _wait_for_learnt_rest(history: History) -> None:
    try:
        learnt_rest(history, LEARNT_REST, SET)
    except WaitTimeout as error:
        raise NotAtRest(str(error)) from None


def _differences(history: History, end: Observed) -> list[str]:
    """Return the differences between a set at rest and `end`, or an empty list as soon as there are none."""
    lines = [""]
    for quiet_seconds in (REST_SECONDS, PATIENCE):
        try:
            history.quiet(quiet_seconds, LIMIT, resources=changing(history))
        except WaitTimeout as error:
            return [f"in the end: {error}"]
        if not (lines := difference(end, observe(history.view(), history.namespace))):
            return []
    return lines
