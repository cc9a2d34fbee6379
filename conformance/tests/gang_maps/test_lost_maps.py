"""Tests that running pods are not affected if another client deletes, empties or edits a PodGangMap."""

from __future__ import annotations

import copy
from typing import Any

from conformance.grove.fields import Document, name, uid
from conformance.grove.labels import ANCHOR_ROLE
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import following, incarnations, predicates
from conformance.testing.disruption import CLIQUES, GANGS, GROUPS
from conformance.testing.following import MAPS, trigger_reconcile, wait_until_settled
from conformance.testing.scaled import pods_are, scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

ANOTHER_MAP, MAP_REBUILT, MAP_REBUILT_AGAIN, MAP_FILLED = (
    "another map",
    "map rebuilt",
    "map rebuilt again",
    "map filled",
)
PODS_ADDED = "pods added after the map was emptied"
MAP_EDITS = ("one index in two entries", "dependence on no entry", "no anchor")


class LostMaps(Scene):
    """One node with room for all pods. A set whose clique and group are scaled above the template loses its map. Then
    its group is scaled in and out, and it loses the map again. Then the map's entries are removed, and finally the map
    is edited in several ways. After each of these changes the operator is triggered to reconcile the set. The scene
    cannot be run if sets have no maps, so no invariant is judged in it."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        sizes = {"alone": 2, "aloneMinAvailable": 1, "members": 1, "membersMinAvailable": 1}
        env.create(env.workload("kept", setName="s", groups=2, groupsMinAvailable=1, **sizes))
        env.wait_for("set available", predicates.is_available("s", 1))
        scale(env, CLIQUES, "s-0-a", 3)
        scale(env, GROUPS, "s-0-g", 3)
        wait_until_settled(env, "scaled beyond the template", "s", {"s-0-a": 3, **_group_pods(3)})
        self._delete_map(env, MAP_REBUILT)
        scale(env, GROUPS, "s-0-g", 1)
        env.settled(
            "surplus replicas gone",
            pods_are({clique: 0 for clique in _group_pods(3) if "-g-0-" not in clique}, ready=True),
        )
        wait_until_settled(env, "group scaled in", "s", _group_pods(1))
        scale(env, GROUPS, "s-0-g", 2)
        wait_until_settled(env, "group scaled out again", "s", _group_pods(2))
        self._delete_map(env, MAP_REBUILT_AGAIN)
        self._empty_map(env)
        for edit in MAP_EDITS:
            self._edit_map(env, edit)

    def _delete_map(self, env: SceneEnvironment, step: str) -> None:
        gang_map = env.wait_for(f"{step}: the set has its map", _find_only_map)
        env.mark(f"{step}: before")
        env.delete(MAPS, name(gang_map))
        trigger_reconcile(env, "s", step.replace(" ", "-"))
        env.settle(f"{step}: {ANOTHER_MAP}", _has_new_map(uid(gang_map)))
        env.settle(step, following.are_maps_followed("s"))
        env.quiet(1.5)
        env.mark(f"{step}: at rest")

    def _empty_map(self, env: SceneEnvironment) -> None:
        gang_map = env.wait_for(f"{MAP_FILLED}: the set has its map", _find_only_map)
        env.mark(f"{MAP_FILLED}: before")
        env.patch(MAPS, name(gang_map), {"spec": {"entries": []}})
        trigger_reconcile(env, "s", "emptied")
        env.settle(MAP_FILLED, following.are_maps_followed("s"))
        scale(env, CLIQUES, "s-0-a", 4)
        env.settle(PODS_ADDED, pods_are({"s-0-a": 4}, ready=True))
        env.quiet(1)
        env.mark(f"{MAP_FILLED}: at rest")

    def _edit_map(self, env: SceneEnvironment, edit: str) -> None:
        gang_map = env.wait_for(f"{edit}: the set has its map", _find_only_map)
        env.mark(f"{edit}: before")
        entries = copy.deepcopy(gang_map["spec"]["entries"])
        env.patch(MAPS, name(gang_map), {"spec": {"entries": _edited_entries(entries, edit)}})
        trigger_reconcile(env, "s", edit.replace(" ", "-"))
        env.settle(f"{edit}: repaired or reported", _is_repaired)
        env.quiet(1)
        env.mark(f"{edit}: at rest")


def _find_only_map(view: View) -> Document | Unmet:
    """Return the map of the set. There is one map, because the set has one replica."""
    gang_maps = list(following.maps_of(view, "s").values())
    return gang_maps[0] if len(gang_maps) == 1 else Unmet(f"s has {len(gang_maps)} maps")


@predicate
def _has_new_map(view: View, lost_uid: str) -> bool | Unmet:
    """The set has a map other than the lost map."""
    uids = {uid(gang_map) for gang_map in following.maps_of(view, "s").values()}
    return bool(uids - {lost_uid}) or Unmet("s has no other map")


def _group_pods(replicas: int) -> dict[str, int]:
    return {f"s-0-g-{index}-{clique}": 1 for index in range(replicas) for clique in "bc"}


def _edited_entries(entries: list[Any], edit: str) -> list[Any]:
    """Return the entries with a mistake that the schema of the CRD accepts."""
    if edit == "one index in two entries":
        for entry in entries:
            entry["pcsgReplicaIndices"] = {"g": [0, 1]}
    if edit == "dependence on no entry":
        for entry in entries[1:]:
            entry["dependsOn"] = ["1000000000000000001"]
    if edit == "no anchor":
        for entry in entries:
            entry.pop("anchorIndex", None)
            entry.pop("podCliques", None)
            entry["role"] = "Tail" if entry["role"] == ANCHOR_ROLE else entry["role"]
    return entries


def _is_repaired(view: View) -> bool | Unmet:
    """The gangs and pods agree with the map again, or the set reports an error."""
    pcs = view.get("podcliquesets", "s") or {}
    reported = (pcs.get("status") or {}).get("lastErrors")
    return True if reported else following.are_maps_followed("s")(view)


def _expect_unchanged(run: Recorded[LostMaps], first_step: str, last_step: str, *resources: str) -> None:
    for resource in resources:
        before, after = (incarnations.uids(run.at(step), resource) for step in (first_step, last_step))
        run.same(f"{resource} with their uids", before, after)


@requirement("MAP-020", reaches=f"{MAP_REBUILT}: {ANOTHER_MAP}")
def test_a_lost_map_is_created_again(run: Recorded[LostMaps]) -> None:
    """The contents of the map are covered by other requirements."""


@requirement("MAP-066")
def test_a_lost_map_leaves_its_gangs_alone(run: Recorded[LostMaps]) -> None:
    """The earlier gangs still exist. A map that is built from the template would describe different gangs."""
    run.given(MAP_REBUILT)
    _expect_unchanged(run, f"{MAP_REBUILT}: before", f"{MAP_REBUILT}: at rest", GANGS)


@requirement("MAP-046")
def test_a_rebuilt_map_has_the_epochs_of_the_gangs(run: Recorded[LostMaps]) -> None:
    """The map is lost twice, the second time after its group was scaled in and out."""
    run.given(MAP_REBUILT, MAP_REBUILT_AGAIN)
    before, after = f"{MAP_REBUILT}: before", f"{MAP_REBUILT}: at rest"
    expected, observed = (
        {entry.epoch: entry.role for entry in following.entries_of(run.at(step), "s") if not entry.is_empty}
        for step in (before, after)
    )
    run.expect("epochs and roles of entries that hold something", expected, observed)
    for step in (MAP_REBUILT, MAP_REBUILT_AGAIN):
        _expect_unchanged(run, f"{step}: before", f"{step}: at rest", "pods")


@requirement("MAP-021")
def test_a_rebuilt_map_holds_what_lives(run: Recorded[LostMaps]) -> None:
    """Every version of the map is judged, starting with the first, because later versions follow a change of
    replicas."""
    run.given(MAP_REBUILT)
    initial = _entry_contents(run.at(f"{MAP_REBUILT}: before"))

    def holds_initial_members(view: View) -> bool | Unmet:
        current = _entry_contents(view)
        return current in ([], initial) or Unmet(f"entries hold {current}, and not {initial}")

    run.always(
        "a map that is there holds what lives", holds_initial_members, after=f"{MAP_REBUILT}: before", until=MAP_REBUILT
    )


def _entry_contents(view: View) -> list[str]:
    """Return the contents of the entries that are not empty."""
    return [f"{entry.epoch}: {entry.summary()}" for entry in following.entries_of(view, "s") if not entry.is_empty]


@requirement("MAP-022")
def test_no_pod_leaves_its_gang_when_a_map_is_rebuilt(run: Recorded[LostMaps]) -> None:
    """A map that is rebuilt from indices alone would assign a replica to a gang other than the gang that the labels of
    its pods name."""
    run.expect("pods astray", [], following.stray_pods(run.at(f"{MAP_REBUILT_AGAIN}: at rest"), "s"))


@requirement("MAP-023", reaches=(MAP_FILLED, PODS_ADDED))
def test_a_map_without_entries_stops_nothing(run: Recorded[LostMaps]) -> None:
    """The list of entries is emptied, which the schema permits, and then a clique is scaled."""
    before, after = (incarnations.uids(run.at(f"{MAP_FILLED}: {step}"), "pods") for step in ("before", "at rest"))
    run.same("pods that were there, with their uids", before, {pod: after.get(pod, "") for pod in before})


@requirement("MAP-024", reaches=tuple(f"{edit}: repaired or reported" for edit in MAP_EDITS))
def test_an_edited_map_is_not_followed(run: Recorded[LostMaps]) -> None:
    """The pods before each edit are compared with the pods after it."""
    run.given(MAP_FILLED)
    for edit in MAP_EDITS:
        _expect_unchanged(run, f"{edit}: before", f"{edit}: at rest", "pods")
