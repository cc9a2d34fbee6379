"""Scaling of a set whose gangs a coherent update has formed."""

from __future__ import annotations

from conformance.grove import labels, pods
from conformance.grove.coherent import shapes, steady
from conformance.grove.coherent.change import Change
from conformance.grove.coherent.model import Key, indices, shape, total
from conformance.grove.fields import label, name, uid
from conformance.history.view import View
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.scenes import ONE_MEMBER, ScaledAfterAnUpdate, SetUpdatedFourTimes

Run = Recorded[ScaledAfterAnUpdate]
F, P = Key("clique", "f"), Key("group", "p")


def regrouped(run: Run, before: str, step: str) -> Change:
    """Return what scaling did to the gangs."""
    run.given(step)
    views = run.at(before), run.at(f"{step}: at rest")
    return Change(sets.layout(views[0], "s"), sets.layout(views[1], "s"))


def scaled(run: Run, before: str, step: str, f: int, p: int) -> Change:
    """Return what scaling did to the gangs, which it was permitted to do."""
    change = regrouped(run, before, step)
    run.expect(f"{step}: what must not be done", [], steady.problems(change, {F: f, P: p}))
    return change


def places(view: View) -> dict[str, str]:
    """Pods by uid, with their gangs."""
    return {uid(pod): label(pod, labels.GANG) for pod in sets.of_set(view, "s")}


@requirement("COHR-080", reaches="replicas added")
def test_added_replicas_get_gangs_of_their_own(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """Two replicas are added after an update."""
    found = scaled(run, "at rest", "replicas added", 4, 6)
    held = sorted(entry.content() for entry in found.tails)
    run.expect("new gangs", ["{p[4]}", "{p[5]}"], held)
    run.expect("gangs that have changed", [], sorted({*found.grown, *found.shrunk}))
    before, after = places(run.at("at rest")), places(run.at("replicas added: at rest"))
    run.same("pods that were there, and their gangs", before, {each: after.get(each) for each in before})


@requirement("COHR-081")
def test_added_pods_join_the_newest_gang(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """All anchors hold pods of f, so that the newest one is also the newest gang that does."""
    found = scaled(run, "replicas added: at rest", "pods added", 6, 6)
    run.expect("new gangs", [], [entry.content() for entry in (*found.opened, *found.tails)])
    run.expect("pods that joined a gang", [2], [more.get(F, 0) for more in found.grown.values()])


@requirement("COHR-108")
def test_added_pods_join_a_gang_that_holds_their_clique(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The last update was about a scaling group: the newest anchor holds nothing of f."""
    run.given("pods added")
    before, after = (sets.layout(run.at(step), "s") for step in (f"{ONE_MEMBER}: at rest", "end"))
    found = Change(before, after)
    sizes = {F: 6, P: 4, Key("group", "d"): 3}
    run.expect("what must not be done", [], steady.problems(found, sizes))
    run.expect("pods that joined a gang", [1], [more.get(F, 0) for more in found.grown.values()])


@requirement("COHR-082")
def test_the_highest_replicas_are_removed(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """Also after a scale-out that follows it."""
    for before, step, count in (
        ("pods added: at rest", "replicas removed", 3),
        ("replicas removed: at rest", "one replica added again", 4),
    ):
        run.given(f"{step}: in the map")
        in_map = sets.layout(run.at(f"{step}: in the map"), "s")
        run.expect(f"{step}: replicas in the map", list(range(count)), indices(in_map, "p"))
        found = scaled(run, before, step, 6, count)
        run.expect(f"{step}: replicas", list(range(count)), indices(found.after, "p"))
        kept, now = places(run.at(before)), places(run.at(f"{step}: at rest"))
        stay = {each: gang for each, gang in kept.items() if each in now}
        run.same(f"{step}: gangs of the pods that are left", stay, {each: now[each] for each in stay})


@requirement("COHR-083")
def test_pods_that_are_not_ready_are_removed_first(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """All pods of f in its newest gang have failed, and f is scaled in by as many."""
    run.given("pods not Ready", "pods removed: number of pods")
    left = [
        name(pod) for pod in sets.of_set(run.at("pods removed: number of pods"), "s") if uid(pod) in run.scene.unready
    ]
    run.expect("pods that were not Ready", [], left)
    change = regrouped(run, "pods not Ready", "pods removed")
    run.expect("pods in the entries", 2, total(change.after, F))


@requirement("COHR-084", reaches="empty gangs deleted")
def test_empty_gangs_are_deleted(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """The group is scaled in to the least that is permitted."""
    change = regrouped(run, "one replica added again: at rest", "least replicas")
    run.expect("whether gangs have lost their last member", True, len(change.after) < len(change.before))


@requirement("COHR-085")
def test_partners_of_a_removed_replica_stay(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """Anchors hold pods of f beside replicas of p."""
    run.given("least replicas")
    before, after = run.at("one replica added again: at rest"), run.at("least replicas: at rest")
    front = sets.uids(sets.of_template(before, "s", "f"))
    run.same("pods of f", front, sets.uids(sets.of_template(after, "s", "f")))


@requirement("COHR-089", reaches="terminated and recovered")
def test_a_terminated_replica_keeps_its_gangs(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """By what they hold: the keys of entries are free. One pod of an anchor is bound before the first of any gang whose
    entry depends on anchors."""
    run.given("pods of the template", "terminated")
    before, after = (sets.layout(run.at(step), "s") for step in ("pods of the template: at rest", "end"))
    run.expect("entries", shape(before), shape(after))
    dependent = {entry.key for entry in after if entry.dependent}
    gangs = sets.gangs(run.at("end"), "s")
    anchors = {name(gang) for gang in gangs.values() if shapes.is_anchor(gang)}
    later = {name(gang) for key, gang in gangs.items() if key in dependent}
    bound: dict[str, list[int]] = {"anchors": [], "dependent gangs": []}
    for record in run.after("pods of the template: at rest").records("pods"):
        if record.uid not in run.scene.first and pods.bound(record.object):
            own = label(record.object, labels.GANG)
            for kind, members in (("anchors", anchors), ("dependent gangs", later)):
                bound[kind] += [record.revision] if own in members else []
    first = {kind: min(revisions) for kind, revisions in bound.items() if revisions}
    run.expect("gangs whose pods were bound", ["anchors", *(["dependent gangs"] if later else [])], list(first))
    run.expect("pods of an anchor were bound first", sorted(first), sorted(first, key=lambda kind: first[kind]))


test_invariants = invariants(ScaledAfterAnUpdate, "INV-020", "INV-021", "INV-022")
