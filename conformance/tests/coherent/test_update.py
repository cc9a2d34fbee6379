"""A coherent update of a set in which nothing fails: its sub-steps, what it reports, and what it leaves behind."""

from __future__ import annotations

import pytest

from conformance.grove import labels, updates
from conformance.grove.coherent import change, plan, shapes
from conformance.grove.coherent.model import broken_partition
from conformance.grove.fields import items, label, name, text, uid
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.following import by_plan, generation, layouts
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
@pytest.mark.parametrize("each", CHANGES)
def test_updates_follow_the_plan(run: Recorded[SetUpdatedFourTimes], each: str) -> None:
    """The plan is made of the components in scope only."""
    components = sets.components(run.scene.workload, CHANGES[each][1])
    by_plan(run, each, change.changes(layouts(run, each)), components)


@requirement("COHR-031")
@pytest.mark.parametrize("each", CHANGES)
def test_each_write_is_permitted(run: Recorded[SetUpdatedFourTimes], each: str) -> None:
    """Which sub-steps these are is left to COHR-030."""
    found, new = layouts(run, each), generation(run, each)
    old = [entry.key for entry in found[0]]
    wrong = {
        f"write {number}": problems
        for number, step in enumerate(change.changes(found), 1)
        if (problems := list(change.unmoved(step, new, old)))
    }
    run.expect(f"{each}: what writes of the map must not do", {}, wrong)


@requirement("COHR-032")
def test_nothing_old_is_left(run: Recorded[SetUpdatedFourTimes]) -> None:
    """Entries that hold nothing do not count."""
    found = layouts(run, ALL)[-1]
    old = sorted(entry.key for entry in found if entry.generation != generation(run, ALL))
    run.expect("entries of an old generation", [], old)
    wanted = sets.components(run.scene.workload)
    run.expect("anchors", plan.steps(wanted).count, sum(entry.anchor for entry in found))
    sizes = {each.key: each.replicas for each in wanted}
    run.expect("what entries do not hold exactly once", [], broken_partition(found, sizes))


@requirement("COHR-033")
def test_the_progress_of_the_set(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The set has one replica; each of the updates has another scope."""
    for each, (_, parts) in CHANGES.items():
        run.given(f"{each}: updated")
        span = run.between(f"{each}: change", f"{each}: at rest")
        before = updates.generation(span.begin().get(SETS, "s"))
        found = [r.object for r in span.records(SETS, "s") if updates.generation(r.object) != before]
        during = [each for each in found if updates.running(each)]
        run.expect(f"{each}: scopes", [tuple(sorted(parts))], shapes.scopes(during))
        turns = [index for one in during for index in updates.turns(one)]
        run.expect(f"{each}: replicas that had their turn", [0], list(dict.fromkeys(turns)))
        end = run.at(f"{each}: at rest").get(SETS, "s")
        run.expect(
            f"{each}: ended, replicas that are being updated", (True, []), (updates.ended(end), updates.turns(end))
        )


@requirement("COHR-034")
def test_what_is_in_flight(run: Recorded[SetUpdatedFourTimes]) -> None:
    """A gang may be named by its entry, by its epoch or by its own name."""
    found = layouts(run, ALL)
    new = {entry.key for layout in found for entry in layout if entry.generation == generation(run, ALL)}
    span = run.between(f"{ALL}: change", f"{ALL}: at rest")
    told = {key for record in span.records(SETS, "s") for key in shapes.in_flight(record.object).get(0, [])}
    epochs = {key.partition("/")[0] for key in new}
    records = span.records(GANGS)
    gangs = {r.name for r in records if label(r.object, labels.GENERATION_HASH) == generation(run, ALL)}
    run.expect("gangs in flight that are not new", [], sorted(told - new - epochs - gangs))
    end = shapes.in_flight(run.at(f"{ALL}: at rest").get(SETS, "s"))
    run.expect("in flight at the end", [], [key for keys in end.values() for key in keys])


@requirement("COHR-035")
def test_gangs_keep_their_generation(run: Recorded[SetUpdatedFourTimes]) -> None:
    """In an update of all components, no old gang is without anything in scope before it is deleted."""
    run.given(f"{ALL}: updated")
    found: dict[str, set[str]] = {}
    for record in run.until(f"{ALL}: at rest").records(GANGS):
        found.setdefault(f"{record.name} {record.uid}", set()).add(label(record.object, labels.GENERATION_HASH))
    run.expect("gangs that have had several", {}, {key: sorted(own) for key, own in found.items() if len(own) > 1})
    before = updates.generation(run.at(f"{ALL}: change").get(SETS, "s"))
    run.expect(
        "generations", sorted([before, generation(run, ALL)]), sorted({own for all in found.values() for own in all})
    )


@requirement("COHR-036", reaches=f"{ALL}: updated")
def test_each_pod_is_replaced_once(run: Recorded[SetUpdatedFourTimes]) -> None:
    """All components are in scope, so that as many pods are created as there were."""
    before = sets.uids(sets.of_set(run.at(f"{ALL}: change"), "s"))
    after = sets.uids(sets.of_set(run.at(f"{ALL}: at rest"), "s"))
    made = {record.uid for record in run.between(f"{ALL}: change", f"{ALL}: at rest").records("pods")} - before.keys()
    run.expect("pods that were kept", [], sorted(before.keys() & after.keys()))
    run.expect("pods that were created", len(before), len(made))
    run.expect(
        "images in the end",
        {"dm": ["2"], "f": ["2"], "pl": ["2"], "pw": ["2"]},
        sets.tags(run.at(f"{ALL}: at rest"), "s"),
    )


@requirement("COHR-037")
def test_replicas_are_replaced_in_order(run: Recorded[SetUpdatedFourTimes]) -> None:
    """Those of one sub-step come in any order."""
    taken: dict[str, list[int]] = {"p": [], "d": []}
    for step in change.changes(layouts(run, ALL)):
        for entry in (*step.opened, *step.tails):
            for group, own in entry.groups.items():
                taken[group] += sorted(own)
    run.expect("replicas, in the order of their sub-steps", {"p": [0, 1, 2, 3], "d": [0, 1, 2]}, taken)


@requirement("COHR-038")
def test_old_gangs_are_deleted(run: Recorded[SetUpdatedFourTimes]) -> None:
    """In an update of all components, each old gang loses its last member."""
    run.given(f"{ALL}: updated")
    before = {uid(gang) for gang in run.at(f"{ALL}: change").list(GANGS)}
    left = [name(gang) for gang in run.at(f"{ALL}: at rest").list(GANGS) if uid(gang) in before]
    run.expect("old gangs that are left", [], left)


@requirement("COHR-039")
def test_emptied_groups_vanish(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The two partial updates leave gangs that hold less than before."""
    for step in (ONLY_GROUPS, ONLY_FRONT):
        run.given(f"{step}: updated")
        view = run.at(f"{step}: at rest")
        right = {entry.key: sets.cliques_of(entry, "s-0") for entry in sets.layout(view, "s")}
        seen = {
            key: sorted(text(group, "name") for group in items(gang, "spec", "podgroups"))
            for key, gang in sets.gangs(view, "s").items()
        }
        run.same(f"PodGroups, {step}", right, seen)


@requirement("COHR-021")
def test_names_of_new_gangs(run: Recorded[SetUpdatedFourTimes]) -> None:
    """Names are compared over all four updates."""
    run.given(f"{ONE_MEMBER}: updated")
    records = run.until(f"{ONE_MEMBER}: at rest").records(GANGS)
    owners: dict[str, set[str]] = {}
    for record in records:
        owners.setdefault(record.name, set()).add(record.uid)
    run.expect("names that several gangs have had", [], sorted(each for each, own in owners.items() if len(own) > 1))
    run.expect("other names", [], sorted(each for each in owners if not each.startswith("s-0-")))


@requirement("COHR-109")
def test_a_sub_step_waits_until_the_one_before_is_ready(run: Recorded[SetUpdatedFourTimes | SetsOfEveryShape]) -> None:
    """The budget of one of the sets would permit the next sub-step before."""
    run.invariant()


test_invariants = invariants(
    SetUpdatedFourTimes, *(f"INV-{number:03}" for number in (11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23))
)
