"""The scene of updates that are interrupted: by other changes, and by what is lost."""

from __future__ import annotations

from conformance.grove import pods, updates
from conformance.grove.coherent.model import shape
from conformance.grove.fields import name, uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.observed import all_of
from conformance.testing.scene import Scene, SceneEnvironment
from conformance.tests.coherent import sets
from conformance.tests.coherent.sets import MAPS, SECONDS, SETS

SIZES: dict[str, tuple[sets.Sizes, sets.Sizes]] = {
    "partly": ({"f": (1, 1)}, {"g": (3, 1), "d": (2, 1)}),
    "wider": ({"f": (1, 1)}, {"g": (4, 1)}),
    "thrice": ({"f": (2, 1)}, {}),
    "mapless": ({"f": (2, 1)}, {"d": (2, 1)}),
    "weak": ({"f": (6, 2)}, {}),
}
"""Standalone cliques and scaling groups of the sets: replicas, and minAvailable."""
NAMES = tuple(SIZES)
WEAK = "weak-0-f"


class Interrupted(Scene):
    """Five sets (see SIZES), whose updates are held before each sub-step.

    `partly`: f and g are changed, then, when f is complete and g is not, g and d. `wider`: maxUnavailable of g is
    raised to 2 after the first sub-step. `thrice` has three replicas and is changed again when the second one is
    updated. `mapless`: its PodGangMap is deleted after the first sub-step, unless admission protects it. `weak`: after
    the second sub-step it loses all pods of the first new gang, which come back but are not Ready at first, and one of
    the old version: three of six pods are Ready, and four would have to be.
    """

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 2)
        made = {
            each: sets.coherent(env, each, *sizes, replicas=3 if each == "thrice" else 1)
            for each, sizes in SIZES.items()
        }
        for workload in made.values():
            env.create(workload)
        deployed = (sets.deployed(each, 3 if each == "thrice" else 1) for each in NAMES)
        env.wait_for("deployed", all_of(*deployed), SECONDS)
        env.quiet(0.7)
        env.mark("change")
        before = {
            "partly": sets.change(env, made["partly"], "f", "gm", tag="2", hold=("gm",)),
            "wider": sets.change(env, made["wider"], "f", "gm", tag="2", hold=True),
            "mapless": sets.change(env, made["mapless"], "f", "dm", tag="2", hold=True),
            "weak": sets.change(env, made["weak"], "f", tag="2", hold=True),
        }
        sets.change(env, made["thrice"], "f", tag="2", hold=True)
        self._begin_the_second_replica(env)
        before["thrice"] = updates.generation(env.history.view().get(SETS, "thrice"))
        sets.change(env, made["thrice"], "f", tag="3")
        sets.release(env, "thrice")  # an operator may wait for the gangs of the second version
        counts = {"partly": 1, "wider": 2, "mapless": 2, "weak": 2}
        env.wait_for("first sub-steps", all_of(*(sets.held(each, size, "2") for each, size in counts.items())), SECONDS)
        self._raise_the_budget(env, made["wider"]["spec"]["template"]["podCliqueScalingGroups"])
        self._delete_the_map(env)
        for each in ("partly", "weak"):
            sets.release(env, each)
        env.wait_for("second sub-steps", all_of(rolled("partly", 2, 1), rolled("weak", 4, 2)), SECONDS)
        self.complete = sets.uids(sets.of_template(env.history.view(), "partly", "f"))
        env.mark("partly: changed again")
        middle = sets.change(env, made["partly"], "gm", "dm", tag="3")
        self._lose(env)
        env.settle("partly: ended", sets.updated("partly", middle), SECONDS)
        env.quiet(1)
        env.mark("weak: below the minimum")
        sets.release_all(env, {each: before[each] for each in ("weak", "wider", "mapless")})
        env.settle("thrice: ended", sets.updated("thrice", before["thrice"]), SECONDS)
        env.quiet(0.7)
        env.mark("end")

    def _begin_the_second_replica(self, env: SceneEnvironment) -> None:
        for _ in range(sets.SUB_STEPS):
            view = env.settled("thrice: pods wait to become Ready", sets.waiting("thrice"))
            if 1 in updates.turns(view.get(SETS, "thrice")) or sets.waiting("thrice")(view) is not True:
                break
            sets.release(env, "thrice")
        env.wait_for("thrice: second replica", all_of(turn("thrice", 1), sets.held("thrice", 1, "2")))

    def _raise_the_budget(self, env: SceneEnvironment, groups: list[dict[str, object]]) -> None:
        groups[0]["rollingUpdate"] = {"maxUnavailable": 2}
        env.patch(SETS, "wider", {"spec": {"template": {"podCliqueScalingGroups": groups}}})
        env.mark("wider: budget raised")

    def _delete_the_map(self, env: SceneEnvironment) -> None:
        view = env.history.view()
        self.layout = shape(sets.layout(view, "mapless"))
        self.kept = sets.uids(sets.of_set(view, "mapless"))
        if (found := sets.map_of(view, "mapless")) is not None:
            [reply] = env.dry_run.all([env.dry_run.delete(MAPS, name(found))])
            if reply.accepted:
                env.delete(MAPS, name(found))
        env.settle("mapless: map restored", self._restored)
        env.quiet(1)
        env.mark("mapless: at rest")

    def _restored(self, view: View) -> bool | Unmet:
        found = shape(sets.layout(view, "mapless"))
        return found == self.layout or Unmet(f"entries: {found}")

    def _lose(self, env: SceneEnvironment) -> None:
        """The new pods that are Ready are lost, and one of the old version; those of the second sub-step become
        Ready."""
        found = predicates.pods_of(env.history.view(), WEAK)
        first = [pod for pod in found if sets.tag(pod) == "2" and pods.ready(pod)]
        second = {name(pod) for pod in found if sets.tag(pod) == "2"} - {name(pod) for pod in first}
        old, *rest = (pod for pod in found if sets.tag(pod) == "1")
        self.left = {uid(pod) for pod in rest}
        for pod in (old, *first):
            env.delete("pods", name(pod))
        env.wait_for("weak: pods lost", all_of(sets.held("weak", 4, "2"), old_pods(len(rest))), SECONDS)
        sets.release(env, "weak", second)


@predicate
def turn(view: View, set_name: str, replica: int) -> bool | Unmet:
    """It is the turn of this replica."""
    found = updates.turns(view.get(SETS, set_name))
    return replica in found or Unmet(f"replicas of {set_name} that are being updated: {found}")


@predicate
def rolled(view: View, set_name: str, count: int, waiting: int) -> bool | Unmet:
    """So many pods of the set that are held are of its second version, some of which wait to become Ready."""
    cliques = ("gm",) if set_name == "partly" else ("f",)
    found = sum(sets.tag(pod) == "2" for pod in sets.of_template(view, set_name, *cliques))
    if found != count:
        return Unmet(f"{found} of {count} pods of {set_name} are of the second version")
    return sets.held(set_name, waiting, "2")(view)


@predicate
def old_pods(view: View, count: int) -> bool | Unmet:
    """So many pods of the set `weak` are of its first version."""
    found = sum(sets.tag(pod) == "1" for pod in predicates.pods_of(view, WEAK))
    return found == count or Unmet(f"{found} pods of {WEAK} are of the first version, not {count}")
