"""Scaling of a set whose gangs a coherent update has formed."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.coherent import steady
from conformance.grove.coherent.change import Change
from conformance.grove.coherent.model import Key, indices, total
from conformance.grove.fields import label, name, uid
from conformance.history.view import View
from conformance.testing.scene import Recorded, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.scenes import ScaledAfterAnUpdate

Run = Recorded[ScaledAfterAnUpdate]
F, P = Key("clique", "f"), Key("group", "p")


def scaled(run: Run, before: str, step: str, f: int, p: int) -> Change:
    """What scaling did to the gangs, which it was permitted to do."""
    run.reached(step)
    views = run.at(before), run.at(f"{step}: at rest")
    found = Change(sets.layout(views[0], "s"), sets.layout(views[1], "s"))
    run.expect(f"{step}: what must not be done", [], steady.problems(found, {F: f, P: p}))
    return found


def places(view: View) -> dict[str, str]:
    """Pods by uid, with their gangs."""
    return {uid(pod): label(pod, labels.GANG) for pod in sets.of_set(view, "s")}


@requirement("COHR-080")
def test_added_replicas_get_gangs_of_their_own(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """Each added replica MUST get a PodGang of its own, which is no anchor; other PodGangs MUST stay as they are."""
    found = scaled(run, "at rest", "replicas added", 4, 6)
    held = sorted(entry.content() for entry in found.tails)
    run.expect("new gangs", ["{p[4]}", "{p[5]}"], held)
    run.expect("gangs that have changed", [], sorted({*found.grown, *found.shrunk}))
    before, after = places(run.at("at rest")), places(run.at("replicas added: at rest"))
    run.same("pods that were there, and their gangs", before, {each: after.get(each) for each in before})


@requirement("COHR-081")
def test_added_pods_join_the_newest_gang(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """Pods that are added to a standalone PodClique MUST join the newest PodGang that holds the PodClique."""
    found = scaled(run, "replicas added: at rest", "pods added", 6, 6)
    run.expect("new gangs", [], [entry.content() for entry in (*found.opened, *found.tails)])
    run.expect("pods that joined a gang", [2], [more.get(F, 0) for more in found.grown.values()])


@requirement("COHR-082")
def test_the_highest_replicas_are_removed(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """After a scale-in, the replicas that are left MUST have the indices from 0 on, each in its PodGang."""
    for before, step, count in (
        ("pods added: at rest", "replicas removed", 3),
        ("replicas removed: at rest", "one replica added again", 4),
    ):
        found = scaled(run, before, step, 6, count)
        run.expect(f"{step}: replicas", list(range(count)), indices(found.after, "p"))
        kept, now = places(run.at(before)), places(run.at(f"{step}: at rest"))
        stay = {each: gang for each, gang in kept.items() if each in now}
        run.same(f"{step}: gangs of the pods that are left", stay, {each: now[each] for each in stay})


@requirement("COHR-083")
def test_pods_that_are_not_ready_are_removed_first(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """When a standalone PodClique is scaled in, Pods that are not Ready MUST be deleted first."""
    run.reached("one pod not Ready")
    found = scaled(run, "one pod not Ready", "pods removed", 2, 4)
    left = [name(pod) for pod in sets.of_set(run.at("pods removed: at rest"), "s") if uid(pod) == run.scene.unready]
    run.expect("the pod that was not Ready", [], left)
    run.expect("pods in the entries", 2, total(found.after, F))


@requirement("COHR-084")
def test_empty_gangs_are_deleted(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """A PodGang that holds nothing any more after a scale-in MUST be deleted, with its entry."""
    found = scaled(run, "pods removed: at rest", "least replicas", 2, 1)
    named = {entry.key for entry in found.after}
    run.expect("PodGangs", sorted(named), sorted(sets.gangs(run.at("least replicas: at rest"), "s")))
    run.expect("whether gangs were deleted", True, len(found.after) < len(found.before))


@requirement("COHR-085")
def test_partners_of_a_removed_replica_stay(run: Recorded[ScaledAfterAnUpdate]) -> None:
    """When a replica is scaled in, the others in its PodGang SHOULD keep their Pods."""
    run.reached("least replicas")
    before, after = run.at("pods removed: at rest"), run.at("least replicas: at rest")
    front = sets.uids(sets.of_template(before, "s", "f"))
    run.same("pods of f", front, sets.uids(sets.of_template(after, "s", "f")))


@invariants("INV-020", "INV-021", "INV-022")
def test_invariants(run: Recorded[ScaledAfterAnUpdate], invariant: str) -> None:
    """What MUST hold at every moment of any history."""
    run.invariant()
