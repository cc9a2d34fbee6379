"""Tests of which changes start an update."""

from __future__ import annotations

import pytest

from conformance.grove import updates
from conformance.grove.fields import name, uid
from conformance.testing import incarnations, predicates, replay
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.update.changes import SETS
from conformance.tests.update.starts import STARTING, ChangesOfAllKinds


@requirement("UPD-036")
def test_a_change_of_the_pod_spec_starts_an_update(run: Recorded[ChangesOfAllKinds]) -> None:
    """The image of a container is changed."""
    _expect_replaced(run, "image")


@requirement("UPD-058", reaches="{part}: update ended")
@pytest.mark.parametrize("part", [part for part in STARTING if part != "image"])
def test_a_change_of_the_rest_of_a_template_starts_an_update(run: Recorded[ChangesOfAllKinds], part: str) -> None:
    """Each part is changed in a separate set."""
    _expect_replaced(run, part)


def _expect_replaced(run: Recorded[ChangesOfAllKinds], part: str) -> None:
    """Expect that a set no longer has pods from before the change."""
    run.given("sets available")
    first = incarnations.uids(run.at("changes"), "pods")
    current = predicates.pods_of(run.at("changes at rest"), f"{part}-0-web")
    run.expect("pods from before the update", [], [name(pod) for pod in current if first.get(name(pod)) == uid(pod)])


@requirement("UPD-037")
def test_other_changes_start_no_update(run: Recorded[ChangesOfAllKinds]) -> None:
    """All changes are made at the same time."""
    before, after = (run.at(step).get(SETS, "other") for step in ("changes", "changes at rest"))
    run.expect("generation hash of the set", updates.generation_hash(before), updates.generation_hash(after))
    run.expect("updateProgress of the set", {}, dict(updates.progress(after)))
    deleted = [record.name for record in replay.deletions(run.between("changes", "changes at rest"))]
    run.expect("deleted pods of the set", [], [pod for pod in deleted if pod.startswith("other-")])


test_invariants = invariants(ChangesOfAllKinds, "INV-001", "INV-004", "INV-005")
