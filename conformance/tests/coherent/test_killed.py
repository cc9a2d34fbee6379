"""Tests of a coherent update during which the operator is killed."""

from __future__ import annotations

from conformance.grove import updates
from conformance.grove.coherent.model import shape
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.scenes import OperatorKilled
from conformance.tests.coherent.sets import SETS


@requirement("COHR-070", reaches="updated")
def test_the_update_is_completed_as_usual(run: Recorded[OperatorKilled]) -> None:
    """The operator is killed three times, and as many pods are created as existed before."""
    run.given("deployed")
    created = {record.uid for record in run.between("change", "end").records("pods")} - run.scene.initial_pods.keys()
    run.expect("pods that were created", len(run.scene.initial_pods), len(created))
    expected = ["anchor {f1, p[0]}", "anchor {f1, p[1]}"]
    for replica in range(2):
        run.expect(f"gangs of replica {replica}", expected, shape(sets.layout(run.at("end"), "s", replica)))


@requirement("COHR-072", reaches="updated")
def test_a_change_while_the_operator_is_down(run: Recorded[OperatorKilled]) -> None:
    """If admission accepts nothing while the operator is down, the set is changed right before the operator is killed.
    If the operator has written the start of the update but not yet the new generation hash, that start may be lost."""
    run.given("deployed")
    before = updates.generation_hash(run.at("change").get(SETS, "s"))
    states = [record.object for record in run.between("change", "end").records(SETS, "s")]
    running = [pcs for pcs in states if updates.is_running(pcs) and updates.generation_hash(pcs) != before]
    starts = set(map(updates.start_time, running))
    run.expect("updates that have begun", 1, len(starts))


test_invariants = invariants(
    OperatorKilled, "INV-011", "INV-012", "INV-013", "INV-016", "INV-017", "INV-019", "INV-022"
)
