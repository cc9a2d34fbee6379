"""Tests that PodGangMaps follow the replicas of PodCliques, scaling groups and sets."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.grove import gang_maps, labels
from conformance.grove.fields import Document, label, name, uid
from conformance.grove.gang_maps import MapEntry
from conformance.grove.labels import ANCHOR_ROLE, SCALE_OUT_ROLE
from conformance.history.record import ADDED, DELETED
from conformance.testing import following, predicates
from conformance.testing.disruption import CLIQUES, GANGS, GROUPS, SETS
from conformance.testing.following import MAPS, wait_until_settled
from conformance.testing.observed import are_absent
from conformance.testing.scaled import scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, Span, invariants, requirement

CLIQUE_OUT, CLIQUE_IN = "clique scaled out", "clique scaled in"
GROUP_OUT, GROUP_IN, GROUP_BACK = "group scaled out", "group scaled in", "group scaled out again"
SET_OUT, SET_BACK = "set scaled out", "set scaled out again"


def group_replicas(*indices: int, replica: int = 0) -> dict[str, int]:
    """Return PodClique → number of pods for these replicas of the group."""
    return {f"s-{replica}-g-{index}-{clique}": 1 for index in indices for clique in "bc"}


class ScaledAtEveryLevel(Scene):
    """One node with room for all pods. A set with a standalone clique and a scaling group with three replicas and
    minAvailable 1. The clique, the group and the set are scaled out and in. The set comes to rest after each scaling
    step."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        sizes = {"alone": 2, "aloneMinAvailable": 1, "members": 1, "membersMinAvailable": 1}
        env.create(env.workload("kept", setName="s", groups=3, groupsMinAvailable=1, **sizes))
        env.wait_for("set available", predicates.is_available("s", 1))
        env.settled("maps followed", following.are_maps_followed("s"))
        env.quiet(1)
        env.mark("new")
        scale(env, CLIQUES, "s-0-a", 4)
        wait_until_settled(env, CLIQUE_OUT, "s", {"s-0-a": 4})
        scale(env, CLIQUES, "s-0-a", 1)
        wait_until_settled(env, CLIQUE_IN, "s", {"s-0-a": 1})
        scale(env, GROUPS, "s-0-g", 5)
        wait_until_settled(env, GROUP_OUT, "s", group_replicas(0, 1, 2, 3, 4))
        scale(env, GROUPS, "s-0-g", 1)
        env.settled("surplus replicas gone", are_absent(CLIQUES, group_replicas(1, 2, 3, 4)))
        wait_until_settled(env, GROUP_IN, "s", group_replicas(0))
        scale(env, GROUPS, "s-0-g", 2)
        wait_until_settled(env, GROUP_BACK, "s", group_replicas(0, 1))
        scale(env, SETS, "s", 2)
        wait_until_settled(env, SET_OUT, "s", {"s-1-a": 2, **group_replicas(0, 1, 2, replica=1)})
        removed_gangs = [name(gang) for gang in env.history.view().list(GANGS) if belongs_to_replica(gang, 1)]
        scale(env, SETS, "s", 1)
        env.settle("map of the removed replica gone", are_absent(MAPS, ["s-1"]), 60)
        env.settle("gangs of the removed replica gone", are_absent(GANGS, removed_gangs), 60)
        env.settled("its cliques are gone", are_absent(CLIQUES, ["s-1-a", *group_replicas(0, 1, 2, replica=1)]))
        env.quiet(1)
        scale(env, SETS, "s", 2)
        wait_until_settled(env, SET_BACK, "s", {"s-1-a": 2, **group_replicas(0, 1, 2, replica=1)})


def belongs_to_replica(gang: Document, replica: int) -> bool:
    """Return whether a gang belongs to this replica of the set, judged by the PodCliques that it holds."""
    return any(clique.startswith(f"s-{replica}-") for clique in gang_maps.pod_group_names(gang))


def reused_epochs(earlier_gangs: Iterable[Document], current_gangs: Iterable[Document]) -> list[str]:
    """Return the epochs of earlier gangs that new gangs reuse. Gangs without an epoch are covered by MAP-005."""
    epoch_by_uid = {uid(gang): label(gang, labels.EPOCH) for gang in earlier_gangs}
    new_epochs = {label(gang, labels.EPOCH) for gang in current_gangs if uid(gang) not in epoch_by_uid}
    return sorted(new_epochs.intersection(epoch_by_uid.values()) - {""})


def _rest_step(step: str) -> str:
    return f"{step}: at rest"


def _entry_with_role(entries: tuple[MapEntry, ...], role: str) -> MapEntry | None:
    """Return the last entry with this role."""
    matching_entries = [entry for entry in entries if entry.role == role]
    return matching_entries[-1] if matching_entries else None


def _creations_and_deletions(span: Span) -> list[str]:
    """Return the creations and deletions of gangs in a span, in order."""
    return [f"{record.kind} {record.name}" for record in span.records(GANGS) if record.kind in (ADDED, DELETED)]


@requirement("MAP-010")
def test_an_anchor_follows_its_standalone_clique(run: Recorded[ScaledAtEveryLevel]) -> None:
    """Entries are judged at rest after each scaling step. Gangs are judged from before the first step until the set is
    at rest after the last step."""
    for step, pods in ((CLIQUE_OUT, 4), (CLIQUE_IN, 1)):
        anchor = _entry_with_role(following.entries_of(run.at(_rest_step(step)), "s"), ANCHOR_ROLE)
        run.expect(f"{step}: pods that the Anchor holds", {"a": pods}, dict(anchor.cliques) if anchor else None)
    run.expect("PodGangs created or deleted", [], _creations_and_deletions(run.between("new", _rest_step(CLIQUE_IN))))


@requirement("MAP-011", reaches=(GROUP_OUT, GROUP_BACK))
def test_added_replicas_join_the_scale_out_entry(run: Recorded[ScaledAtEveryLevel]) -> None:
    """A replica that the template declares and that comes back after a scale-in may be in a Tail or in a ScaleOut."""
    entry = _entry_with_role(following.entries_of(run.at(_rest_step(GROUP_OUT)), "s"), SCALE_OUT_ROLE)
    run.expect("replicas that the ScaleOut holds", {"g": (3, 4)}, dict(entry.groups) if entry else None)
    for step, indices in ((GROUP_OUT, (3, 4)), (GROUP_BACK, (1,))):
        view = run.at(_rest_step(step))
        gangs = {gang_maps.pod_group_names(gang) for gang in following.gangs_of(view, "s").values()}
        added_gangs = [tuple(sorted(group_replicas(index))) for index in indices]
        missing_gangs = [replica for replica in added_gangs if replica not in gangs]
        run.expect(f"{step}: added replicas without a PodGang of their own", [], missing_gangs)


@requirement("MAP-012")
def test_entries_lose_the_highest_indices_and_go_when_empty(run: Recorded[ScaledAtEveryLevel]) -> None:
    """Only the first replica is left, so the Tail no longer holds anything."""
    run.given(GROUP_IN)
    entries = following.entries_of(run.at(_rest_step(GROUP_IN)), "s")
    groups = {group: indices for entry in entries for group, indices in entry.groups.items()}
    run.expect("replicas of the group that entries hold", {"g": (0,)}, groups)
    run.expect("entries that hold nothing", [], gang_maps.leftovers(entries))


@requirement("MAP-013")
def test_an_added_replica_begins_with_new_epochs(run: Recorded[ScaledAtEveryLevel]) -> None:
    """The set is scaled out to the same size twice, with a scale-in in between."""
    pcs = run.at("new").get(SETS, "s")
    earlier = [
        record.object
        for record in run.until(_rest_step(SET_OUT)).records(GANGS)
        if belongs_to_replica(record.object, 1)
    ]
    for step in (SET_OUT, SET_BACK):
        entries = following.entries_of(run.at(_rest_step(step)), "s", 1)
        generation = entries[0].generation if entries else ""
        run.expect(
            f"{step}: entries",
            gang_maps.expected_first_entries(pcs or {}, generation),
            gang_maps.observed_first_entries(entries),
        )
    current = [
        gang for gang in following.gangs_of(run.at(_rest_step(SET_BACK)), "s").values() if belongs_to_replica(gang, 1)
    ]
    run.expect(
        "epochs of earlier PodGangs that new ones of the second replica have", [], reused_epochs(earlier, current)
    )


@requirement("MAP-014", reaches=("map of the removed replica gone", "gangs of the removed replica gone"))
def test_maps_of_removed_replicas_go(run: Recorded[ScaledAtEveryLevel]) -> None:
    """The objects of the remaining replica are compared by their UIDs."""
    before, after = run.at(_rest_step(SET_OUT)), run.at("gangs of the removed replica gone")
    remaining = [(MAPS, "s-0"), *((GANGS, name(gang)) for gang in before.list(GANGS) if belongs_to_replica(gang, 0))]
    old_uids, new_uids = (
        {
            f"{object_name} ({resource})": uid(view.get(resource, object_name) or {})
            for resource, object_name in remaining
        }
        for view in (before, after)
    )
    run.same("maps and gangs of the replica that stays", old_uids, new_uids)


@requirement("MAP-007")
def test_everything_is_held_once_at_rest(run: Recorded[ScaledAtEveryLevel]) -> None:
    """This is judged after each scaling step, for the replicas that PodCliques and scaling groups specify."""
    for step in (CLIQUE_OUT, CLIQUE_IN, GROUP_OUT, GROUP_IN, GROUP_BACK, SET_OUT, SET_BACK):
        run.expect(f"{step}: not held once", [], following.misplaced_members(run.at(_rest_step(step)), "s"))


@requirement("MAP-008")
def test_every_pod_is_referred_to_by_its_gang(run: Recorded[ScaledAtEveryLevel]) -> None:
    """This is judged after each scaling step, for all pods of the set."""
    for step in (CLIQUE_OUT, CLIQUE_IN, GROUP_OUT, GROUP_IN, GROUP_BACK, SET_OUT, SET_BACK):
        run.expect(f"{step}: pods astray", [], following.stray_pods(run.at(_rest_step(step)), "s"))


test_invariants = invariants(ScaledAtEveryLevel, "INV-001", "INV-002", "INV-004", "INV-005", "INV-008", "INV-009")
