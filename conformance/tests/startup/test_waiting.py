"""Tests that pods start after their parents. The scenes hold pods back and release them one by one, so that each step
of the order can be observed."""

from __future__ import annotations

from collections.abc import Container, Iterable

from conformance.grove import pods
from conformance.grove.expected import ExpectedClique, ExpectedObjects, expected
from conformance.grove.fields import name, uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.startup.predicates import (
    are_ready,
    are_waiting,
    make_unready,
    none_are_ready,
    pod_names,
    ready_counts,
    release,
    require_premises,
    with_held_pods,
)


class GangsHeldBack(Scene):
    """Nodes with room for all pods. A base gang and two scaled gangs, whose fronts and leaders are held back. First the
    front and the leader of the base gang are released. Then the leader of one scaled gang is released while the front
    of the base gang is not Ready."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        workload = with_held_pods(env.workload("chain", fronts=1, groups=3), "fe", "ld")
        expected_set = expected(workload)
        self.base, first_scaled, self.other = (
            expected_set.of_gang(gang) for gang in ("chain-0", "chain-0-sg-0", "chain-0-sg-1")
        )
        self.scaled = [*first_scaled, *self.other]
        env.create(workload)
        env.wait_for("base gang bound", predicates.all_bound(self.base))
        require_premises(env, workload)
        env.wait_for("base gang under way", are_waiting(self.base))
        env.settle("scaled gangs ungated", predicates.all_ungated(self.scaled), 60)

        for tail in ("0-fe", "sg-0-ld"):
            release(env, _first_pod(env, expected_set, tail))
        env.wait_for("base gang ready", are_ready(self.base))
        env.wait_for("scaled gangs ungated by a Ready base gang", predicates.all_ungated(self.scaled))
        env.wait_for("scaled gangs bound", predicates.all_bound(self.scaled))
        env.wait_for("scaled gangs under way", are_waiting(self.scaled))
        env.quiet(1)
        env.mark("scaled gangs wait")

        make_unready(env, _first_pod(env, expected_set, "0-fe"))
        release(env, _first_pod(env, expected_set, "sg-1-ld"))
        env.wait_for("one scaled gang ready", are_ready(first_scaled))
        env.quiet(1)
        env.mark("the other scaled gang waits")


class ReplicasHeldBack(Scene):
    """Nodes with room for all pods. The fronts of both replicas of a set are held back, and released one by one."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        workload = with_held_pods(env.workload("chain", replicas=2, fronts=1, groups=1), "fe")
        expected_set = expected(workload)
        self.first, self.second = (
            [c for c in expected_set.cliques.values() if c.set_index == index] for index in (0, 1)
        )
        env.create(workload)
        env.wait_for("all pods bound", predicates.all_bound([*self.second, *self.first]))
        require_premises(env, workload)
        release(env, _first_pod(env, expected_set, "1-fe"))
        env.settle("second replica ready", are_ready(self.second), 60)
        env.quiet(1)
        env.mark("first replica waits")
        release(env, _first_pod(env, expected_set, "0-fe"))
        env.wait_for("both replicas ready", are_ready([*self.first, *self.second]))


class ParentsReadyOneByOne(Scene):
    """Nodes with room for all pods. The workers wait for one of two leaders, and the leaders wait for two of three
    fronts. One leader and two fronts are released one by one, and finally all other pods."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        workload = with_held_pods(
            env.workload("chain", fronts=3, frontsMinAvailable=2, leaders=2, leadersMinAvailable=1), "fe", "ld"
        )
        expected_set = expected(workload)
        self.cliques = [_clique(expected_set, tail) for tail in ("0-fe", "sg-0-ld", "sg-0-wk")]
        front, leaders, workers = self.cliques
        env.create(workload)
        env.wait_for("all pods bound", predicates.all_bound(self.cliques))
        require_premises(env, workload)
        release(env, pod_names(env.history.view(), leaders.name)[0])
        env.quiet(1)
        env.mark("leader waits for the fronts")
        fronts = pod_names(env.history.view(), front.name)
        release(env, fronts[0])
        env.wait_for("one front ready", are_ready([front], 1))
        env.quiet(1)
        env.mark("leader waits for a second front")
        release(env, fronts[1])
        env.settle("leader ready after two of three fronts", are_ready([leaders], 1), 60)
        env.settle("worker ready after one of two leaders", are_ready([workers]), 60)
        env.quiet(1)
        env.mark("nothing moves")
        for pod in (fronts[2], pod_names(env.history.view(), leaders.name)[1]):
            release(env, pod)
        env.settle("all pods ready", are_ready(self.cliques), 60)


class FrontsLost(Scene):
    """Nodes with room for all pods. The fronts break down when all pods are Ready. Then a leader is deleted, and
    finally the fronts recover."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        workload = env.workload("chain", fronts=2, frontsMinAvailable=2, leaders=2, groups=1)
        expected_set, cliques = expected(workload), list(expected(workload).cliques.values())
        front, self.leaders, self.workers = (_clique(expected_set, tail) for tail in ("0-fe", "sg-0-ld", "sg-0-wk"))
        env.create(workload)
        env.wait_for("all pods ready", are_ready(cliques))
        require_premises(env, workload)
        fronts = pod_names(env.history.view(), front.name)
        for pod in fronts:
            make_unready(env, pod)
        env.wait_for("fronts not ready", none_are_ready([front]))
        env.quiet(1)
        env.mark("fronts lost")

        former_uids = _uids(env.history.view(), [self.leaders])
        env.delete("pods", env.wait_for("a leader is bound", _some_pod(self.leaders)))
        env.wait_for("deleted leader replaced", _some_pod(self.leaders, former_uids))
        env.wait_for("new leader under way", are_waiting([self.leaders]))
        env.quiet(1)
        env.mark("new leader waits")
        for pod in fronts:
            release(env, pod)
        env.wait_for("fronts and leaders ready", are_ready([front, self.leaders]))


@requirement("START-010", reaches=("base gang bound", "scaled gangs bound"))
def test_gangs_are_bound_before_any_pod_is_ready(run: Recorded[GangsHeldBack]) -> None:
    """The parents are held back until all pods of their own gang are bound."""
    run.given("base gang under way")
    parents = [clique for clique in run.scene.base if clique.template.name in ("fe", "ld")]
    run.expect(
        "Ready pods of parents", predicates.zero_counts(parents), ready_counts(run.at("base gang under way"), parents)
    )


@requirement("GANG-008", reaches="scaled gangs ungated by a Ready base gang")
def test_a_ready_base_gang_releases_scaled_gangs(run: Recorded[GangsHeldBack]) -> None:
    """An operator may wait until the base gang is Ready, or release the scaled gangs earlier (GANG-027)."""


@requirement("GANG-027", reaches="scaled gangs ungated")
def test_a_base_gang_that_is_not_ready_releases_scaled_gangs(run: Recorded[GangsHeldBack]) -> None:
    """The front of the base gang is bound but held back, so none of the gang's pods can be Ready."""


@requirement("START-012", reaches="one scaled gang ready")
def test_gangs_start_independently(run: Recorded[GangsHeldBack]) -> None:
    """The leaders of both scaled gangs are held back longer than the leader of the base gang. The base gang's front
    breaks down before one of the scaled gangs starts."""
    run.given("base gang ready", "scaled gangs under way")
    run.always("no pod of the scaled gangs is Ready", none_are_ready(run.scene.scaled), until="scaled gangs wait")
    other = none_are_ready(run.scene.other)
    run.always("no pod of the other scaled gang is Ready", other, until="the other scaled gang waits")


@requirement("START-012", reaches="both replicas ready")
def test_replicas_of_a_set_start_independently(run: Recorded[ReplicasHeldBack]) -> None:
    """The front of the second replica is released first.

    Both replicas start in the end, so if the second replica has not started yet, it is waiting for the first replica.
    """
    run.given("all pods bound", "first replica waits")
    run.always("no pod of the first replica is Ready", none_are_ready(run.scene.first), until="first replica waits")
    started = ready_counts(run.at("first replica waits"), run.scene.second)
    run.expect("Ready pods of the second replica before the first starts", predicates.sizes(run.scene.second), started)


@requirement("START-011", reaches="all pods ready")
def test_pods_wait_for_their_parents(run: Recorded[ParentsReadyOneByOne]) -> None:
    """No front is Ready at first. At the end all parents are Ready, regardless of how many parents the pods wait
    for."""
    run.given("all pods bound")
    ready_pods = ready_counts(run.at("leader waits for the fronts"), run.scene.cliques)
    run.expect("Ready pods without fronts", dict.fromkeys((clique.name for clique in run.scene.cliques), 0), ready_pods)


@requirement("START-017")
def test_pods_wait_for_the_minimums_of_their_parents(run: Recorded[ParentsReadyOneByOne]) -> None:
    """One more front would have to be Ready before the leaders may start."""
    run.given("all pods bound", "one front ready")
    front, leaders, workers = (clique.name for clique in run.scene.cliques)
    ready_pods = ready_counts(run.at("leader waits for a second front"), run.scene.cliques)
    run.expect("Ready pods with one front", {front: 1, leaders: 0, workers: 0}, ready_pods)


@requirement("START-016", reaches=("leader ready after two of three fronts", "worker ready after one of two leaders"))
def test_pods_wait_for_no_more_than_the_minimums(run: Recorded[ParentsReadyOneByOne]) -> None:
    """The pods above the parents' minimums are held back until all other pods are Ready."""
    front, leaders, workers = (clique.name for clique in run.scene.cliques)
    end = ready_counts(run.at("nothing moves"), run.scene.cliques)
    run.expect("Ready pods in the end", {front: 2, leaders: 1, workers: 1}, end)


@requirement("START-013")
def test_started_pods_do_not_need_their_parents(run: Recorded[FrontsLost]) -> None:
    """The UIDs of leaders and workers are compared shortly after their fronts are lost."""
    run.given("all pods ready", "fronts not ready")
    children = [run.scene.leaders, run.scene.workers]
    started, now = (sorted(_uids(run.at(step), children)) for step in ("all pods ready", "fronts lost"))
    run.expect("uids of pods that had started", started, now)


@requirement("START-014")
def test_a_replaced_pod_waits_for_its_parents_again(run: Recorded[FrontsLost]) -> None:
    """The fronts are not Ready when a leader is deleted and its successor is started."""
    run.given("a leader is bound", "deleted leader replaced", "new leader under way")
    leaders = run.scene.leaders
    run.expect("Ready leaders without fronts", {leaders.name: 1}, ready_counts(run.at("new leader waits"), [leaders]))


test_invariants_of_gangs = invariants(GangsHeldBack, "INV-001", "INV-004", "INV-005")


test_invariants = invariants(GangsHeldBack | ReplicasHeldBack | ParentsReadyOneByOne | FrontsLost, "INV-006", "INV-026")


def _clique(expected_set: ExpectedObjects, tail: str) -> ExpectedClique:
    [clique] = [clique for clique in expected_set.cliques.values() if clique.name.endswith(f"-{tail}")]
    return clique


def _first_pod(env: SceneEnvironment, expected_set: ExpectedObjects, tail: str) -> str:
    """Return the first pod of the clique whose name ends with `tail`."""
    return pod_names(env.history.view(), _clique(expected_set, tail).name)[0]


def _uids(view: View, cliques: Iterable[ExpectedClique]) -> set[str]:
    """Return the UIDs of the pods of these cliques."""
    return {uid(pod) for members in predicates.pods_by_clique(view, cliques).values() for pod in members}


@predicate
def _some_pod(view: View, clique: ExpectedClique, former_uids: Container[str] = ()) -> str | Unmet:
    """Return the name of a bound pod of the clique whose UID is not in `former_uids`."""
    candidates = [
        pod for pod in predicates.pods_of(view, clique.name) if uid(pod) not in former_uids and pods.is_bound(pod)
    ]
    return name(candidates[0]) if candidates else Unmet(f"no such pod of {clique.name} is bound")
