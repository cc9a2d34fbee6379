"""Tests of cliques and scaling groups that are scaled immediately before a change, and of a set that is scaled in after
a change."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from conformance.grove import updates
from conformance.grove.fields import number
from conformance.history.record import Record
from conformance.testing import predicates, replay
from conformance.testing.disruption import CLIQUES, GROUPS, SETS
from conformance.testing.observed import all_of, are_absent
from conformance.testing.scaled import pods_are, scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.update import changes

SCALED_PARTS: Mapping[str, tuple[str, str, int]] = {
    "clique-out": (CLIQUES, "a", 4),
    "clique-in": (CLIQUES, "a", 2),
    "group-out": (GROUPS, "g", 3),
    "group-in": (GROUPS, "g", 1),
}
"""Set → the resource and part that are scaled immediately before the change, and the new number of replicas."""
SHRINKING_SET = "set-in"
"""A set with two replicas that is scaled in to one replica after its update."""
SET_VALUES: Mapping[str, object] = {
    "alone": 3,
    "aloneMinAvailable": 1,
    "groups": 2,
    "groupsMinAvailable": 1,
    "members": 1,
    "membersMinAvailable": 1,
}
Sizes = Mapping[str, int]


class ScaledBeforeAChange(Scene):
    """One node with room for all pods, and a set for each kind of scaling (see SCALED_PARTS). Immediately after the
    scaling, all cliques of the set are changed. Another set is scaled in when its update has ended."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        sets = {
            set_name: env.workload("kept", setName=set_name, **SET_VALUES)
            for set_name in (*SCALED_PARTS, SHRINKING_SET)
        }
        sets[SHRINKING_SET]["spec"]["replicas"] = 2
        for workload in sets.values():
            env.create(workload)
        available = [predicates.is_available(set_name, 2 if set_name == SHRINKING_SET else 1) for set_name in sets]
        env.wait_for("sets available", all_of(*available), 150)
        first = {clique: size for set_name in sets for clique, size in _sizes(set_name, 3, 2).items()}
        env.wait_for("all pods Ready", all_of(pods_are(first, ready=True), changes.report_ready(first)))
        env.quiet(0.7)
        env.mark("changes")
        before = {}
        for set_name, workload in sets.items():
            if set_name in SCALED_PARTS:
                resource, part, replicas = SCALED_PARTS[set_name]
                scale(env, resource, f"{set_name}-0-{part}", replicas)
            before[set_name] = changes.change_image(env, workload, "a", "b", "c", tag="2")
        for set_name in sets:
            env.settle(f"{set_name}: update ended", changes.has_ended(set_name, before[set_name]), 150)
            env.settle(f"{set_name}: counters at their totals", changes.reports_rest(set_name), 30)
        for set_name in SCALED_PARTS:
            sizes = _final_sizes(set_name)
            env.settle(
                f"{set_name}: all pods Ready", all_of(pods_are(sizes, ready=True), changes.report_ready(sizes)), 60
            )
        env.quiet(0.7)
        env.mark("updated")
        scale(env, SETS, SHRINKING_SET, 1)
        second = [clique for clique in _sizes(SHRINKING_SET, 3, 2) if clique.startswith(f"{SHRINKING_SET}-1-")]
        env.settle("second replica gone", all_of(are_absent(CLIQUES, second), pods_are(dict.fromkeys(second, 0))), 60)
        env.quiet(1, real=True)
        env.mark("scaled in after the update")


@requirement("UPD-007", reaches="{set_name}: update ended")
@pytest.mark.parametrize("set_name", SCALED_PARTS)
def test_an_update_after_a_scaling_ends(run: Recorded[ScaledBeforeAChange], set_name: str) -> None:
    """When the set is changed, pods that were added may have the old template, and pods that are removed may still
    exist."""
    run.given("sets available", "all pods Ready")
    pcs = run.at("updated").get(SETS, set_name)
    run.expect("replicas that are named as being updated", [], updates.updating_replicas(pcs))
    counts = updates.counts(pcs)
    behind = [counter for counter, total in updates.COUNTERS if counts[counter] != counts[total]]
    run.expect("counters that differ from their totals", [], behind)


@requirement("UPD-009")
@pytest.mark.parametrize("set_name", SCALED_PARTS)
def test_all_pods_of_a_scaled_part_are_updated(run: Recorded[ScaledBeforeAChange], set_name: str) -> None:
    """Pods that were added immediately before the change are updated as well."""
    run.given(f"{set_name}: update ended")
    view = run.at("updated")
    tags = {clique: sorted(set(changes.image_tags(view, clique))) for clique in _final_sizes(set_name)}
    run.expect(
        "PodCliques with other templates", {}, {clique: images for clique, images in tags.items() if images != ["2"]}
    )


@requirement("UPD-005")
@pytest.mark.parametrize("set_name", ["clique-out", "group-out"])
def test_what_was_added_is_updated_once(run: Recorded[ScaledBeforeAChange], set_name: str) -> None:
    """A pod that has the new template is not replaced, whenever it was created. A scaling group replica that was
    created partly with the old template may be recreated as a whole."""
    run.given(f"{set_name}: update ended")
    span = run.between("changes", "updated")
    permitted = {record.uid for record in replay.deletions_beside_outdated(span, _replica_of_group, _is_outdated)}
    deletions = [r for r in replay.deletions(span) if r.name.startswith(f"{set_name}-") and r.uid not in permitted]
    run.expect("pods of the new template that were deleted", [], [r.name for r in deletions if not _is_outdated(r)])


@requirement("RES-032", reaches="{set_name}: all pods Ready")
@pytest.mark.parametrize("set_name", [set_name for set_name in SCALED_PARTS if SCALED_PARTS[set_name][0] == GROUPS])
def test_an_update_keeps_groups_as_scaled(run: Recorded[ScaledBeforeAChange], set_name: str) -> None:
    """The changed template has another number of replicas."""
    _expect_replicas(run, set_name)


@requirement("RES-097", reaches="{set_name}: all pods Ready")
@pytest.mark.parametrize("set_name", [set_name for set_name in SCALED_PARTS if SCALED_PARTS[set_name][0] == CLIQUES])
def test_an_update_keeps_cliques_as_scaled(run: Recorded[ScaledBeforeAChange], set_name: str) -> None:
    """The changed template has another number of replicas."""
    _expect_replicas(run, set_name)


def _expect_replicas(run: Recorded[ScaledBeforeAChange], set_name: str) -> None:
    """Expect that, after the update, a clique or scaling group has the replicas to which it was scaled before the
    update."""
    run.given(f"{set_name}: update ended")
    resource, part, replicas = SCALED_PARTS[set_name]
    run.expect(
        "replicas", replicas, number(run.at("updated").get(resource, f"{set_name}-0-{part}"), "spec", "replicas")
    )


@requirement("UPD-037")
def test_a_scale_in_after_an_update_starts_none(run: Recorded[ScaledBeforeAChange]) -> None:
    """The reported update stays the same and has ended."""
    run.given(f"{SHRINKING_SET}: update ended", "second replica gone")
    span = run.between("updated", "scaled in after the update")
    before, after = (view.get(SETS, SHRINKING_SET) for view in (span.start_view(), span.view()))
    run.expect("generation", updates.generation_hash(before), updates.generation_hash(after))
    run.expect("start of the update", updates.start_time(before), updates.start_time(after))
    run.expect("the update has ended", True, bool(updates.has_ended(after)))
    run.expect(
        "cliques with new Pods",
        [],
        [clique for clique in replay.creation_counts(span) if clique.startswith(f"{SHRINKING_SET}-")],
    )


test_invariants = invariants(ScaledBeforeAChange, "INV-001", "INV-004", "INV-005", "INV-025")


def _sizes(set_name: str, standalone: int, groups: int) -> dict[str, int]:
    """Return clique → number of pods, for a set with `standalone` pods in its standalone clique and `groups` replicas
    of its scaling group."""
    sizes: dict[str, int] = {}
    for index in range(2 if set_name == SHRINKING_SET else 1):
        sizes[f"{set_name}-{index}-a"] = standalone
        sizes |= {f"{set_name}-{index}-g-{j}-{clique}": 1 for j in range(groups) for clique in "bc"}
    return sizes


def _is_outdated(record: Record) -> bool:
    return changes.image_tag(record.object) != "2"


def _replica_of_group(clique: str) -> str:
    """Return the scaling group replica to which a clique belongs, or an empty string for a standalone clique."""
    return clique.rpartition("-")[0] if "-0-g-" in clique else ""


def _final_sizes(set_name: str) -> dict[str, int]:
    resource, _, replicas = SCALED_PARTS[set_name]
    return _sizes(set_name, replicas if resource == CLIQUES else 3, replicas if resource == GROUPS else 2)
