"""Switches of the strategy, and PodGangMaps that somebody has deleted or edited."""

from __future__ import annotations

from conformance.grove import labels, updates
from conformance.grove.coherent import change, plan, shapes
from conformance.grove.coherent.model import shape
from conformance.grove.fields import label, name, uid
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.observed import all_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.sets import COHERENT, MAPS, ON_DELETE, ROLLING, SECONDS, SETS

SIZES = {"f": (2, 1)}, {"d": (3, 1)}
NAMES = ("joins", "asks", "lost", "edited", "a", "a-0")


class StrategiesAndMaps(Scene):
    """Six sets, f2/1 d3/1. `joins` is switched to Coherent and then changed, `asks` to OnDelete and then changed. The
    PodGangMap of `lost` is deleted, that of `edited` edited, unless admission protects them. `a` and `a-0` have names
    of which one begins the other."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        made = {
            each: sets.coherent(env, each, *SIZES, strategy=ROLLING if each == "joins" else COHERENT) for each in NAMES
        }
        for workload in made.values():
            env.create(workload)
        env.wait_for("deployed", all_of(*map(sets.deployed, NAMES)), SECONDS)
        env.quiet(1)
        self.first = {each: _pods(env.history.view(), each) for each in NAMES}
        self.workload = made["joins"]
        env.mark("at rest")
        sets.switch(env, "joins", COHERENT)
        sets.switch(env, "asks", ON_DELETE)
        self._spoil(env)
        env.settle("joins: map", _has_map("joins"), 30)
        env.settle("lost: map restored", _has_map("lost"), 30)
        env.settle("edited: map put right", self._right, 30)
        env.quiet(2)
        env.mark("switched")
        before = sets.change(env, made["joins"], "f", "dm", tag="2")
        sets.change(env, made["asks"], "f", "dm", tag="2")
        env.wait_for("joins: updated", sets.updated("joins", before), SECONDS)
        env.quiet(5.5, real=True)
        env.mark("end")

    def _spoil(self, env: SceneEnvironment) -> None:
        """Deletes one map, and takes the last entry out of another one."""
        view = env.history.view()
        self.layouts = {each: shape(sets.layout(view, each)) for each in ("lost", "edited")}
        for each in ("lost", "edited"):
            found = sets.map_of(view, each)
            if found is None:
                continue
            edit = {"spec": {"entries": found["spec"]["entries"][:-1]}}
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
    """A change of the strategy alone MUST NOT delete a Pod, and MUST NOT start an update."""
    run.reached("deployed")
    view = run.at("switched")
    for each in ("joins", "asks"):
        run.same(f"{each}: pods and their gangs", run.scene.first[each], _pods(view, each))
        run.expect(f"{each}: an update runs", False, updates.running(view.get(SETS, each)))


@requirement("COHR-091")
def test_a_set_that_joins_keeps_its_gangs(run: Recorded[StrategiesAndMaps]) -> None:
    """A PodCliqueSet that is switched to Coherent SHOULD keep its PodGangs: the PodGangMap SHOULD list them."""
    run.reached("deployed")
    run.reached("joins: map")
    view = run.at("switched")
    right = ["anchor {f2, d[0]}", "{d[1]}", "{d[2]}"]
    run.expect("gangs in the map", sorted(right), shape(sets.layout(view, "joins")))
    named = set(run.scene.first["joins"].values())
    run.expect("gangs of the pods", sorted(named), sorted(name(g) for g in sets.gangs(view, "joins").values()))


@requirement("COHR-092")
def test_the_first_update_after_a_switch(run: Recorded[StrategiesAndMaps]) -> None:
    """The first update after a switch to Coherent MUST move all components into new PodGangs by the plan."""
    run.reached("deployed")
    run.reached("joins: updated")
    found = [str(each.batch) for each in change.changes(sets.layouts(run.between("switched", "end"), "joins"))]
    wanted = [[str(batch) for batch in each] for each in plan.readings(sets.components(run.scene.workload))]
    run.expect("sub-steps", found if found in wanted else wanted[0], found)
    run.expect("images", {"dm": ["2"], "f": ["2"]}, sets.tags(run.at("end"), "joins"))


@requirement("COHR-093")
def test_on_delete_rolls_nothing(run: Recorded[StrategiesAndMaps]) -> None:
    """With the strategy OnDelete, a change MUST NOT delete a Pod, and nothing MUST be reported as in flight."""
    run.reached("deployed")
    run.reached("joins: updated")
    run.same("pods and their gangs", run.scene.first["asks"], _pods(run.at("end"), "asks"))
    told = [shapes.in_flight(record.object) for record in run.after("switched").records(SETS, "asks")]
    run.expect("in flight", [], [each for each in told if any(each.values())])


@requirement("COHR-094")
def test_a_deleted_map_is_restored(run: Recorded[StrategiesAndMaps]) -> None:
    """A PodGangMap that is deleted SHOULD be restored as it was, without a change of any Pod."""
    run.reached("deployed")
    run.reached("lost: map restored")
    view = run.at("switched")
    run.expect("gangs in the map", run.scene.layouts["lost"], shape(sets.layout(view, "lost")))
    run.same("pods and their gangs", run.scene.first["lost"], _pods(view, "lost"))


@requirement("COHR-095")
def test_an_edited_map_is_put_right(run: Recorded[StrategiesAndMaps]) -> None:
    """A PodGangMap that somebody has edited SHOULD be put right, and no Pod SHOULD be deleted because of it."""
    run.reached("deployed")
    run.reached("edited: map put right")
    run.same("pods and their gangs", run.scene.first["edited"], _pods(run.at("switched"), "edited"))


@requirement("COHR-096")
def test_sets_whose_names_begin_alike(run: Recorded[StrategiesAndMaps]) -> None:
    """A PodGang MUST NOT depend on anchors of another PodCliqueSet whose name begins like its own."""
    run.reached("deployed")
    view = run.at("at rest")
    for each in ("a", "a-0"):
        named = {entry.key for entry in sets.layout(view, each)}
        run.expect(f"gangs of {each}", sorted(named), sorted(sets.gangs(view, each)))
        of = {label(gang, labels.PART_OF) for gang in sets.gangs(view, each).values()}
        run.expect(f"sets of the gangs of {each}", [each], sorted(of))


@invariants("INV-018", "INV-020", "INV-021", "INV-022")
def test_invariants(run: Recorded[StrategiesAndMaps], invariant: str) -> None:
    """What MUST hold at every moment of any history."""
    run.invariant()


def _pods(view: View, each: str) -> dict[str, str]:
    return {uid(pod): label(pod, labels.GANG) for pod in sets.of_set(view, each)}


def _has_map(each: str) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        return bool(sets.layout(view, each)) or Unmet(f"{each} has no PodGangMap with entries")

    return seen
