"""Tests of changes in the middle of a coherent update: a change is reverted, and a broken version is replaced."""

from __future__ import annotations

from conformance.grove import updates
from conformance.grove.coherent.model import indices
from conformance.grove.fields import uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing.observed import all_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.sets import SETS, TIMEOUT_SECONDS


class ChangedAgain(Scene):
    """Three sets, whose sizes are replicas/minAvailable. `back` has d4/1; its change is reverted when three of four
    replicas have been updated. `sick` has f3/1, and no pod of its first version is ever Ready. `twice` has two replicas
    with f2/1 and d2/1; it is changed again as soon as its update has replaced a pod, and its pods become Ready as
    usual."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        reverted_set, sick_set = (
            sets.set_manifest(env, "back", {}, {"d": (4, 1)}),
            sets.set_manifest(env, "sick", {"f": (3, 1)}),
        )
        sick_set["spec"]["template"]["cliques"][0]["annotations"] = {sets.HOLD_READY: "yes"}
        env.create(reverted_set)
        env.create(sick_set)
        changed_set = sets.set_manifest(env, "twice", {"f": (2, 1)}, {"d": (2, 1)}, replicas=2)
        env.create(changed_set)
        deployed = all_of(sets.is_deployed("back"), sets.is_deployed("twice", 2), sets.has_unready_pods("sick", 3, "1"))
        env.wait_for("deployed", deployed, TIMEOUT_SECONDS)
        env.quiet(0.7)
        env.mark("change")
        initial_generation = sets.change_images(env, reverted_set, "dm", tag="2", hold=True)
        old_generation = sets.change_images(env, sick_set, "f", tag="2")
        twice_generation = self._change_twice(env, changed_set)
        env.wait_for("first replica", all_of(has_updated_pods(1), sets.has_unready_pods("back", 1, "2")), 60)
        sets.release(env, "back")
        env.wait_for("second replica", all_of(has_updated_pods(2), sets.has_unready_pods("back", 1, "2")), 60)
        sets.release(env, "back")
        env.wait_for("third replica", all_of(has_updated_pods(3), sets.has_unready_pods("back", 1, "2")), 60)
        self.untouched_pods = {
            uid(pod) for pod in sets.pods_of_set(env.history.view(), "back") if sets.image_tag(pod) == "1"
        }
        env.mark("taken back")
        reverted_generation = updates.generation_hash(env.history.view().get(SETS, "back"))
        sets.change_images(env, reverted_set, "dm", tag="1")
        env.settle("sick: updated", sets.is_updated("sick", old_generation), 60)
        env.settle("back: ended", sets.is_updated("back", reverted_generation), TIMEOUT_SECONDS)
        env.settle("twice: ended", sets.is_updated("twice", twice_generation), TIMEOUT_SECONDS)
        env.quiet(5.5, real=True)
        env.mark("end")
        self.initial_pods = initial_generation

    def _change_twice(self, env: SceneEnvironment, workload: Object) -> str:
        """Change the set, and change it again during the update that the first change started. Return the generation
        hash between the two changes."""
        initial_uids = sets.clique_by_uid(sets.pods_of_set(env.history.view(), "twice"))
        sets.change_images(env, workload, "f", "dm", tag="2")
        env.settle("twice: update has begun", sets.has_lost_pods(initial_uids, 0), 60)
        generation = updates.generation_hash(env.history.view().get(SETS, "twice"))
        sets.change_images(env, workload, "f", "dm", tag="3")
        return generation


@predicate
def has_updated_pods(view: View, count: int) -> bool | Unmet:
    """Exactly `count` pods of the set `back` have its second version, Ready or not."""
    updated_pods = sum(sets.image_tag(pod) == "2" for pod in sets.pods_of_set(view, "back"))
    return updated_pods == count or Unmet(f"{updated_pods} of {count} pods are of the second version")


@requirement("COHR-065", reaches="back: ended")
def test_a_change_that_is_taken_back(run: Recorded[ChangedAgain]) -> None:
    """Three of four replicas have been updated, and the last updated replica is not Ready."""
    run.given("third replica")
    view = run.at("end")
    run.expect("images", {"dm": ["1"]}, sets.image_tags(view, "back"))
    run.expect("replicas in entries", [0, 1, 2, 3], indices(sets.layout(view, "back"), "d"))
    run.expect("generation", run.scene.initial_pods, updates.generation_hash(view.get(SETS, "back")))
    remaining = {uid(pod) for pod in sets.pods_of_set(view, "back")}
    run.expect("pods that were never updated and are gone", [], sorted(run.scene.untouched_pods - remaining))


@requirement("COHR-069", reaches="sick: updated")
def test_a_version_that_never_was_ready_is_replaced(run: Recorded[ChangedAgain]) -> None:
    """No pod of the first version is Ready when the set is changed."""
    run.given("deployed")
    run.expect("images", {"f": ["2"]}, sets.image_tags(run.at("end"), "sick"))


@requirement("COHR-064", reaches="twice: ended")
def test_the_last_version_is_rolled_out(run: Recorded[ChangedAgain]) -> None:
    """The pods of both versions become Ready."""
    run.given("deployed", "twice: update has begun")
    run.expect("images", {"dm": ["3"], "f": ["3"]}, sets.image_tags(run.at("end"), "twice"))


test_invariants = invariants(ChangedAgain, "INV-013", "INV-014", "INV-021")
