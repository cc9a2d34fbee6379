"""Tests with pods in all states, and the statuses that their cliques report."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

from conformance.grove import health, labels
from conformance.grove.expected import ExpectedClique, expected
from conformance.grove.fields import condition, condition_is, label, name, number, text
from conformance.grove.health import HealthCase
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.invariants.creations import STALE
from conformance.suite.scenes.api import Object
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.comparison import Comparison, value_or_absent
from conformance.testing.disruption import BREACHED, CLIQUES
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.core import reports

SET_NAME = "health"
SCHEDULED_CONDITION = "PodCliqueScheduled"
ONE_READY = {"replicas": 2, "readyReplicas": 1}
UNDECIDED_CASES = frozenset({"crashed", "completed", "init-failed"})
"""Cases with a pod that starts again. No document says whether such a pod counts as starting."""
STARTING_CASES = frozenset({"starting", "silent"})
"""Cases whose pods have not started yet. The documents disagree about whether such pods count."""
RECOVERING_CASES = ("unready", "crashed")
"""Cases whose pods become Ready later."""


class PodsInAllStates(Scene):
    """One node and a set with a clique for each case of pod health. All pods are bound and get the states of their
    case. Some of them recover. Then a pod of one clique is deleted and stays terminating. After a restart of the
    operator, the same happens to a pod of another clique."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        self.cases = {case.name: case for case in health.cases()}
        workload = _workload(env, self.cases)
        self.cliques = expected(workload).cliques
        env.create(workload)
        env.wait_for("all pods bound", predicates.all_bound(list(self.cliques.values())))

        # A pod that has been Ready is no longer starting, however "starting" is defined.
        _set_states(env, clique_name("unready"), self.cases["serving"])
        ready_counts = {"readyReplicas": len(self.cases["unready"].pods)}
        env.wait_for("pods Ready once", reports.has_counts(clique_name("unready"), ready_counts))

        for clique in self.cliques.values():
            _set_states(env, clique.name, self.cases[clique.template.name])
        env.settle("statuses follow the pods", self._reported, 60)

        # Wait for more than a second before the same pods recover, because transition times are in whole seconds.
        env.quiet(1.1, real=True)
        for recovering_cliques in RECOVERING_CASES:
            _set_states(env, clique_name(recovering_cliques), self.cases["serving"])
        healthy_cliques = {
            case: disruption.are_breached(CLIQUES, [clique_name(case)], "False") for case in RECOVERING_CASES
        }
        env.wait_for("breach of unready ended", healthy_cliques["unready"])
        env.settle("breach of crashed ended", healthy_cliques["crashed"], 60)

        # A spare pod that becomes Ready changes the message of the condition but not its status. By then the status is
        # so old that every cache has it.
        start_time = incarnations.condition_start(env.history, CLIQUES, clique_name("spare"), BREACHED, "False")
        if start_time is not None and (seconds := start_time.at + STALE + 1 - env.history.now()) > 0:
            env.quiet(seconds, seconds + 5, real=True)
        _set_states(env, clique_name("spare"), self.cases["serving"])
        env.wait_for("spare pod ready", reports.has_counts(clique_name("spare"), {"readyReplicas": 2}))

        terminating_pods = [_terminate_a_pod(env, clique_name("serving"))]
        env.settle("terminating pod replaced", reports.has_counts(clique_name("serving"), ONE_READY), 60)

        # An operator that has just started reports the same as an operator that has observed all events (OBJ-264).
        env.roles.restart("operator")
        terminating_pods.append(_terminate_a_pod(env, clique_name("recovered")))
        replaced_pods = reports.has_counts(clique_name("recovered"), ONE_READY)
        env.settle("terminating pod replaced after a restart", replaced_pods, 60)
        for pod in terminating_pods:
            env.patch("pods", pod, {"metadata": {"annotations": {health.HOLD_DELETION: None}}})

    def _reported(self, view: View) -> bool | Unmet:
        comparisons = (
            _compare_scheduled(self.cliques.values(), view),
            _compare_ready_counts(self.cliques.values(), self.cases, view),
            _compare_breaches(self.cliques.values(), self.cases, view, *self.cases),
        )
        equal = all(expected_values == observed_values for expected_values, observed_values in comparisons)
        return equal or Unmet("the statuses are behind")


@requirement("CORE-016")
def test_bound_pods_count_as_scheduled(run: Recorded[PodsInAllStates]) -> None:
    """A pod whose status has not been reported by the kubelet yet counts as well."""
    run.given("all pods bound")
    view = run.at("statuses follow the pods")
    run.same("scheduled pods, and the condition about them", *_compare_scheduled(run.scene.cliques.values(), view))


@requirement("CORE-011")
def test_cliques_count_their_ready_pods(run: Recorded[PodsInAllStates]) -> None:
    """The reason why a pod is not Ready makes no difference."""
    run.given("all pods bound")
    view = run.at("statuses follow the pods")
    run.same("ready pods", *_compare_ready_counts(run.scene.cliques.values(), run.scene.cases, view))


@requirement("CORE-017", reaches="breach of unready ended")
def test_a_clique_is_breached_while_too_few_pods_are_ready_or_starting(run: Recorded[PodsInAllStates]) -> None:
    """Cases with pods that have not started yet, or that start again after they have failed or ended, are left out."""
    view, cases = run.at("statuses follow the pods"), run.scene.cases
    breaches = _compare_breaches(
        run.scene.cliques.values(), cases, view, *(cases.keys() - UNDECIDED_CASES - STARTING_CASES)
    )
    run.same("MinAvailableBreached", *breaches)


@requirement("CORE-041")
def test_a_clique_is_not_breached_while_its_pods_start(run: Recorded[PodsInAllStates]) -> None:
    """For some pods, the kubelet has not reported any containers yet."""
    view = run.at("statuses follow the pods")
    breaches = _compare_breaches(run.scene.cliques.values(), run.scene.cases, view, *STARTING_CASES)
    run.same("MinAvailableBreached", *breaches)


@requirement("CORE-038", reaches="breach of crashed ended")
def test_a_pod_that_has_failed_is_not_starting(run: Recorded[PodsInAllStates]) -> None:
    """A pod whose container failed might never start, whereas one whose container exited with 0 is expected to be
    restarted."""
    view = run.at("statuses follow the pods")
    breaches = _compare_breaches(run.scene.cliques.values(), run.scene.cases, view, *UNDECIDED_CASES)
    run.same("MinAvailableBreached", *breaches)


@requirement("CORE-018")
def test_no_more_pods_are_counted_than_there_are(run: Recorded[PodsInAllStates]) -> None:
    """The counts may differ while pods are terminating."""
    run.invariant()


@requirement("CORE-039", reaches=("terminating pod replaced", "terminating pod replaced after a restart"))
def test_a_terminating_pod_is_replaced_and_not_counted(run: Recorded[PodsInAllStates]) -> None:
    """Neither the duration of the termination nor a restart of the operator makes a difference."""
    for step, clique in (
        ("terminating pod replaced", "serving"),
        ("terminating pod replaced after a restart", "recovered"),
    ):
        pods = predicates.pods_of(run.at(step), clique_name(clique))
        run.expect("indices of the pods then", ["0", "1"], sorted(label(pod, labels.POD_INDEX) for pod in pods))


@requirement("CORE-019")
def test_transition_times_change_with_the_status(run: Recorded[PodsInAllStates]) -> None:
    """Breaches end between the two steps. If a clique does not report its breach, there is no change of status to
    judge."""
    run.judge_violation()
    before, after = (run.at(step) for step in ("statuses follow the pods", "spare pod ready"))
    later_pods: dict[str, bool] = {}
    for clique in map(clique_name, RECOVERING_CASES):
        old_pods, new_pods = (condition(view.get(CLIQUES, clique), BREACHED) for view in (before, after))
        if text(old_pods, "status") != text(new_pods, "status"):
            later_pods[clique] = "" < text(old_pods, "lastTransitionTime") < text(new_pods, "lastTransitionTime")
    run.holds("the status of a condition changes", bool(later_pods) or None)
    run.same("the transition time changes with the status", dict.fromkeys(later_pods, True), later_pods)


test_invariants = invariants(PodsInAllStates, "INV-001", "INV-003", "INV-004", "INV-005")


def clique_name(case: str) -> str:
    """Return the name of the PodClique of a case."""
    return f"{SET_NAME}-0-{case}"


def _workload(env: SceneEnvironment, cases: Mapping[str, HealthCase]) -> Object:
    """Return a set with a clique for each case. The cliques differ only in their names and sizes."""
    workload = env.workload("waiting", setName=SET_NAME)
    cliques = workload["spec"]["template"]["cliques"]
    [pattern] = cliques
    cliques.clear()
    for case in cases.values():
        clique = copy.deepcopy(pattern)
        clique["name"] = clique["spec"]["roleName"] = case.name
        clique["spec"] |= {"replicas": len(case.pods), "minAvailable": case.min_available}
        cliques.append(clique)
    return workload


def _set_states(env: SceneEnvironment, clique: str, case: HealthCase) -> None:
    """Write the states of a case into the statuses of a clique's pods, ordered by index."""
    for pod, state in zip(disruption.pods_by_index(env, clique), case.pods, strict=False):
        env.patch("pods", name(pod), health.status(pod, state), subresource="status")


def _terminate_a_pod(env: SceneEnvironment, clique: str) -> str:
    """Delete a pod of a clique so that the pod stays terminating. Return the pod's name."""
    pod_name = name(predicates.pods_of(env.history.view(), clique)[0])
    env.patch("pods", pod_name, {"metadata": {"annotations": {health.HOLD_DELETION: "yes"}}})
    env.delete("pods", pod_name)
    return pod_name


def _compare_scheduled(cliques: Iterable[ExpectedClique], view: View) -> Comparison:
    """Return the expected and observed numbers of scheduled pods of cliques, and the condition that reports them."""
    expected_values: dict[str, object] = {}
    observed_values: dict[str, object] = {}
    for clique in cliques:
        podclique = view.get(CLIQUES, clique.name)
        expected_values[clique.name] = [clique.template.replicas, "True"]
        scheduled = number(podclique, "status", "scheduledReplicas")
        observed_values[clique.name] = [scheduled, condition_is(podclique, SCHEDULED_CONDITION)]
    return expected_values, observed_values


def _compare_ready_counts(cliques: Iterable[ExpectedClique], cases: Mapping[str, HealthCase], view: View) -> Comparison:
    """Return the expected and observed numbers of Ready pods of cliques."""
    expected_counts: dict[str, object] = {}
    observed_counts: dict[str, object] = {}
    for clique in cliques:
        podclique = view.get(CLIQUES, clique.name)
        expected_counts[clique.name] = cases[clique.template.name].ready
        observed_counts[clique.name] = value_or_absent(podclique, number(podclique, "status", "readyReplicas"))
    return expected_counts, observed_counts


def _compare_breaches(
    cliques: Iterable[ExpectedClique], cases: Mapping[str, HealthCase], view: View, *chosen: str
) -> Comparison:
    """Return the expected and observed statuses of the condition MinAvailableBreached for the cliques of the chosen
    cases."""
    expected_statuses: dict[str, object] = {}
    observed_statuses: dict[str, object] = {}
    for clique in cliques:
        if clique.template.name in chosen:
            expected_statuses[clique.name] = str(cases[clique.template.name].breached)
            observed_statuses[clique.name] = condition_is(view.get(CLIQUES, clique.name), BREACHED)
    return expected_statuses, observed_statuses
