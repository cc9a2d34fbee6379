"""Tests of upgrades from versions without PodGangMaps. Running pods are assigned to other PodGangs without a
restart."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove import labels
from conformance.grove.fields import condition_is, label, name, text, uid
from conformance.grove.fields import labels as labels_of
from conformance.grove.gang_maps import MIGRATING
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import following, predicates
from conformance.testing.disruption import CLIQUES, GANGS, GROUPS, SETS
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are, scale
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, invariants, requirement

NOTE_ANNOTATION = "example.com/note"
"""The key of a label and an annotation that belong to another client."""
REPLICAS = {"s": 2, "k": 1, "e": 1, "z": 0}
"""Set → its replicas when the operator is replaced."""
SIZES: Mapping[str, Mapping[str, int]] = {
    "s": {f"s-{replica}-{rest}": size for replica in (0, 1) for rest, size in (("a", 2), ("g-0-b", 1), ("g-0-c", 1))}
    | {f"s-0-g-{index}-{clique}": 1 for index in (1, 2, 3) for clique in "bc"},
    "k": {"k-0-a": 2, **{f"k-0-g-{index}-{clique}": 1 for index in (0, 1) for clique in "bc"}},
}
"""Set → PodClique → number of pods when the operator is replaced."""
MAPS_FOLLOWED = "maps followed after the upgrade"
MIGRATED_SETS = ("s", "k")
"""The sets that must be migrated. A set whose only clique has no replicas may or may not be migrated."""


class GangsOfAnEarlierVersion(Scene):
    """One node with room for all pods. The earlier version creates four sets. In `s`, the group of one replica is
    scaled above the template, and the group of the other replica is scaled below it. `e` has its only clique scaled to
    zero, and `z` has no replicas. Another client adds labels and annotations to some pods. The judged version takes
    over, is killed, and is restarted. Then `z` and the clique of `e` are scaled out."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        env.roles.downgrade(env.roles.upgrades[0])
        self._make(env)
        self.places, self.marks = _gang_by_pod(env.history.view()), _annotations_by_object(env.history.view())
        env.mark("before the upgrade")
        env.roles.upgrade()
        env.roles.kill("operator")
        env.roles.restart("operator")
        env.settle(MAPS_FOLLOWED, all_of(*map(following.are_maps_followed, MIGRATED_SETS)), 60)
        env.settle("migration ended", _is_not_migrating, 60)
        env.quiet(2)
        env.mark("taken over")
        scale(env, CLIQUES, "e-0-web", 2)
        scale(env, SETS, "z", 1)
        env.settle("empty set runs", pods_are({"z-0-web": 2}, ready=True), 60)
        env.settle("empty clique runs", pods_are({"e-0-web": 2}, ready=True), 60)
        env.settled("their maps are followed", all_of(*map(following.are_maps_followed, ("e", "z"))))
        env.quiet(1)
        env.mark("end")

    def _make(self, env: SceneEnvironment) -> None:
        small = {"alone": 2, "aloneMinAvailable": 1, "members": 1, "membersMinAvailable": 1}
        env.create(env.workload("kept", setName="s", replicas=2, groups=3, groupsMinAvailable=1, **small))
        env.create(env.workload("kept", setName="k", groups=2, groupsMinAvailable=2, **small))
        for set_name in ("e", "z"):
            env.create(env.workload("frontend", setName=set_name))
        env.wait_for(
            "sets available", all_of(*(predicates.is_available(set_name, n or 1) for set_name, n in REPLICAS.items()))
        )
        scale(env, GROUPS, "s-0-g", 4)
        scale(env, GROUPS, "s-1-g", 1)
        scale(env, CLIQUES, "e-0-web", 0)
        scale(env, SETS, "z", 0)
        scaled_in = {f"s-1-g-{index}-{clique}": 0 for index in (1, 2) for clique in "bc"}
        sizes = {**SIZES["s"], **SIZES["k"], **scaled_in, "e-0-web": 0, "z-0-web": 0}
        env.wait_for("sets scaled", pods_are(sizes, ready=True))
        env.quiet(1)
        for clique in ("s-0-a", "s-0-g-1-b", "s-1-g-0-c"):
            pod = name(predicates.pods_of(env.history.view(), clique)[0])
            env.patch(
                "pods",
                pod,
                {"metadata": {"labels": {NOTE_ANNOTATION: "mine"}, "annotations": {NOTE_ANNOTATION: "mine"}}},
            )
        env.quiet(1)


def _migrating_sets(view: View) -> list[str]:
    """Return the sets whose condition reports that they are being migrated."""
    return [
        set_name for set_name in MIGRATED_SETS if condition_is(view.get(SETS, set_name), MIGRATING) not in ("", "False")
    ]


def _is_not_migrating(view: View) -> bool | Unmet:
    """No set reports that it is being migrated."""
    migrating = _migrating_sets(view)
    return not migrating or Unmet(f"{', '.join(migrating)} have the condition {MIGRATING}")


def _gang_by_pod(view: View) -> dict[str, object]:
    """Return name → UID and node for each pod."""
    return {name(pod): (uid(pod), text(pod, "spec", "nodeName")) for pod in view.list("pods")}


def _annotations_by_object(view: View) -> dict[str, object]:
    """Return the labels and annotations of pods, without the labels that name gangs or template hashes."""
    of_gangs = (labels.GANG, labels.BASE_GANG, labels.TEMPLATE_HASH)
    return {
        name(pod): {
            "labels": {key: value for key, value in labels_of(pod).items() if key not in of_gangs},
            NOTE_ANNOTATION: text(pod, "metadata", "annotations", NOTE_ANNOTATION),
        }
        for pod in view.list("pods")
    }


@requirement("UPG-012", reaches=MAPS_FOLLOWED)
def test_the_gangs_of_an_earlier_version_are_replaced(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """The operator is killed during the migration, and restarted."""
    for set_name in ("s", "k"):
        run.expect(f"{set_name}: what is wrong", [], following.all_violations(run.at("taken over"), set_name))


@requirement("UPG-021")
def test_maps_and_gangs_hold_what_an_earlier_version_left(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """Any gangs are permitted, so the gangs of the earlier version may stay."""
    view = run.at("taken over")
    for set_name in ("s", "k"):
        without = sorted(set(range(REPLICAS[set_name])) - following.maps_of(view, set_name).keys())
        run.expect(f"{set_name}: replicas without a map", [], without)
        run.expect(f"{set_name}: pods astray", [], following.stray_pods(view, set_name))


@requirement("UPG-022")
def test_a_migration_ends(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """The condition of a running migration must be absent or False in the end, even if some gangs were not migrated."""
    migrating = _migrating_sets(run.at("taken over"))
    if migrating:
        run.given(MAPS_FOLLOWED)
    run.expect(f"PodCliqueSets with the condition {MIGRATING}", [], migrating)


@requirement("UPG-018")
def test_nothing_names_a_base_gang_any_more(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """Pods of three scaled gangs of `s` had the label before."""
    run.given(MAPS_FOLLOWED)
    view = run.at("taken over")
    marked = [
        name(item) for resource in (CLIQUES, "pods") for item in view.list(resource) if label(item, labels.BASE_GANG)
    ]
    run.expect(f"objects with the label {labels.BASE_GANG}", [], marked)


@requirement("UPG-013")
def test_a_migration_changes_nothing_else(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """All these pods now belong to other gangs."""
    run.given(MAPS_FOLLOWED)
    run.same("uids and nodes of pods", run.scene.places, _gang_by_pod(run.at("taken over")))


@requirement("UPG-019")
def test_a_migration_keeps_what_others_have_written(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """Some pods have a label and an annotation of another client."""
    run.given(MAPS_FOLLOWED)
    run.same("labels and annotations of pods", run.scene.marks, _annotations_by_object(run.at("taken over")))


@requirement("UPG-014", reaches="empty set runs")
def test_a_set_that_was_scaled_to_nothing_can_be_scaled_out(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """The set had no replicas when the operator was replaced."""


@requirement("UPG-012")
def test_the_gangs_of_an_emptied_set_are_those_of_its_map(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """The set had no replicas when the operator was replaced, and has one now."""
    run.given("empty set runs")
    run.expect("z: what is wrong", [], following.all_violations(run.at("end"), "z"))


@requirement("UPG-020", reaches="empty clique runs")
def test_a_clique_that_was_scaled_to_nothing_can_be_scaled_out(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """The set has no other clique."""
    run.expect("e: what is wrong", [], following.all_violations(run.at("end"), "e"))


@requirement("UPG-015")
def test_a_migration_is_announced_until_all_gangs_are_there(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """Every state in which some pods belong to old gangs and some to new gangs is judged."""
    run.given(MAPS_FOLLOWED)
    for set_name in ("s", "k"):
        early: list[str] = []
        for view in run.between("before the upgrade", "taken over").states(certain=True):
            pcs = view.get(SETS, set_name)
            mixed = not _has_old_gangs(view, set_name) and following.gang_differences(view, set_name)
            if mixed and condition_is(pcs, MIGRATING) != "True":
                early = [f"{view.last}", *mixed[:3]]
                break
        run.expect(f"{set_name}: what is unfinished without the condition {MIGRATING}", [], early)


def _has_old_gangs(view: View, set_name: str) -> bool:
    """Return whether no part of a set has been migrated yet: the set has no maps, and all its pods name gangs that
    exist."""
    existing = set(view.names(GANGS))
    maps = bool(following.maps_of(view, set_name))
    return not maps and all(label(pod, labels.GANG) in existing for pod in following.pods_of_set(view, set_name))


test_invariants = invariants(GangsOfAnEarlierVersion, "INV-001", "INV-003", "INV-004", "INV-005")
