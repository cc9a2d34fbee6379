"""Tests of coherent updates in which nothing fails: their sub-steps, their reported progress, and their results."""

from __future__ import annotations

import pytest

from conformance.grove import labels, updates
from conformance.grove.coherent import change, plan, shapes
from conformance.grove.coherent.model import broken_partition
from conformance.grove.fields import items, label, name, text, uid
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.following import expect_plan, generation_hash, layouts
from conformance.tests.coherent.scenes import (
    ALL,
    CHANGES,
    ONE_MEMBER,
    ONLY_FRONT,
    ONLY_GROUPS,
    SetsOfEveryShape,
    SetUpdatedFourTimes,
)
from conformance.tests.coherent.sets import GANGS, SETS


@requirement("COHR-030")
@pytest.mark.parametrize("update", CHANGES)
def test_updates_follow_the_plan(run: Recorded[SetUpdatedFourTimes], update: str) -> None:
    """Only the components in scope are planned."""
    components = sets.components(run.scene.workload, CHANGES[update][1])
    expect_plan(run, update, change.changes(layouts(run, update)), components)


@requirement("COHR-031")
@pytest.mark.parametrize("update", CHANGES)
def test_each_write_is_permitted(run: Recorded[SetUpdatedFourTimes], update: str) -> None:
    """The sub-steps themselves are covered by COHR-030."""
    versions, new_generation = layouts(run, update), generation_hash(run, update)
    old_keys = [entry.key for entry in versions[0]]
    violations = {
        f"write {number}": problems
        for number, step in enumerate(change.changes(versions), 1)
        if (problems := list(change.movement_errors(step, new_generation, old_keys)))
    }
    run.expect(f"{update}: what writes of the map must not do", {}, violations)


@requirement("COHR-032")
def test_nothing_old_is_left(run: Recorded[SetUpdatedFourTimes]) -> None:
    """Empty entries are not judged."""
    entries = layouts(run, ALL)[-1]
    old_keys = sorted(entry.key for entry in entries if entry.generation != generation_hash(run, ALL))
    run.expect("entries of an old generation", [], old_keys)
    components = sets.components(run.scene.workload)
    run.expect("anchors", plan.steps(components).count, sum(entry.anchor for entry in entries))
    sizes = {component.key: component.replicas for component in components}
    run.expect("what entries do not hold exactly once", [], broken_partition(entries, sizes))


@requirement("COHR-033")
def test_the_progress_of_the_set(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The set has one replica, and the updates have different scopes."""
    for update, (_, components) in CHANGES.items():
        run.given(f"{update}: updated")
        span = run.between(f"{update}: change", f"{update}: at rest")
        before = updates.generation_hash(span.start_view().get(SETS, "s"))
        records = (record.object for record in span.records(SETS, "s"))
        states = [pcs for pcs in records if updates.generation_hash(pcs) != before]
        during = [pcs for pcs in states if updates.is_running(pcs)]
        run.expect(f"{update}: scopes", [tuple(sorted(components))], shapes.scopes(during))
        turns = [index for pcs in during for index in updates.updating_replicas(pcs)]
        run.expect(f"{update}: replicas that had their turn", [0], list(dict.fromkeys(turns)))
        end = run.at(f"{update}: at rest").get(SETS, "s")
        run.expect(
            f"{update}: ended, replicas that are being updated",
            (True, []),
            (updates.has_ended(end), updates.updating_replicas(end)),
        )


@requirement("COHR-034")
def test_what_is_in_flight(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The set's progress may identify a gang by its entry, its epoch or its name."""
    versions, new_generation = layouts(run, ALL), generation_hash(run, ALL)
    new = {entry.key for layout in versions for entry in layout if entry.generation == new_generation}
    span = run.between(f"{ALL}: change", f"{ALL}: at rest")
    in_flight = {key for record in span.records(SETS, "s") for key in shapes.in_flight(record.object).get(0, [])}
    epochs = {key.partition("/")[0] for key in new}
    records = span.records(GANGS)
    gangs = {record.name for record in records if label(record.object, labels.GENERATION_HASH) == new_generation}
    run.expect("gangs in flight that are not new", [], sorted(in_flight - new - epochs - gangs))
    end = shapes.in_flight(run.at(f"{ALL}: at rest").get(SETS, "s"))
    run.expect("in flight at the end", [], [key for keys in end.values() for key in keys])


@requirement("COHR-035")
def test_gangs_keep_their_generation(run: Recorded[SetUpdatedFourTimes]) -> None:
    """In an update of all components, every old gang holds components in scope until it is deleted."""
    run.given(f"{ALL}: updated")
    generations_by_gang: dict[str, set[str]] = {}
    for record in run.until(f"{ALL}: at rest").records(GANGS):
        key, gang_generation = f"{record.name} {record.uid}", label(record.object, labels.GENERATION_HASH)
        generations_by_gang.setdefault(key, set()).add(gang_generation)
    several = {key: sorted(hashes) for key, hashes in generations_by_gang.items() if len(hashes) > 1}
    run.expect("gangs that have had several", {}, several)
    before = updates.generation_hash(run.at(f"{ALL}: change").get(SETS, "s"))
    observed: set[str] = set().union(*generations_by_gang.values())
    run.expect("generations", sorted([before, generation_hash(run, ALL)]), sorted(observed))


@requirement("COHR-036", reaches=f"{ALL}: updated")
def test_each_pod_is_replaced_once(run: Recorded[SetUpdatedFourTimes]) -> None:
    """All components are in scope, so as many pods are created as existed before."""
    before = sets.clique_by_uid(sets.pods_of_set(run.at(f"{ALL}: change"), "s"))
    after = sets.clique_by_uid(sets.pods_of_set(run.at(f"{ALL}: at rest"), "s"))
    records = run.between(f"{ALL}: change", f"{ALL}: at rest").records("pods")
    created = {record.uid for record in records} - before.keys()
    run.expect("pods that were kept", [], sorted(before.keys() & after.keys()))
    run.expect("pods that were created", len(before), len(created))
    images = sets.image_tags(run.at(f"{ALL}: at rest"), "s")
    run.expect("images in the end", {"dm": ["2"], "f": ["2"], "pl": ["2"], "pw": ["2"]}, images)


@requirement("COHR-037")
def test_replicas_are_replaced_in_order(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The replicas of one sub-step may be replaced in any order."""
    replicas: dict[str, list[int]] = {"p": [], "d": []}
    for step in change.changes(layouts(run, ALL)):
        for entry in (*step.new_anchors, *step.new_non_anchors):
            for group, indices in entry.groups.items():
                replicas[group] += sorted(indices)
    run.expect("replicas, in the order of their sub-steps", {"p": [0, 1, 2, 3], "d": [0, 1, 2]}, replicas)


@requirement("COHR-038")
def test_old_gangs_are_deleted(run: Recorded[SetUpdatedFourTimes]) -> None:
    """In an update of all components, every old gang loses its last member."""
    run.given(f"{ALL}: updated")
    before = {uid(gang) for gang in run.at(f"{ALL}: change").list(GANGS)}
    remaining = [name(gang) for gang in run.at(f"{ALL}: at rest").list(GANGS) if uid(gang) in before]
    run.expect("old gangs that are left", [], remaining)


@requirement("COHR-039")
def test_emptied_groups_vanish(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The two partial updates leave gangs that hold fewer pods than before."""
    for step in (ONLY_GROUPS, ONLY_FRONT):
        run.given(f"{step}: updated")
        view = run.at(f"{step}: at rest")
        expected = {entry.key: sets.cliques_of(entry, "s-0") for entry in sets.layout(view, "s")}
        observed = {
            key: sorted(text(group, "name") for group in items(gang, "spec", "podgroups"))
            for key, gang in sets.gangs_by_key(view, "s").items()
        }
        run.same(f"PodGroups, {step}", expected, observed)


@requirement("COHR-021")
def test_names_of_new_gangs(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The names are compared across all four updates."""
    run.given(f"{ONE_MEMBER}: updated")
    records = run.until(f"{ONE_MEMBER}: at rest").records(GANGS)
    owners: dict[str, set[str]] = {}
    for record in records:
        owners.setdefault(record.name, set()).add(record.uid)
    reused = sorted(gang_name for gang_name, uids in owners.items() if len(uids) > 1)
    run.expect("names that several gangs have had", [], reused)
    run.expect("other names", [], sorted(gang_name for gang_name in owners if not gang_name.startswith("s-0-")))


@requirement("COHR-109")
def test_a_sub_step_waits_until_the_one_before_is_ready(run: Recorded[SetUpdatedFourTimes | SetsOfEveryShape]) -> None:
    """The maxUnavailable of one of the sets would permit an earlier start of the next sub-step."""
    run.invariant()


test_invariants = invariants(
    SetUpdatedFourTimes, *(f"INV-{number:03}" for number in (11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23))
)
