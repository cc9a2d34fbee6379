"""Tests of coherent updates that are interrupted by other changes, by the loss of pods, or by the loss of the
PodGangMap."""

from __future__ import annotations

from conformance.grove import updates
from conformance.grove.coherent import change, shapes
from conformance.grove.fields import uid
from conformance.testing import predicates
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.interrupted import WEAK_CLIQUE, Interrupted
from conformance.tests.coherent.sets import SETS


@requirement("COHR-073")
def test_what_is_complete_is_not_replaced_again(run: Recorded[Interrupted]) -> None:
    """The clique f is complete when the group g is changed again, together with d."""
    run.given("second sub-steps", "partly: ended")
    current = sets.clique_by_uid(sets.pods_of_templates(run.at("end"), "partly", "f"))
    run.expect("pods of f", run.scene.completed_pods, current)


@requirement("COHR-112")
def test_what_is_complete_leaves_the_scope(run: Recorded[Interrupted]) -> None:
    """The scope is read from the statuses that the operator writes after the second change."""
    run.given("second sub-steps", "partly: ended")
    generation = updates.generation_hash(run.at("end").get(SETS, "partly"))
    records = [record.object for record in run.after("partly: changed again").records(SETS, "partly")]
    changed_again = [record for record in records if updates.generation_hash(record) == generation]
    scope = {component for record in changed_again for _, component in shapes.scope(record)}
    run.expect("components in the scope of the last change", ["d", "g"], sorted(scope))


@requirement("COHR-049")
def test_a_raised_budget_applies_at_once(run: Recorded[Interrupted]) -> None:
    """maxUnavailable is raised from one to two after the first sub-step."""
    run.given("first sub-steps", "wider: ended")
    steps = change.changes(sets.layouts(run.between("change", "end"), "wider"))
    run.expect("gangs of further replicas by sub-step", [0, 2, 1], [len(step.new_non_anchors) for step in steps])


@requirement("COHR-075", reaches="thrice: ended")
def test_replicas_that_were_complete_are_updated_again(run: Recorded[Interrupted]) -> None:
    """The second of three replicas is being updated when the set is changed again."""
    run.given("thrice: second replica")
    view = run.at("end")
    images = {
        replica: sorted({sets.image_tag(pod) for pod in predicates.pods_of(view, f"thrice-{replica}-f")})
        for replica in range(3)
    }
    run.expect("images by replica", {replica: ["3"] for replica in range(3)}, images)


@requirement("COHR-076", reaches=("mapless: map restored", "mapless: ended"))
def test_a_map_that_is_deleted_during_an_update(run: Recorded[Interrupted]) -> None:
    """The map is deleted after the first sub-step, unless admission protects it."""
    run.given("first sub-steps")
    run.expect(
        "pods", run.scene.mapless_pods, sets.clique_by_uid(sets.pods_of_set(run.at("mapless: at rest"), "mapless"))
    )
    run.expect("images", {"dm": ["2"], "f": ["2"]}, sets.image_tags(run.at("end"), "mapless"))


@requirement("COHR-074", reaches="weak: ended")
def test_an_update_waits_while_too_few_pods_are_ready(run: Recorded[Interrupted]) -> None:
    """Only three of six pods are Ready, although at least four must be."""
    run.given("second sub-steps", "weak: pods lost")
    current_uids = {uid(pod) for pod in predicates.pods_of(run.at("weak: below the minimum"), WEAK_CLIQUE)}
    run.expect("pods of the old version that were deleted", [], sorted(run.scene.old_pods - current_uids))


test_invariants = invariants(Interrupted, "INV-014", "INV-016", "INV-021")
