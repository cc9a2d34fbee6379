"""Switches of the strategy, and PodGangMaps that somebody has deleted or edited."""

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
from conformance.tests.coherent.following import by_plan
from conformance.tests.coherent.sets import COHERENT, GROUPS, MAPS, ON_DELETE, ROLLING, SECONDS, SETS

SIZES: tuple[sets.Sizes, sets.Sizes] = ({"f": (2, 1)}, {"d": (3, 1)})
OTHER_SIZES: dict[str, tuple[sets.Sizes, sets.Sizes]] = {
    "part": ({"f": (2, 1)}, {"d": (3, 1), "e": (2, 1)}),
    "stored": ({"f": (2, 2)}, {}),
}
LATER = ("joins", "part", "stored")
"""Sets that are not Coherent from the beginning."""
NAMES = (*LATER, "asks", "lost", "edited", "a", "a-0")


class StrategiesAndMaps(Scene):
    """Eight sets, most of them f2/1 d3/1. `joins` is switched to Coherent, scaled and then changed, of `part` only one
    of two scaling groups is changed after the switch; `asks` is switched to OnDelete and then changed. `stored`, with
    RollingRecreate and a maxUnavailable below minAvailable, is asked to switch. The PodGangMap of `lost` is deleted,
    that of `edited` edited, unless admission protects them. `a` and `a-0` have names of which one begins the other; the
    cliques of `a` are put in another order."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        strategies = {each: ROLLING if each in LATER else COHERENT for each in NAMES}
        made = {
            each: sets.coherent(env, each, *OTHER_SIZES.get(each, SIZES), strategy=strategy)
            for each, strategy in strategies.items()
        }
        made["stored"]["spec"]["template"]["cliques"][0]["rollingUpdate"] = {"maxUnavailable": 1}
        [reply] = env.dry_run.all([env.dry_run.create(made["stored"])])
        self.stored = reply.accepted
        """Whether such a set can be created: not if admission looks at maxUnavailable whatever the strategy."""
        if not self.stored:
            del made["stored"]
        for workload in made.values():
            env.create(workload)
        env.wait_for("deployed", all_of(*map(sets.deployed, made)), SECONDS)
        env.quiet(1)
        self.first = {each: _pods(env.history.view(), each) for each in made}
        self.workload = made["joins"]
        env.mark("at rest")
        self._ask(env, made)
        sets.switch(env, "joins", COHERENT)
        sets.switch(env, "part", COHERENT)
        sets.switch(env, "asks", ON_DELETE)
        self._spoil(env)
        env.settle("joins: map", _has_map("joins"), 30)
        env.settle("part: map", _has_map("part"), 30)
        env.settle("lost: map restored", _has_map("lost"), 30)
        env.settle("edited: map put right", self._right, 30)
        env.quiet(2)
        env.mark("switched")
        part = sets.change(env, made["part"], "dm", tag="2")
        sets.change(env, made["asks"], "f", "dm", tag="2")
        for step, size in (("joins: replica added", 4), ("joins: replica removed", 3)):
            env.patch(GROUPS, "joins-0-d", {"spec": {"replicas": size}}, subresource="scale")
            env.wait_for(step, sets.followed("joins", "d", size), SECONDS)
        env.quiet(0.7)
        env.mark("joins: change")
        before = sets.change(env, made["joins"], "f", "dm", tag="2")
        env.wait_for("joins: updated", sets.updated("joins", before), SECONDS)
        env.settle("part: updated", sets.updated("part", part), SECONDS)
        env.quiet(5.5, real=True)
        env.mark("end")

    def _ask(self, env: SceneEnvironment, made: Mapping[str, Object]) -> None:
        """Asks for a switch of `stored`, without and with a maxUnavailable that suffices; puts the cliques of `a` in
        another order, if that is accepted."""
        strategy = {"updateStrategy": {"type": COHERENT}}
        order = {"spec": {"template": {"cliques": made["a"]["spec"]["template"]["cliques"][::-1]}}}
        if self.stored:
            [clique] = made["stored"]["spec"]["template"]["cliques"]
            enough = {"template": {"cliques": [{**clique, "rollingUpdate": {"maxUnavailable": 2}}]}}
            asked: list[Object] = [{"spec": strategy}, {"spec": {**strategy, **enough}}]
            self.switched = env.dry_run.all([env.dry_run.patch(SETS, "stored", each) for each in asked])
        unset: list[Object] = [
            {"spec": {"updateStrategy": None}},
            {"metadata": {"annotations": {"example.com/a": "1"}}},
        ]
        self.unset = env.dry_run.all([env.dry_run.patch(SETS, "part", each) for each in unset])
        [reply] = env.dry_run.all([env.dry_run.patch(SETS, "a", order)])
        if reply.accepted:
            env.patch(SETS, "a", order)

    def _spoil(self, env: SceneEnvironment) -> None:
        """Deletes one map, and takes the last entry that holds something out of another one."""
        view = env.history.view()
        self.layouts = {each: shape(sets.layout(view, each)) for each in ("lost", "edited")}
        for each in ("lost", "edited"):
            found = sets.map_of(view, each)
            if found is None:
                continue
            edit = {"spec": {"entries": shapes.without_last(found)}}
            asked = env.dry_run.delete(MAPS, name(found)), env.dry_run.patch(MAPS, name(found), edit)
            replies = env.dry_run.all(asked)
            if each == "lost" and replies[0].accepted:
                env.delete(MAPS, name(found))
            elif each == "edited" and replies[1].accepted:
                env.patch(MAPS, name(found), edit)

    def _right(self, view: View) -> bool | Unmet:
        found = shape(sets.layout(view, "edited"))
        return found == self.layouts["edited"] or Unmet(f"entries: {found}")


@requirement("COHR-090")
def test_a_switch_deletes_nothing(run: Recorded[StrategiesAndMaps]) -> None:
    """To Coherent, and from it to OnDelete."""
    run.given("deployed")
    view = run.at("switched")
    for each in ("joins", "asks"):
        run.expect(f"{each}: pods", sorted(run.scene.first[each]), sorted(_pods(view, each)))
        run.expect(f"{each}: an update runs", False, updates.running(view.get(SETS, each)))


@requirement("COHR-091", reaches="joins: map")
def test_a_set_that_joins_keeps_its_gangs(run: Recorded[StrategiesAndMaps]) -> None:
    """The gangs are those of the first deployment."""
    run.given("deployed")
    view = run.at("switched")
    right = ["anchor {f2, d[0]}", "{d[1]}", "{d[2]}"]
    run.expect("gangs in the map", sorted(right), shape(sets.layout(view, "joins")))
    named = set(run.scene.first["joins"].values())
    run.expect("gangs of the pods", sorted(named), sorted(name(g) for g in sets.gangs(view, "joins").values()))


@requirement("COHR-092", reaches="joins: updated")
def test_the_first_update_after_a_switch(run: Recorded[StrategiesAndMaps]) -> None:
    """All components are changed, after the set was scaled."""
    run.given("deployed")
    found = change.changes(sets.layouts(run.between("joins: change", "end"), "joins"))
    by_plan(run, "joins", found, sets.components(run.scene.workload))
    run.expect("images", {"dm": ["2"], "f": ["2"]}, sets.tags(run.at("end"), "joins"))


@requirement("COHR-092", reaches="part: updated")
def test_the_first_partial_update_makes_new_gangs(run: Recorded[StrategiesAndMaps]) -> None:
    """One of two scaling groups is changed."""
    run.given("deployed")
    views = run.at("at rest"), run.at("end")
    old, new = ({label(pod, labels.GANG) for pod in sets.of_template(view, "part", "dm")} for view in views)
    run.expect("gangs that have kept pods of d", [], sorted(old & new))
    run.expect("image of d", ["2"], sets.tags(views[1], "part").get("dm"))


@requirement("COHR-009")
def test_a_stored_set_with_too_low_a_budget_is_not_switched(run: Recorded[StrategiesAndMaps]) -> None:
    """Where admission looks at maxUnavailable whatever the strategy, there is no such set."""
    run.given("deployed")
    if not run.scene.stored:
        run.expect("such a set", False, run.scene.stored)
        return
    without, enough = run.scene.switched
    run.expect("a switch to Coherent", "refused", "refused" if without.refused else str(without))
    run.expect("a switch with maxUnavailable 2", "accepted", str(enough))


@requirement("COHR-106")
def test_nobody_joins_without_being_asked(run: Recorded[StrategiesAndMaps]) -> None:
    """One write removes the strategy, another one is about annotations."""
    run.given("deployed")
    seen = [text(reply.object, "spec", "updateStrategy", "type") for reply in run.scene.unset]
    run.expect("writes that make the set Coherent", [], [each for each in seen if each == COHERENT])


@requirement("COHR-098")
def test_the_first_partial_update_after_a_switch(run: Recorded[StrategiesAndMaps]) -> None:
    """One of two scaling groups is changed. What the switch itself does to gangs is not judged here."""
    run.given("deployed", "part: updated")
    views = run.at("switched"), run.at("end")
    kept = [{uid(pod): label(pod, labels.GANG) for pod in sets.of_template(v, "part", "f", "em")} for v in views]
    run.same("pods of f and e, and their gangs", *kept)
    tags = {template: tag for template, tag in sets.tags(views[1], "part").items() if template != "dm"}
    run.expect("images of f and e", {"em": ["1"], "f": ["1"]}, tags)


@requirement("COHR-099", reaches="joins: replica removed")
def test_scaling_of_a_set_that_has_joined(run: Recorded[StrategiesAndMaps]) -> None:
    """One replica is added after the switch, and then removed again."""
    run.given("joins: map")
    view = run.at("joins: change")
    run.expect("replicas in entries", [0, 1, 2], indices(sets.layout(view, "joins"), "d"))
    run.same("pods and their gangs", run.scene.first["joins"], _pods(view, "joins"))


@requirement("COHR-100")
def test_another_order_of_cliques(run: Recorded[StrategiesAndMaps]) -> None:
    """An update that it starts, if any, has ended by then."""
    run.given("deployed")
    run.same("pods and their gangs", run.scene.first["a"], _pods(run.at("end"), "a"))
    run.expect("an update runs", False, updates.running(run.at("end").get(SETS, "a")))


@requirement("COHR-093")
def test_on_delete_rolls_nothing(run: Recorded[StrategiesAndMaps]) -> None:
    """The set was Coherent before."""
    run.given("deployed", "joins: updated")
    run.expect("pods", sorted(run.scene.first["asks"]), sorted(_pods(run.at("end"), "asks")))
    told = [shapes.in_flight(record.object) for record in run.after("switched").records(SETS, "asks")]
    run.expect("in flight", [], [each for each in told if any(each.values())])


@requirement("COHR-094", reaches="lost: map restored")
def test_a_deleted_map_is_restored(run: Recorded[StrategiesAndMaps]) -> None:
    """Nothing is deleted where admission protects the map."""
    run.given("deployed")
    view = run.at("switched")
    run.expect("gangs in the map", run.scene.layouts["lost"], shape(sets.layout(view, "lost")))
    run.same("pods and their gangs", run.scene.first["lost"], _pods(view, "lost"))


@requirement("COHR-095", reaches="edited: map put right")
def test_an_edited_map_is_put_right(run: Recorded[StrategiesAndMaps]) -> None:
    """Its last entry is taken out, unless admission protects the map."""
    run.given("deployed")
    run.same("pods and their gangs", run.scene.first["edited"], _pods(run.at("switched"), "edited"))


test_invariants = invariants(StrategiesAndMaps, "INV-018", "INV-020", "INV-021", "INV-022")


def _pods(view: View, each: str) -> dict[str, str]:
    return {uid(pod): label(pod, labels.GANG) for pod in sets.of_set(view, each)}


@predicate
def _has_map(view: View, each: str) -> bool | Unmet:
    return bool(sets.layout(view, each)) or Unmet(f"{each} has no PodGangMap with entries")
