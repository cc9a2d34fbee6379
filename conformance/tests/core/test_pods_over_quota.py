"""Tests with pods that exceed a quota. The clique reports the error, and the gang waits for the pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from conformance.grove import health, pods
from conformance.grove.expected import expected
from conformance.grove.fields import condition_is, items, name, text
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.composition import all_in_gangs, gang_of
from conformance.testing.disruption import CLIQUES, GANGS, SETS
from conformance.testing.observed import all_of
from conformance.testing.quotas import limit_pods
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.core import reports

SET_NAME, QUOTA_NAME = "s", "few"
FOREIGN_CONDITION: Mapping[str, Any] = {
    "type": "example.com/Noted",
    "status": "True",
    "reason": "Noted",
    "message": "by a passer-by",
    "lastTransitionTime": health.TIMESTAMP,
}


class PodsOverQuota(Scene):
    """A gang of four pods in three cliques, and a quota of three pods that is deleted later. Before the deletion,
    another client adds a condition to the gang's status."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        limit_pods(env, QUOTA_NAME, 3)
        workload = env.workload("chain", setName=SET_NAME, startup="CliqueStartupTypeAnyOrder", fronts=2, groups=1)
        cliques = list(expected(workload).cliques.values())
        self.cliques = [clique.name for clique in cliques]
        env.create(workload)
        failing_clique = env.wait_for("clique reports the refusal", reports.find_clique_with_error(self.cliques))
        env.wait_for("pods within the quota exist", _has_pods(self.cliques, 3))
        env.settle("set reports the refusal", reports.set_has_error(SET_NAME, QUOTA_NAME))
        env.settle("Warning event about the set", reports.set_has_warning(SET_NAME, QUOTA_NAME), resources=["events"])
        first_clique = self.cliques[0]
        env.settle("gang not initialized", _is_initialized(first_clique, "False"), 60)
        env.quiet(1, of=("pods", GANGS))  # cliques report each attempt
        env.mark("gang incomplete")

        env.wait_for("gang exists", all_in_gangs([first_clique]))
        gang = gang_of(env.history.view(), first_clique)
        self.gang = name(gang)
        status = {
            "phase": text(gang, "status", "phase"),
            "conditions": [*items(gang, "status", "conditions"), FOREIGN_CONDITION],
        }
        env.mark("before the foreign condition")
        env.patch(GANGS, self.gang, {"status": status}, subresource="status")
        env.delete("resourcequotas", QUOTA_NAME)
        env.settle("gang initialized", _is_initialized(first_clique, "True"), 60)
        ready_counts = [
            reports.has_counts(clique.name, {"readyReplicas": clique.template.replicas}) for clique in cliques
        ]
        env.settle("all pods ready", all_of(*ready_counts), 60)
        env.settle("clique reports no refusal", reports.has_no_errors(CLIQUES, failing_clique), 60)
        env.settle("set reports no refusal", reports.has_no_errors(SETS, SET_NAME), 60)


@requirement("CORE-025", reaches="clique reports the refusal")
def test_a_refusal_is_reported(run: Recorded[PodsOverQuota]) -> None:
    """Any of the cliques may lack a pod."""
    run.given("pods within the quota exist")


@requirement("CORE-046", reaches="set reports the refusal")
def test_the_set_says_why_its_pods_do_not_exist(run: Recorded[PodsOverQuota]) -> None:
    """The message must contain the name of the quota, which is part of the API server's reason. Its wording is not
    judged."""
    run.given("pods within the quota exist")


@requirement("CORE-047", reaches="Warning event about the set")
def test_a_refusal_is_an_event_of_the_set(run: Recorded[PodsOverQuota]) -> None:
    """There may be events about the clique as well."""
    run.given("pods within the quota exist")


@requirement("CORE-040", reaches=("clique reports no refusal", "set reports no refusal"))
def test_a_refusal_is_no_longer_reported_once_the_pods_exist(run: Recorded[PodsOverQuota]) -> None:
    """An error that is not removed would look like a current error."""
    run.given("clique reports the refusal", "all pods ready")


@requirement("GANG-010")
def test_an_incomplete_gang_keeps_its_gates(run: Recorded[PodsOverQuota]) -> None:
    """Whichever clique lacks a pod, the pods of all cliques keep their gates."""
    view = run.at("gang incomplete")
    gang_pods = [pod for clique in run.scene.cliques for pod in predicates.pods_of(view, clique)]
    run.expect(
        "pods of the incomplete gang without a gate", [], [name(pod) for pod in gang_pods if not pods.is_gated(pod)]
    )


@requirement("GANG-021", reaches=("gang not initialized", "gang initialized"))
def test_a_gang_is_initialized_once_it_is_complete(run: Recorded[PodsOverQuota]) -> None: ...


@requirement("GANG-022")
def test_conditions_of_others_survive(run: Recorded[PodsOverQuota]) -> None:
    records = run.between("before the foreign condition", "clique reports no refusal").records(GANGS, run.scene.gang)
    first_index = next((index for index, record in enumerate(records) if _has_foreign_condition(record.object)), 0)
    records_without_condition = [
        str(record) for record in records[first_index:] if not _has_foreign_condition(record.object)
    ]
    run.expect("states in which the gang has lost the condition", [], records_without_condition)


test_invariants = invariants(PodsOverQuota, "INV-001", "INV-003", "INV-005")


def _has_foreign_condition(gang: Mapping[str, Any] | None) -> bool:
    return condition_is(gang, str(FOREIGN_CONDITION["type"])) == "True"


@predicate
def _is_initialized(view: View, clique: str, status: str) -> bool | Unmet:
    """The gang of a clique has the condition Initialized with this status."""
    reported = condition_is(gang_of(view, clique), "Initialized")
    return reported == status or Unmet(f"gang of {clique}: Initialized is {reported or 'absent'}")


@predicate
def _has_pods(view: View, cliques: Iterable[str], count: int) -> bool | Unmet:
    """These cliques together have this number of pods."""
    pod_count = sum(len(predicates.pods_of(view, clique)) for clique in cliques)
    return pod_count == count or Unmet(f"there are {pod_count} pods, not {count}")
