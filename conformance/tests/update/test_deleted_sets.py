"""Tests of sets that are deleted during or after an update and then recreated with the same names."""

from __future__ import annotations

from conformance.grove import updates
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.deleted import all_deleted
from conformance.testing.observed import all_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.update import changes
from conformance.tests.update.changes import SETS

NAMES = ("during", "after")
"""The names of the sets. Each set is named after the time of its deletion relative to its update."""


class UpdatedSetsAreDeletedAndCreatedAgain(Scene):
    """Two sets with two pods each, and ample capacity. One set is deleted while its update waits for a pod, and the
    other set is deleted after its update. Then sets with the same names are created and changed."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        sets = {set_name: env.workload("frontend", setName=set_name, pods=2) for set_name in NAMES}
        for workload in sets.values():
            env.create(workload)
        available = all_of(*(predicates.is_available(set_name, 1) for set_name in sets))
        env.wait_for("sets available", available)
        changes.hold_pods(sets["during"], "web")
        before = {set_name: changes.change_image(env, workload, "web", tag="2") for set_name, workload in sets.items()}
        changes.require_held(env, "during-0-web")
        env.wait_for("one update waits for a pod", changes.has_one_held_pod("during-0-web"))
        env.wait_for("other update ended", changes.has_ended("after", before["after"]))
        view = env.quiet(0.7)

        for set_name in sets:
            env.delete(SETS, set_name)
        env.wait_for("set deleted during its update", all_deleted(view, "during"), 150)
        env.wait_for("set deleted after its update", all_deleted(view, "after"), 150)

        changes.hold_pods(sets["during"], "web", undo=True)
        for workload in sets.values():
            changes.set_image(workload, "web", tag="3")
            env.create(workload)
        env.wait_for("new sets available", all_of(available, _have_generations))
        env.quiet(0.7)
        env.mark("new sets at rest")
        before = {set_name: changes.change_image(env, workload, "web", tag="4") for set_name, workload in sets.items()}
        env.settle(
            "new sets updated", all_of(*(changes.has_ended(set_name, before[set_name]) for set_name in sets)), 60
        )
        env.quiet(0.7)
        env.mark("end")


@requirement("UPD-044", reaches="set deleted during its update")
def test_a_set_is_deleted_during_its_update(run: Recorded[UpdatedSetsAreDeletedAndCreatedAgain]) -> None:
    """The update waits for a pod that is not released before the set is gone."""
    run.given("sets available", "one update waits for a pod")


@requirement("UPD-045")
def test_a_set_of_the_same_name_has_no_update(run: Recorded[UpdatedSetsAreDeletedAndCreatedAgain]) -> None:
    """Neither set reports an update, whether the earlier set was deleted during or after its update."""
    run.given("new sets available")
    view = run.at("new sets at rest")
    for set_name in NAMES:
        run.expect(f"updateProgress of {set_name}", {}, dict(updates.progress(view.get(SETS, set_name))))


@requirement("UPD-045")
def test_the_next_change_of_a_set_of_the_same_name_updates_it(
    run: Recorded[UpdatedSetsAreDeletedAndCreatedAgain],
) -> None:
    """The change differs from the changes to the earlier sets."""
    view, cliques = run.at("end"), [f"{set_name}-0-web" for set_name in NAMES]
    tags = {clique: ["4", "4"] for clique in cliques}
    run.same("templates of the pods", tags, {clique: changes.image_tags(view, clique) for clique in cliques})


test_invariants = invariants(UpdatedSetsAreDeletedAndCreatedAgain, "INV-001", "INV-004", "INV-005")


def _have_generations(view: View) -> bool | Unmet:
    missing = [set_name for set_name in NAMES if not updates.generation_hash(view.get(SETS, set_name))]
    return not missing or Unmet(f"without a generation: {', '.join(missing)}")
