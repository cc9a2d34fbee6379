"""Tests of replicas that are scaled to zero, or below the minimum of a scaling group, and back."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove.labels import ANCHOR_ROLE
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import following, predicates
from conformance.testing.disruption import CLIQUES, GROUPS
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are, scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

CLIQUE_ONLY, GROUP_ONLY, BOTH = "f", "g", "b"
REMAINING_PODS: Mapping[str, Mapping[str, int]] = {
    CLIQUE_ONLY: {"f-0-a": 2},
    GROUP_ONLY: {f"g-0-g-{index}-b": 1 for index in range(2)},
    BOTH: {"b-0-a": 2, **{f"b-0-g-{index}-{clique}": 1 for index in range(2) for clique in "bc"}},
}
"""Set → PodClique → number of pods before the sets are scaled."""
BELOW_MINIMUM_SET = "m"
SIZES = {
    f"{BELOW_MINIMUM_SET}-0-a": 1,
    **{f"{BELOW_MINIMUM_SET}-0-g-{index}-{clique}": 1 for index in range(3) for clique in "bc"},
}


class ScaledToNothing(Scene):
    """One node with room for all pods. Set `f` has only a standalone clique, `g` has only a scaling group, and `b` has
    both. These three sets are scaled to zero and out again. The group of set `m` is scaled below its minimum and out
    again."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        set_sizes = {"aloneMinAvailable": 1, "members": 1, "membersMinAvailable": 1}
        workload = env.workload("kept", setName=BOTH, alone=2, groups=2, groupsMinAvailable=1, **set_sizes)
        env.create(workload)
        env.create(_without_other_parts(env.workload("kept", setName=CLIQUE_ONLY, alone=2, **set_sizes), "a"))
        env.create(
            _without_other_parts(
                env.workload("kept", setName=GROUP_ONLY, groups=2, groupsMinAvailable=1, **set_sizes), "b"
            )
        )
        env.create(
            env.workload("kept", setName=BELOW_MINIMUM_SET, alone=1, groups=3, groupsMinAvailable=2, **set_sizes)
        )
        env.wait_for(
            "sets available",
            all_of(*(predicates.is_available(set_name, 1) for set_name in (*REMAINING_PODS, BELOW_MINIMUM_SET))),
        )
        env.quiet(1)
        env.mark("new")
        self._scale_to_zero_and_back(env)
        scale(env, GROUPS, f"{BELOW_MINIMUM_SET}-0-g", 0)
        below = {clique: 0 for clique in SIZES if "-g-" in clique}
        env.settled("no replica of the group is left", pods_are(below, ready=True))
        env.quiet(1)
        scale(env, GROUPS, f"{BELOW_MINIMUM_SET}-0-g", 3)
        following.wait_until_settled(env, "group runs again", BELOW_MINIMUM_SET, SIZES)

    def _scale_to_zero_and_back(self, env: SceneEnvironment) -> None:
        for set_name in REMAINING_PODS:
            self._scale(env, set_name, 0)
        no_pods = {clique: 0 for sizes in REMAINING_PODS.values() for clique in sizes}
        env.settled("no pod is left", pods_are(no_pods, ready=True))
        env.settle("maps hold nothing", all_of(*map(_is_map_empty, REMAINING_PODS)))
        env.quiet(1)
        env.mark("nothing left")
        for set_name in REMAINING_PODS:
            self._scale(env, set_name, 2)
        for set_name, sizes in REMAINING_PODS.items():
            env.settle(f"{set_name} runs again", pods_are(sizes, ready=True), 60)
        env.settled("maps followed", all_of(*map(following.are_maps_followed, REMAINING_PODS)))
        env.quiet(1)
        env.mark("back")

    def _scale(self, env: SceneEnvironment, set_name: str, replicas: int) -> None:
        if set_name != GROUP_ONLY:
            scale(env, CLIQUES, f"{set_name}-0-a", replicas)
        if set_name != CLIQUE_ONLY:
            scale(env, GROUPS, f"{set_name}-0-g", replicas)


def _without_other_parts(workload: Object, clique: str) -> Object:
    """Remove all other cliques from the set, and return it. A clique that was in a scaling group keeps a group, with no
    other members."""
    template = workload["spec"]["template"]
    template["cliques"] = [entry for entry in template["cliques"] if entry["name"] == clique]
    groups = template.pop("podCliqueScalingGroups")
    if clique != "a":
        template["podCliqueScalingGroups"] = [{**groups[0], "cliqueNames": [clique]}]
    return workload


@predicate
def _is_map_empty(view: View, set_name: str) -> bool | Unmet:
    """The map of a set exists, and all of its entries are empty."""
    if 0 not in following.maps_of(view, set_name):
        return Unmet(f"{set_name} has no map")
    contents = [entry.summary() for entry in following.entries_of(view, set_name) if not entry.is_empty]
    return not contents or Unmet(f"the map of {set_name} holds {', '.join(contents)}")


@requirement("MAP-015", reaches=("maps hold nothing", *(f"{set_name} runs again" for set_name in REMAINING_PODS)))
def test_a_replica_is_scaled_to_nothing_and_back(run: Recorded[ScaledToNothing]) -> None:
    """This is judged for a set with a clique, a set with a scaling group, and a set with both."""


@requirement("MAP-016")
def test_what_is_scaled_back_has_an_anchor(run: Recorded[ScaledToNothing]) -> None:
    """An entry would wait forever if the epoch that it depends on no longer existed."""
    for set_name in REMAINING_PODS:
        entries = following.entries_of(run.at("back"), set_name)
        run.expect(f"{set_name}: Anchors that hold something", True,
                   any(entry.role == ANCHOR_ROLE and not entry.is_empty for entry in entries))  # fmt: skip
        run.expect(f"{set_name}: what is wrong", [], following.unmet_dependencies(run.at("back"), set_name))


@requirement("MAP-017", reaches="group runs again")
def test_a_group_below_its_minimum_is_scaled_back(run: Recorded[ScaledToNothing]) -> None:
    """The group is scaled to zero, so the Anchor no longer holds any replica of it."""
    run.expect("what is wrong", [], following.stray_pods(run.at("group runs again: at rest"), BELOW_MINIMUM_SET))


test_invariants = invariants(ScaledToNothing, "INV-001", "INV-002", "INV-004", "INV-005", "INV-008")
