"""Upgrades from versions without PodGangMaps: running pods are assigned to other PodGangs, and nothing restarts."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove import labels
from conformance.grove.fields import condition, label, name, text, uid
from conformance.grove.fields import labels as labels_of
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import following, predicates
from conformance.testing.disruption import CLIQUES, GANGS, GROUPS, SETS
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are, scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

MIGRATING = "PodGangMigrationInProgress"
NOTE = "example.com/note"
"""A label and an annotation of somebody else."""
REPLICAS = {"s": 2, "k": 1, "e": 1, "z": 0}
"""Set → replicas, when the operator is replaced."""
SIZES: Mapping[str, Mapping[str, int]] = {
    "s": {f"s-{replica}-{rest}": size for replica in (0, 1) for rest, size in (("a", 2), ("g-0-b", 1), ("g-0-c", 1))}
    | {f"s-0-g-{index}-{clique}": 1 for index in (1, 2, 3) for clique in "bc"},
    "k": {"k-0-a": 2, **{f"k-0-g-{index}-{clique}": 1 for index in (0, 1) for clique in "bc"}},
}
"""Set → its PodCliques with their pods, when the operator is replaced."""
TAKEN_OVER = "maps followed after the upgrade"


class GangsOfAnEarlierVersion(Scene):
    """One node with room for all pods. The earlier version creates four sets: of `s`, one replica has its group scaled
    beyond the template and one below it; `e` has its only clique scaled to nothing, and `z` has no replicas. Some pods
    get labels and annotations of somebody else. The judged version takes over, is killed, and comes back.
    Then what was scaled to nothing is scaled out."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        env.roles.downgrade(env.roles.upgrades[0])
        self._make(env)
        self.assigned = _assignments(env.history.view())
        env.mark("before the upgrade")
        env.roles.upgrade()
        env.roles.kill("operator")
        env.roles.restart("operator")
        env.settle(TAKEN_OVER, all_of(*map(following.followed, ("s", "k"))), 60)
        env.settle("migration ended", _not_migrating, 60)
        env.quiet(2)
        env.mark("taken over")
        scale(env, CLIQUES, "e-0-web", 2)
        scale(env, SETS, "z", 1)
        env.settle("empty sets run", pods_are({"e-0-web": 2, "z-0-web": 2}, ready=True), 60)
        env.settled("their maps are followed", all_of(*map(following.followed, ("e", "z"))))
        env.quiet(1)
        env.mark("end")

    def _make(self, env: SceneEnvironment) -> None:
        small = {"alone": 2, "aloneMinAvailable": 1, "members": 1, "membersMinAvailable": 1}
        env.create(env.workload("kept", setName="s", replicas=2, groups=3, groupsMinAvailable=1, **small))
        env.create(env.workload("kept", setName="k", groups=2, groupsMinAvailable=2, **small))
        for each in ("e", "z"):
            env.create(env.workload("frontend", setName=each))
        env.wait_for("sets available", all_of(*(predicates.available(each, n or 1) for each, n in REPLICAS.items())))
        scale(env, GROUPS, "s-0-g", 4)
        scale(env, GROUPS, "s-1-g", 1)
        scale(env, CLIQUES, "e-0-web", 0)
        scale(env, SETS, "z", 0)
        gone = {f"s-1-g-{index}-{clique}": 0 for index in (1, 2) for clique in "bc"}
        sizes = {**SIZES["s"], **SIZES["k"], **gone, "e-0-web": 0, "z-0-web": 0}
        env.wait_for("sets scaled", pods_are(sizes, ready=True))
        env.quiet(1)
        for clique in ("s-0-a", "s-0-g-1-b", "s-1-g-0-c"):
            pod = name(predicates.pods_of(env.history.view(), clique)[0])
            env.patch("pods", pod, {"metadata": {"labels": {NOTE: "mine"}, "annotations": {NOTE: "mine"}}})
        env.quiet(1)


def _not_migrating(view: View) -> bool | Unmet:
    """No set has the condition of a migration."""
    found = [name(pcs) for pcs in view.list(SETS) if condition(pcs, MIGRATING)]
    return not found or Unmet(f"{', '.join(found)} have the condition {MIGRATING}")


def _assignments(view: View) -> dict[str, object]:
    """Everything about pods that must not change with their gang."""
    of_gangs = (labels.GANG, labels.BASE_GANG, labels.TEMPLATE_HASH)
    return {
        name(pod): {
            "uid": uid(pod),
            "node": text(pod, "spec", "nodeName"),
            "labels": {key: value for key, value in labels_of(pod).items() if key not in of_gangs},
            NOTE: text(pod, "metadata", "annotations", NOTE),
        }
        for pod in view.list("pods")
    }


@requirement("UPG-012", reaches=(TAKEN_OVER, "migration ended"))
def test_the_gangs_of_an_earlier_version_are_replaced(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """After an upgrade, each replica MUST have a PodGangMap whose PodGangs hold its Pods, and the old ones MUST go."""
    view = run.at("taken over")
    for each in ("s", "k"):
        run.expect(f"{each}: what is wrong", [], following.everything(view, each))
    marked = [name(each) for kind in (CLIQUES, "pods") for each in view.list(kind) if label(each, labels.BASE_GANG)]
    run.expect(f"objects with the label {labels.BASE_GANG}", [], marked)


@requirement("UPG-013")
def test_a_migration_changes_nothing_else(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """A migration of PodGangs MUST keep Pods, their nodes, and their labels and annotations of somebody else."""
    run.given(TAKEN_OVER)
    run.same("pods", run.scene.assigned, _assignments(run.at("taken over")))


@requirement("UPG-014", reaches="empty sets run")
def test_what_was_scaled_to_nothing_can_be_scaled_out(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """After an upgrade, what was scaled to nothing before it MUST run once it is scaled out."""
    for each in ("e", "z"):
        run.expect(f"{each}: what is wrong", [], following.everything(run.at("end"), each))


@requirement("UPG-015")
def test_a_migration_is_announced_until_all_gangs_are_there(run: Recorded[GangsOfAnEarlierVersion]) -> None:
    """While running Pods are assigned to other PodGangs, the set SHOULD have the condition of a migration, until all
    of these exist."""
    run.given(TAKEN_OVER)
    for each in ("s", "k"):
        early: list[str] = []
        for view in run.between("before the upgrade", "taken over").states():
            pcs = view.get(SETS, each)
            mixed = not _is_old(view, each) and following.unfollowed(view, each)
            if mixed and not condition(pcs, MIGRATING):
                early = [f"{view.last}", *mixed[:3]]
                break
        run.expect(f"{each}: what is unfinished without the condition {MIGRATING}", [], early)


def _is_old(view: View, each: str) -> bool:
    """Whether nothing of a set has been migrated yet: all its pods name gangs that exist."""
    existing = set(view.names(GANGS))
    maps = bool(following.maps_of(view, each))
    return not maps and all(label(pod, labels.GANG) in existing for pod in following.pods_of_set(view, each))


@invariants("INV-001", "INV-003", "INV-004", "INV-005")
def test_invariants(run: Recorded[GangsOfAnEarlierVersion], invariant: str) -> None:
    """What MUST hold at every moment of any history."""
    run.invariant()
