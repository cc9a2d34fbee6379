"""Changes that start an update, and changes that start none."""

from __future__ import annotations

import pytest

from conformance.grove import updates
from conformance.grove.fields import name
from conformance.testing import incarnations, predicates, replay
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.update.changes import SETS
from conformance.tests.update.starts import STARTING, ChangesOfAllKinds


@requirement("UPD-036", reaches="{part}: update ended")
@pytest.mark.parametrize("part", STARTING)
def test_a_change_of_the_template_starts_an_update(run: Recorded[ChangesOfAllKinds], part: str) -> None:
    """A change of the labels, annotations, pod spec or priority class of a template MUST start an update."""
    run.given("sets available")
    first = incarnations.uids(run.at("changes"), "pods")
    found = predicates.pods_of(run.at("changes at rest"), f"{part}-0-web")
    run.expect("pods from before the update", [], [name(pod) for pod in found if name(pod) in first])


@requirement("UPD-037")
def test_other_changes_start_no_update(run: Recorded[ChangesOfAllKinds]) -> None:
    """A change of replicas, terminationDelay, headless Service or update strategy MUST NOT start an update."""
    before, found = (run.at(step).get(SETS, "other") for step in ("changes", "changes at rest"))
    run.expect("generation hash of the set", updates.generation(before), updates.generation(found))
    run.expect("updateProgress of the set", {}, dict(updates.progress(found)))
    deleted = [record.name for record in replay.deleted(run.between("changes", "changes at rest"))]
    run.expect("deleted pods of the set", [], [each for each in deleted if each.startswith("other-")])


@invariants("INV-001", "INV-004", "INV-005")
def test_invariants(run: Recorded[ChangesOfAllKinds], invariant: str) -> None:
    """What MUST hold at every moment of any history."""
    run.invariant()
