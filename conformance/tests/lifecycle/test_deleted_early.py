"""Tests in which sets are deleted right after the operator has written to them, and then recreated with the same
names."""

from __future__ import annotations

import copy

from conformance.grove.fields import at
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.disruption import SETS
from conformance.testing.observed import all_of, are_absent
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

YOUNG_SET, CHANGED_SET = "young", "changed"


class SetsDeletedEarly(Scene):
    """Two sets that are deleted while the operator works on them: `young` as soon as it has a status, `changed` as soon
    as its status changes after a change of its template. An operator that waits until it observes its own last write
    must not wait for that write in the next set with the same name."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        young, changed = (env.workload("frontend", setName=name) for name in (YOUNG_SET, CHANGED_SET))
        env.create(changed)
        env.wait_for("set available", predicates.is_available(CHANGED_SET, 1))
        before = at(env.quiet(1).get(SETS, CHANGED_SET), "status")

        env.create(young)
        env.wait_for("status of the young set written", status_differs(YOUNG_SET, None))
        env.delete(SETS, YOUNG_SET)
        cliques = copy.deepcopy(changed["spec"]["template"]["cliques"])
        cliques[0]["spec"]["podSpec"]["containers"][0]["image"] = "registry.example/web:2"
        env.patch(SETS, CHANGED_SET, {"spec": {"template": {"cliques": cliques}}})
        env.wait_for("status of the changed set written", status_differs(CHANGED_SET, before))
        env.delete(SETS, CHANGED_SET)

        env.wait_for("both sets gone", are_absent(SETS, [YOUNG_SET, CHANGED_SET]), 150)
        env.create(young)
        env.create(changed)
        env.wait_for(
            "sets of the same names available",
            all_of(predicates.is_available(YOUNG_SET, 1), predicates.is_available(CHANGED_SET, 1)),
        )


@requirement("LIFE-007", reaches="sets of the same names available")
def test_a_set_of_the_same_name_as_an_unfinished_one_becomes_available(run: Recorded[SetsDeletedEarly]) -> None:
    """The new sets are created as soon as the old sets are gone. Objects of the old sets may still exist."""
    run.given("both sets gone")


test_invariants = invariants(SetsDeletedEarly, "INV-001", "INV-004", "INV-005")


@predicate
def status_differs(view: View, name: str, before: object) -> bool | Unmet:
    """The set exists, and its status differs from `before`."""
    current = view.get(SETS, name)
    return (current is not None and at(current, "status") != before) or Unmet(f"the status of {name} is as it was")
