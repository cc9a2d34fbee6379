"""Tests of switching the strategy, and of PodGangMaps that are deleted or edited."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove import labels, updates
from conformance.grove.coherent import change, shapes
from conformance.grove.coherent.model import indices, shape
from conformance.grove.fields import label, name, text, uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing.observed import all_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.following import expect_plan
from conformance.tests.coherent.sets import COHERENT, GROUPS, MAPS, ON_DELETE, ROLLING, SETS, TIMEOUT_SECONDS

SIZES: tuple[sets.Sizes, sets.Sizes] = ({"f": (2, 1)}, {"d": (3, 1)})
OTHER_SIZES: dict[str, tuple[sets.Sizes, sets.Sizes]] = {
    "part": ({"f": (2, 1)}, {"d": (3, 1), "e": (2, 1)}),
    "stored": ({"f": (2, 2)}, {}),
}
LATER_COHERENT_SETS = ("joins", "part", "stored")
"""Sets whose strategy is not Coherent at first."""
NAMES = (*LATER_COHERENT_SETS, "asks", "lost", "edited", "a", "a-0")


class StrategiesAndMaps(Scene):
    """Eight sets, most of them f2/1 d3/1 (replicas/minAvailable). `joins` is switched to Coherent, scaled, and then
    changed. In `part`, only one of two scaling groups is changed after the switch. `asks` is switched to OnDelete and
    then changed. For `stored`, which has RollingRecreate and a maxUnavailable below minAvailable, a switch is requested
    as a dry run. The PodGangMap of `lost` is deleted and that of `edited` is edited, unless admission protects the
    maps. The name of `a` is a prefix of the name of `a-0`, and the cliques of `a` are reordered."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        strategies = {set_name: ROLLING if set_name in LATER_COHERENT_SETS else COHERENT for set_name in NAMES}
        workloads = {
            set_name: sets.set_manifest(env, set_name, *OTHER_SIZES.get(set_name, SIZES), strategy=strategy)
            for set_name, strategy in strategies.items()
        }
        workloads["stored"]["spec"]["template"]["cliques"][0]["rollingUpdate"] = {"maxUnavailable": 1}
        [reply] = env.dry_run.all([env.dry_run.create(workloads["stored"])])
        self.stored_strategies = reply.accepted
        """Whether a set such as `stored` can be created. It cannot if admission checks maxUnavailable with every
        strategy."""
        if not self.stored_strategies:
            del workloads["stored"]
        for workload in workloads.values():
            env.create(workload)
        env.wait_for("deployed", all_of(*map(sets.is_deployed, workloads)), TIMEOUT_SECONDS)
        env.quiet(1)
        self.initial_pods = {set_name: _gangs_by_pod(env.history.view(), set_name) for set_name in workloads}
        self.workload = workloads["joins"]
        env.mark("at rest")
        self._request_changes(env, workloads)
        sets.switch_strategy(env, "joins", COHERENT)
        sets.switch_strategy(env, "part", COHERENT)
        sets.switch_strategy(env, "asks", ON_DELETE)
        self._damage_maps(env)
        env.settle("joins: map", _has_map("joins"), 30)
        env.settle("part: map", _has_map("part"), 30)
        env.settle("lost: map restored", _has_map("lost"), 30)
        env.settle("edited: map put right", self._is_map_restored, 30)
        env.quiet(2)
        env.mark("switched")
        part_generation = sets.change_images(env, workloads["part"], "dm", tag="2")
        sets.change_images(env, workloads["asks"], "f", "dm", tag="2")
        for step, size in (("joins: replica added", 4), ("joins: replica removed", 3)):
            env.patch(GROUPS, "joins-0-d", {"spec": {"replicas": size}}, subresource="scale")
            env.wait_for(step, sets.is_followed("joins", "d", size), TIMEOUT_SECONDS)
        env.quiet(0.7)
        env.mark("joins: change")
        old_generation = sets.change_images(env, workloads["joins"], "f", "dm", tag="2")
        env.wait_for("joins: updated", sets.is_updated("joins", old_generation), TIMEOUT_SECONDS)
        env.settle("part: updated", sets.is_updated("part", part_generation), TIMEOUT_SECONDS)
        env.quiet(5.5, real=True)
        env.mark("end")

    def _request_changes(self, env: SceneEnvironment, workloads: Mapping[str, Object]) -> None:
        """Request a switch of `stored`, both without and with a sufficient maxUnavailable. Reorder the cliques of `a`
        if that is accepted."""
        strategy_patch = {"updateStrategy": {"type": COHERENT}}
        order_patch = {"spec": {"template": {"cliques": workloads["a"]["spec"]["template"]["cliques"][::-1]}}}
        if self.stored_strategies:
            [clique] = workloads["stored"]["spec"]["template"]["cliques"]
            budget_patch = {"template": {"cliques": [{**clique, "rollingUpdate": {"maxUnavailable": 2}}]}}
            switch_patches: list[Object] = [{"spec": strategy_patch}, {"spec": {**strategy_patch, **budget_patch}}]
            self.switch_replies = env.dry_run.all(
                [env.dry_run.patch(SETS, "stored", patch) for patch in switch_patches]
            )
        unset_patches: list[Object] = [
            {"spec": {"updateStrategy": None}},
            {"metadata": {"annotations": {"example.com/a": "1"}}},
        ]
        self.unset_reply = env.dry_run.all([env.dry_run.patch(SETS, "part", patch) for patch in unset_patches])
        [reply] = env.dry_run.all([env.dry_run.patch(SETS, "a", order_patch)])
        if reply.accepted:
            env.patch(SETS, "a", order_patch)

    def _damage_maps(self, env: SceneEnvironment) -> None:
        """Delete one map, and remove the last entry that is not empty from another map, if admission permits this."""
        view = env.history.view()
        self.layouts = {set_name: shape(sets.layout(view, set_name)) for set_name in ("lost", "edited")}
        for set_name in ("lost", "edited"):
            gang_map = sets.map_of(view, set_name)
            if gang_map is None:
                continue
            edit = {"spec": {"entries": shapes.entries_without_last(gang_map)}}
            requests = env.dry_run.delete(MAPS, name(gang_map)), env.dry_run.patch(MAPS, name(gang_map), edit)
            replies = env.dry_run.all(requests)
            if set_name == "lost" and replies[0].accepted:
                env.delete(MAPS, name(gang_map))
            elif set_name == "edited" and replies[1].accepted:
                env.patch(MAPS, name(gang_map), edit)

    def _is_map_restored(self, view: View) -> bool | Unmet:
        current = shape(sets.layout(view, "edited"))
        return current == self.layouts["edited"] or Unmet(f"entries: {current}")


@requirement("COHR-090")
def test_a_switch_deletes_nothing(run: Recorded[StrategiesAndMaps]) -> None:
    """A switch to Coherent, and a switch from Coherent to OnDelete, are judged."""
    run.given("deployed")
    view = run.at("switched")
    for set_name in ("joins", "asks"):
        run.expect(f"{set_name}: pods", sorted(run.scene.initial_pods[set_name]), sorted(_gangs_by_pod(view, set_name)))
        run.expect(f"{set_name}: an update runs", False, updates.is_running(view.get(SETS, set_name)))


@requirement("COHR-091", reaches="joins: map")
def test_a_set_that_joins_keeps_its_gangs(run: Recorded[StrategiesAndMaps]) -> None:
    """The gangs are those of the first deployment."""
    run.given("deployed")
    view = run.at("switched")
    expected = ["anchor {f2, d[0]}", "{d[1]}", "{d[2]}"]
    run.expect("gangs in the map", sorted(expected), shape(sets.layout(view, "joins")))
    gangs = set(run.scene.initial_pods["joins"].values())
    run.expect(
        "gangs of the pods", sorted(gangs), sorted(name(gang) for gang in sets.gangs_by_key(view, "joins").values())
    )


@requirement("COHR-092", reaches="joins: updated")
def test_the_first_update_after_a_switch(run: Recorded[StrategiesAndMaps]) -> None:
    """All components are changed after the set was scaled."""
    run.given("deployed")
    changes = change.changes(sets.layouts(run.between("joins: change", "end"), "joins"))
    expect_plan(run, "joins", changes, sets.components(run.scene.workload))
    run.expect("images", {"dm": ["2"], "f": ["2"]}, sets.image_tags(run.at("end"), "joins"))


@requirement("COHR-092", reaches="part: updated")
def test_the_first_partial_update_makes_new_gangs(run: Recorded[StrategiesAndMaps]) -> None:
    """One of two scaling groups is changed."""
    run.given("deployed")
    views = run.at("at rest"), run.at("end")
    old, new = ({label(pod, labels.GANG) for pod in sets.pods_of_templates(view, "part", "dm")} for view in views)
    run.expect("gangs that have kept pods of d", [], sorted(old & new))
    run.expect("image of d", ["2"], sets.image_tags(views[1], "part").get("dm"))


@requirement("COHR-009")
def test_a_stored_set_with_too_low_a_budget_is_not_switched(run: Recorded[StrategiesAndMaps]) -> None:
    """If admission checks maxUnavailable with every strategy, no such set exists."""
    run.given("deployed")
    if not run.scene.stored_strategies:
        run.expect("such a set", False, run.scene.stored_strategies)
        return
    without, enough = run.scene.switch_replies
    run.expect("a switch to Coherent", "refused", "refused" if without.refused else str(without))
    run.expect("a switch with maxUnavailable 2", "accepted", str(enough))


@requirement("COHR-106")
def test_nobody_joins_without_being_asked(run: Recorded[StrategiesAndMaps]) -> None:
    """One write removes the strategy, and another write changes annotations."""
    run.given("deployed")
    strategies = [text(reply.object, "spec", "updateStrategy", "type") for reply in run.scene.unset_reply]
    run.expect("writes that make the set Coherent", [], [strategy for strategy in strategies if strategy == COHERENT])


@requirement("COHR-098")
def test_the_first_partial_update_after_a_switch(run: Recorded[StrategiesAndMaps]) -> None:
    """One of two scaling groups is changed. Changes of gangs by the switch itself are not judged here."""
    run.given("deployed", "part: updated")
    views = run.at("switched"), run.at("end")
    gangs_by_pod = [
        {uid(pod): label(pod, labels.GANG) for pod in sets.pods_of_templates(view, "part", "f", "em")} for view in views
    ]
    run.same("pods of f and e, and their gangs", *gangs_by_pod)
    tags = {template: tag for template, tag in sets.image_tags(views[1], "part").items() if template != "dm"}
    run.expect("images of f and e", {"em": ["1"], "f": ["1"]}, tags)


@requirement("COHR-099", reaches="joins: replica removed")
def test_scaling_of_a_set_that_has_joined(run: Recorded[StrategiesAndMaps]) -> None:
    """One replica is added after the switch, and then removed again."""
    run.given("joins: map")
    view = run.at("joins: change")
    run.expect("replicas in entries", [0, 1, 2], indices(sets.layout(view, "joins"), "d"))
    run.same("pods and their gangs", run.scene.initial_pods["joins"], _gangs_by_pod(view, "joins"))


@requirement("COHR-100")
def test_another_order_of_cliques(run: Recorded[StrategiesAndMaps]) -> None:
    """The change may start an update, which has ended when the pods are compared."""
    run.given("deployed")
    run.same("pods and their gangs", run.scene.initial_pods["a"], _gangs_by_pod(run.at("end"), "a"))
    run.expect("an update runs", False, updates.is_running(run.at("end").get(SETS, "a")))


@requirement("COHR-093")
def test_on_delete_rolls_nothing(run: Recorded[StrategiesAndMaps]) -> None:
    """The set was Coherent before."""
    run.given("deployed", "joins: updated")
    run.expect("pods", sorted(run.scene.initial_pods["asks"]), sorted(_gangs_by_pod(run.at("end"), "asks")))
    in_flight = [shapes.in_flight(record.object) for record in run.after("switched").records(SETS, "asks")]
    run.expect("in flight", [], [gangs for gangs in in_flight if any(gangs.values())])


@requirement("COHR-094", reaches="lost: map restored")
def test_a_deleted_map_is_restored(run: Recorded[StrategiesAndMaps]) -> None:
    """If admission protects the map, it is not deleted."""
    run.given("deployed")
    view = run.at("switched")
    run.expect("gangs in the map", run.scene.layouts["lost"], shape(sets.layout(view, "lost")))
    run.same("pods and their gangs", run.scene.initial_pods["lost"], _gangs_by_pod(view, "lost"))


@requirement("COHR-095", reaches="edited: map put right")
def test_an_edited_map_is_put_right(run: Recorded[StrategiesAndMaps]) -> None:
    """The last entry of the map is removed, unless admission protects the map."""
    run.given("deployed")
    run.same("pods and their gangs", run.scene.initial_pods["edited"], _gangs_by_pod(run.at("switched"), "edited"))


test_invariants = invariants(StrategiesAndMaps, "INV-018", "INV-020", "INV-021", "INV-022")


def _gangs_by_pod(view: View, set_name: str) -> dict[str, str]:
    """Return pod UID → gang, for the pods of a set."""
    return {uid(pod): label(pod, labels.GANG) for pod in sets.pods_of_set(view, set_name)}


@predicate
def _has_map(view: View, set_name: str) -> bool | Unmet:
    return bool(sets.layout(view, set_name)) or Unmet(f"{set_name} has no PodGangMap with entries")
