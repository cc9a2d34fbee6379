"""Tests of scaling a set whose gangs were formed by a coherent update."""

from __future__ import annotations

from conformance.grove import labels, pods
from conformance.grove.coherent import shapes, steady
from conformance.grove.coherent.change import LayoutChange
from conformance.grove.coherent.model import Key, indices, shape, total
from conformance.grove.fields import label, name, uid
from conformance.history.view import View
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.scenes import ONE_MEMBER, ScaledAfterAnUpdate, SetUpdatedFourTimes

Run = Recorded[ScaledAfterAnUpdate]
CLIQUE_KEY, GROUP_KEY = Key("clique", "f"), Key("group", "p")


def change_of_gangs(run: Run, before: str, step: str) -> LayoutChange:
    """Return the change to the gangs that a scaling step caused."""
    run.given(step)
    views = run.at(before), run.at(f"{step}: at rest")
    return LayoutChange(sets.layout(views[0], "s"), sets.layout(views[1], "s"))


def permitted_change(run: Run, before: str, step: str, f: int, p: int) -> LayoutChange:
    """Return the change to the gangs that a scaling step caused, and expect that the change was permitted."""
    change = change_of_gangs(run, before, step)
    run.expect(f"{step}: what must not be done", [], steady.problems(change, {CLIQUE_KEY: f, GROUP_KEY: p}))
    return change


def gangs_by_pod(view: View) -> dict[str, str]:
    """Return pod UID → gang that the pod names."""
    return {uid(pod): label(pod, labels.GANG) for pod in sets.pods_of_set(view, "s")}


@requirement("COHR-080", reaches="replicas added")
def test_added_replicas_get_gangs_of_their_own(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """Two replicas are added after an update."""
    change = permitted_change(run, "at rest", "replicas added", 4, 6)
    contents = sorted(entry.content() for entry in change.new_non_anchors)
    run.expect("new gangs", ["{p[4]}", "{p[5]}"], contents)
    run.expect("gangs that have changed", [], sorted({*change.gains_by_gang, *change.losses_by_gang}))
    before, after = gangs_by_pod(run.at("at rest")), gangs_by_pod(run.at("replicas added: at rest"))
    run.same("pods that were there, and their gangs", before, {pod_uid: after.get(pod_uid) for pod_uid in before})


@requirement("COHR-081")
def test_added_pods_join_the_newest_gang(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """All anchors hold pods of f, so the newest anchor is also the newest gang with pods of f."""
    change = permitted_change(run, "replicas added: at rest", "pods added", 6, 6)
    run.expect("new gangs", [], [entry.content() for entry in (*change.new_anchors, *change.new_non_anchors)])
    run.expect("pods that joined a gang", [2], [added.get(CLIQUE_KEY, 0) for added in change.gains_by_gang.values()])


@requirement("COHR-108")
def test_added_pods_join_a_gang_that_holds_their_clique(run: Recorded[SetUpdatedFourTimes]) -> None:
    """The last update changed only a scaling group, so the newest anchor holds no pods of f."""
    run.given("pods added")
    before, after = (sets.layout(run.at(step), "s") for step in (f"{ONE_MEMBER}: at rest", "end"))
    change = LayoutChange(before, after)
    sizes = {CLIQUE_KEY: 6, GROUP_KEY: 4, Key("group", "d"): 3}
    run.expect("what must not be done", [], steady.problems(change, sizes))
    run.expect("pods that joined a gang", [1], [added.get(CLIQUE_KEY, 0) for added in change.gains_by_gang.values()])


@requirement("COHR-082")
def test_the_highest_replicas_are_removed(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """This also holds after a subsequent scale-out."""
    for before, step, count in (
        ("pods added: at rest", "replicas removed", 3),
        ("replicas removed: at rest", "one replica added again", 4),
    ):
        run.given(f"{step}: in the map")
        entry_sizes = sets.layout(run.at(f"{step}: in the map"), "s")
        run.expect(f"{step}: replicas in the map", list(range(count)), indices(entry_sizes, "p"))
        change = permitted_change(run, before, step, 6, count)
        run.expect(f"{step}: replicas", list(range(count)), indices(change.after, "p"))
        old_gangs, new_gangs = gangs_by_pod(run.at(before)), gangs_by_pod(run.at(f"{step}: at rest"))
        remaining = {pod_uid: gang for pod_uid, gang in old_gangs.items() if pod_uid in new_gangs}
        current = {pod_uid: new_gangs[pod_uid] for pod_uid in remaining}
        run.same(f"{step}: gangs of the pods that are left", remaining, current)


@requirement("COHR-083")
def test_pods_that_are_not_ready_are_removed_first(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """All pods of f in its newest gang have failed, and f is scaled in by their number."""
    run.given("pods not Ready", "pods removed: number of pods")
    remaining = [
        name(pod)
        for pod in sets.pods_of_set(run.at("pods removed: number of pods"), "s")
        if uid(pod) in run.scene.unready_pod
    ]
    run.expect("pods that were not Ready", [], remaining)
    change = change_of_gangs(run, "pods not Ready", "pods removed")
    run.expect("pods in the entries", 2, total(change.after, CLIQUE_KEY))


@requirement("COHR-084", reaches="empty gangs deleted")
def test_empty_gangs_are_deleted(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """The group is scaled in to its minimum."""
    change = change_of_gangs(run, "one replica added again: at rest", "least replicas")
    run.expect("whether gangs have lost their last member", True, len(change.after) < len(change.before))


@requirement("COHR-085")
def test_partners_of_a_removed_replica_stay(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """Anchors hold both pods of f and replicas of p."""
    run.given("least replicas")
    before, after = run.at("one replica added again: at rest"), run.at("least replicas: at rest")
    front = sets.clique_by_uid(sets.pods_of_templates(before, "s", "f"))
    run.same("pods of f", front, sets.clique_by_uid(sets.pods_of_templates(after, "s", "f")))


@requirement("COHR-089", reaches="terminated and recovered")
def test_a_terminated_replica_keeps_its_gangs(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """Gangs are compared by their contents, because the keys of entries are not specified. One pod of an anchor must be
    bound before the first pod of any gang whose entry depends on anchors."""
    run.given("pods of the template", "terminated")
    before, after = (sets.layout(run.at(step), "s") for step in ("pods of the template: at rest", "end"))
    run.expect("entries", shape(before), shape(after))
    dependent = {entry.key for entry in after if entry.dependent}
    gangs = sets.gangs_by_key(run.at("end"), "s")
    anchors = {name(gang) for gang in gangs.values() if shapes.is_anchor(gang)}
    later = {name(gang) for key, gang in gangs.items() if key in dependent}
    bound: dict[str, list[int]] = {"anchors": [], "dependent gangs": []}
    for record in run.after("pods of the template: at rest").records("pods"):
        if record.uid not in run.scene.initial_pods and pods.is_bound(record.object):
            gang_name = label(record.object, labels.GANG)
            for kind, members in (("anchors", anchors), ("dependent gangs", later)):
                bound[kind] += [record.revision] if gang_name in members else []
    first = {kind: min(revisions) for kind, revisions in bound.items() if revisions}
    run.expect("gangs whose pods were bound", ["anchors", *(["dependent gangs"] if later else [])], list(first))
    run.expect("pods of an anchor were bound first", sorted(first), sorted(first, key=lambda kind: first[kind]))


test_invariants = invariants(ScaledAfterAnUpdate, "INV-020", "INV-021", "INV-022")
