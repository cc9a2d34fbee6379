"""Tests of upgrades from earlier versions of the operator, whose sets are taken over."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.fields import Document, label, number, terminating, text
from conformance.history.view import View
from conformance.testing import incarnations, predicates, replay, sets
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.sets import SETS
from conformance.tests.upgrade import takeover
from conformance.tests.upgrade.takeover import SOLO, is_rolled_out

IN_ORDER = "CliqueStartupTypeInOrder"
REPLICAS, PODS = 3, 6
CHANGED_CLIQUES = tuple(f"u-{index}-{SOLO}" for index in range(REPLICAS))
"""The cliques of the set `u` that are changed after the upgrade."""


class UpgradeAndDowngrade(Scene):
    """Room for all pods. The earlier version creates a set `u` with several replicas and a set `i` whose cliques start
    in order. The judged version takes over, and equal sets (`um`, `im`) are created. Then one clique of `u` gets
    another image. Finally all sets except `i` are deleted, and the earlier version is installed again."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 4)
        old = env.roles.upgrades[0]
        env.roles.downgrade(old)
        env.create(takeover.workload(env, "u", REPLICAS))
        env.create(takeover.small_workload(env, "i", IN_ORDER))
        for name, replicas, pods in (("u", REPLICAS, REPLICAS * PODS), ("i", 1, 2)):
            env.wait_for(f"earlier version: {name} has its pods", takeover.has_all_hashes(name, pods))
            env.wait_for(f"earlier version: {name} available", predicates.is_available(name, replicas))
        view = env.quiet(1)
        self.uids, before = incarnations.uids(view, "pods"), _without_pods(takeover.all_hashes(view, "i"))
        env.mark("before the upgrade")

        env.roles.upgrade()
        # Equal sets show the hashes that the judged version writes.
        env.create(takeover.workload(env, "um"))
        env.create(takeover.small_workload(env, "im", IN_ORDER))
        for name in "ui":
            env.settle(f"hashes of {name} rewritten", takeover.has_hashes_of(name, f"{name}m"), 60)
        self.taken_over = incarnations.uids(env.quiet(2), "pods")
        env.mark("taken over")

        sets.update_spec(env, takeover.workload(env, "u", REPLICAS, z_solo="engine:2"))
        env.wait_for("change rolled out", is_rolled_out("u", CHANGED_CLIQUES, self.taken_over))
        env.quiet(1)
        env.mark("after the change")

        for name in ("u", "um", "im"):
            env.delete(SETS, name)
        env.wait_for("other sets gone", lambda view: view.names(SETS) == ["i"])
        env.roles.downgrade(old)
        env.wait_for(
            "earlier version: i has its hashes again",
            lambda view: _without_pods(takeover.all_hashes(view, "i")) == before,
        )
        env.wait_for("earlier version: i has its pods again", takeover.has_all_hashes("i", 2))
        env.wait_for("earlier version: i available again", predicates.is_available("i", 1))


class UpgradesFromEachVersion(Scene):
    """Room for all pods. For each earlier version, that version creates a set, the judged version takes over, and an
    equal set is created. The sets are deleted before the next earlier version starts, because taking them over would be
    a downgrade."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 1)
        self.versions = {f"v{index}": old.about for index, old in enumerate(env.roles.upgrades)}
        for (name, about), old in zip(self.versions.items(), env.roles.upgrades, strict=True):
            env.roles.downgrade(old)
            env.create(takeover.small_workload(env, name))
            env.wait_for(f"{about}: set has its pods", takeover.has_all_hashes(name, 2))
            env.wait_for(f"{about}: set available", predicates.is_available(name, 1))
            env.mark(f"before the upgrade from {about}")
            env.roles.upgrade()
            env.create(takeover.small_workload(env, f"{name}m"))
            env.settle(f"from {about}: hashes rewritten", takeover.has_hashes_of(name, f"{name}m"), 60)
            env.quiet(1)
            env.mark(f"after the upgrade from {about}")
            for set_name in (name, f"{name}m"):
                env.delete(SETS, set_name)
            env.wait_for(f"from {about}: sets gone", lambda view: not view.names(SETS))


class UpgradeDuringAnUpdate(Scene):
    """One node, which is cordoned as soon as a set runs on it. The earlier version starts an update, and there is no
    room for the first new pod. The judged version takes over, and a set that equals the updated set is created. Then
    the node is uncordoned."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        nodes = env.nodes("dgx-h100", 1)
        env.roles.downgrade(env.roles.upgrades[0])
        env.create(takeover.small_workload(env, "f", replicas=REPLICAS))
        env.wait_for("set has its pods", takeover.has_all_hashes("f", 2 * REPLICAS))
        env.wait_for("set available", predicates.is_available("f", REPLICAS))
        self.uids = incarnations.uids(env.quiet(1), "pods")
        env.patch("nodes", nodes[0], {"spec": {"unschedulable": True}})
        sets.update_spec(env, takeover.small_workload(env, "f", replicas=REPLICAS, solo="engine:2"))
        env.wait_for("earlier version has deleted a pod", lambda view: _count_missing(view, self.uids) == 1)
        replaced = "earlier version has replaced that pod"
        env.wait_for(replaced, lambda view: _is_complete(view) and _count_missing(view, self.uids) == 1)
        env.quiet(1)
        env.mark("before the upgrade")

        env.roles.upgrade()
        env.create(takeover.small_workload(env, "fm", solo="engine:2"))
        env.wait_for(
            "generation hash rewritten",
            lambda view: sets.generation_hash(view, "f") == sets.generation_hash(view, "fm") != "",
        )
        env.quiet(1)
        env.mark("taken over")
        env.patch("nodes", nodes[0], {"spec": {"unschedulable": False}})
        self.changed = tuple(f"f-{index}-{SOLO}" for index in range(REPLICAS))
        env.wait_for("update ended", is_rolled_out("f", self.changed, self.uids))
        env.quiet(1)
        env.mark("nothing moves")


@requirement("UPG-001")
def test_an_upgrade_restarts_nothing(run: Recorded[UpgradeAndDowngrade]) -> None:
    """The earlier version writes other hashes of the same templates."""
    for name in "ui":
        run.given(f"earlier version: {name} has its pods", f"earlier version: {name} available")
    span = run.between("before the upgrade", "taken over")
    for name in "ui":
        run.expect(f"pods of {name} created or deleted", [], takeover.restart_records(span, name))
    uids, now = run.scene.uids, incarnations.uids(run.at("taken over"), "pods")
    run.same("uids of pods", uids, {pod: now.get(pod, "") for pod in uids})


@requirement("UPG-002", reaches=("hashes of u rewritten", "hashes of i rewritten"))
def test_an_upgrade_rewrites_all_hashes(run: Recorded[UpgradeAndDowngrade]) -> None:
    """Equal sets that the judged version has created show its own hashes. No update starts during the upgrade."""
    before, after = (
        number(run.at(step).get(SETS, "u"), "metadata", "generation") for step in ("before the upgrade", "taken over")
    )
    run.expect("generation of the set", before, after)
    span = run.between("before the upgrade", "taken over")
    for name in "ui":
        run.expect(f"states of {name} with an update", [], takeover.update_records(span, name))


@requirement("UPG-003", reaches="change rolled out")
def test_the_first_change_after_an_upgrade_is_rolled_out_once(run: Recorded[UpgradeAndDowngrade]) -> None:
    """The image of one clique is changed in each replica."""
    uids, now = run.scene.taken_over, incarnations.uids(run.at("after the change"), "pods")
    replaced = {pod for clique in CHANGED_CLIQUES for pod in uids if pod.startswith(f"{clique}-")}
    unchanged = {pod: uid for pod, uid in uids.items() if pod not in replaced}
    run.same("uids of pods of other cliques", unchanged, {pod: now.get(pod, "") for pod in unchanged})
    records = run.between("taken over", "after the change").records("pods")
    created = {record.name for record in records if record.name.startswith(CHANGED_CLIQUES)}
    run.expect("pods that the change has replaced, and created", 2 * REPLICAS, len(created | replaced))


@requirement(
    "UPG-004",
    reaches=(
        "earlier version: i has its hashes again",
        "earlier version: i has its pods again",
        "earlier version: i available again",
    ),
)
def test_a_set_is_available_after_a_downgrade(run: Recorded[UpgradeAndDowngrade]) -> None:
    """Only one of the sets still exists, and it has not been changed."""
    run.given("other sets gone")


@requirement("UPG-005")
def test_an_upgrade_from_any_earlier_version_restarts_nothing(run: Recorded[UpgradesFromEachVersion]) -> None:
    """Each earlier version that the descriptor lists creates its own set."""
    for name, about in run.scene.versions.items():
        run.given(f"{about}: set has its pods", f"{about}: set available")
        span = run.between(f"before the upgrade from {about}", f"after the upgrade from {about}")
        run.expect(f"from {about}: pods created or deleted", [], takeover.restart_records(span, name))
        run.expect(f"from {about}: states with an update", [], takeover.update_records(span, name))
        run.given(f"from {about}: hashes rewritten", f"from {about}: sets gone")


@requirement("UPG-009")
def test_what_is_up_to_date_survives_the_take_over(run: Recorded[UpgradeDuringAnUpdate]) -> None:
    """Restarts are judged until the end of the scene. An operator may refuse to take over during an update."""
    run.given("earlier version has replaced that pod")
    span = run.after("before the upgrade")
    old = [record.name for record in replay.deletions(span) if not _is_outdated(record.object)]
    run.expect("pods that were deleted although they were up to date", [], old)


@requirement("UPG-017", reaches="update ended")
def test_an_update_in_progress_continues(run: Recorded[UpgradeDuringAnUpdate]) -> None:
    """There is no room for the first pod of the update, so no other pod may be replaced until the node is
    uncordoned."""
    run.given(
        "set has its pods",
        "set available",
        "earlier version has deleted a pod",
        "earlier version has replaced that pod",
    )
    restarts = takeover.restart_records(run.between("before the upgrade", "taken over"), "f")
    run.expect("pods replaced although the one before them is not available yet", [], restarts)
    run.given("generation hash rewritten")
    uids, changed = run.scene.uids, run.scene.changed
    now = incarnations.uids(run.at("nothing moves"), "pods")
    unchanged = {pod: uid for pod, uid in uids.items() if not pod.startswith(changed)}
    run.same("pods of the other clique", unchanged, {pod: now.get(pod, "") for pod in unchanged})
    every = {record.uid for record in run.until("nothing moves").records("pods") if record.name.startswith(changed)}
    run.expect("pods that the changed clique has had", 2 * REPLICAS, len(every))


def _is_outdated(pod: Document) -> bool:
    """Return whether a pod of the set `f` belongs to the changed clique and still has the old template. Pods of other
    sets also count as outdated, so that the test ignores them."""
    changed = label(pod, labels.CLIQUE).endswith(f"-{SOLO}")
    return label(pod, labels.PART_OF) != "f" or (changed and text(pod, "spec", "containers", 0, "image").endswith(":1"))


def _is_complete(view: View) -> bool:
    """The set has all its pods, and none of them is being deleted."""
    current = view.list("pods")
    return len(current) == 2 * REPLICAS and not any(map(terminating, current))


def _count_missing(view: View, uids: dict[str, str]) -> int:
    """Return the number of these pods that no longer exist or are being deleted."""
    return len(uids.keys() - incarnations.uids(view, "pods").keys())


def _without_pods(everything: dict[str, str]) -> dict[str, str]:
    """Return the hashes except the hashes of pods, whose names change in an update."""
    return {location: hash for location, hash in everything.items() if not location.startswith("pods/")}
