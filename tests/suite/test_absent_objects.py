"""Tests that an object which the implementation has not created fails once, and blocks all checks about the object."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conformance.grove import workloads
from conformance.grove.expected import expected
from conformance.invariants import judge
from conformance.suite.outcomes.checks import ABSENT, Blocked, CheckFailed, Checks
from conformance.suite.registry.requirement import MARK
from conformance.suite.scenes.dry_run import Reply
from conformance.suite.scenes.recorded import Recorded
from conformance.suite.scenes.scene import InvariantResult, SceneRun, Step
from conformance.testing.accepted_pods import AcceptedPods
from conformance.tests.core import test_gangs_of_a_set, test_managed_objects, test_pods_of_a_set, test_ready_statuses
from conformance.tests.core.ready_set import PODS_READY, STATUSES_AT_REST, ReadyDisaggregatedSet
from tests.history.story import SPACE, Story

SET_FINALIZER = "grove.io/podcliqueset.grove.io"

IDS = (
    *(f"CORE-{number:03}" for number in range(1, 16)),
    "CORE-030",
    "CORE-045",
    *(f"CORE-{number:03}" for number in range(32, 38)),
    *(f"GANG-{number:03}" for number in (1, 2, 3, 4, 5, 23, 24, 26)),
)


@pytest.fixture
def checks() -> Checks:
    return Checks("test", IDS, lambda check: None)


def test_an_absent_object_blocks_its_checks_and_other_objects_are_judged(checks: Checks) -> None:
    checks.expect("CORE-004", "owners", {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": ABSENT, "c": 4})
    checks.expect("CORE-006", "services", {"a": 1, "b": 2}, {"a": 1, "b": ABSENT})
    checks.expect("CORE-015", "specs", {"a": 1}, {"a": ABSENT})
    checks.expect("CORE-014", "a spec", 1, ABSENT)
    assert [(c.id, c.outcome, c.expected, c.seen) for c in checks.recorded] == [
        ("CORE-004", "unknown", None, "there is no b"),
        ("CORE-004", "failed", {"a": 1, "c": 3}, {"a": 1, "c": 4}),
        ("CORE-006", "unknown", None, "there is no b"),
        ("CORE-006", "passed", {"a": 1}, {"a": 1}),
        ("CORE-015", "unknown", None, "there is no a"),
        ("CORE-014", "unknown", 1, "(no such object)"),
    ]


def test_a_set_without_objects_fails_only_the_checks_of_their_names() -> None:
    by_id = dict(outcomes_by_requirement(SetWithoutObjects().play()))
    assert set(IDS) == set(by_id)
    # The set itself exists, but its objects and pods are missing, and it publishes no selector.
    failed = {id for id, outcomes in by_id.items() if "failed" in outcomes}
    assert failed == {"CORE-001", "CORE-007", "CORE-013", "CORE-032"}
    assert all(
        outcomes & {"unknown", "blocked"} for id, outcomes in by_id.items() if id not in ("CORE-001", "CORE-032")
    )
    blocked = {id for id, outcomes in by_id.items() if "blocked" in outcomes}
    assert blocked == {f"CORE-{number:03}" for number in (10, 11, 12, 30)}, "no pods are Ready"


class SetWithoutObjects(ReadyDisaggregatedSet):
    """A set for which the implementation has created nothing, but whose state is judged."""

    def play(self) -> SceneRun:  # type: ignore[override]
        story, workload = Story(), dict(workloads.load("disaggregated", {}))
        self.namespace, self.scheduler = SPACE, "s"
        self.expected_names = self.expected = expected(workload)
        cliques = workload["spec"]["template"]["cliques"]
        self.accepted_pods = AcceptedPods(
            {clique["name"]: Reply(201, {"spec": clique["spec"]["podSpec"]}) for clique in cliques}
        )
        self.set_name = str(workload["metadata"]["name"])
        last = story.record("podcliquesets", self.set_name, {"metadata": {"finalizers": [SET_FINALIZER]}})
        steps = {
            step: Step(step, last.seq, None, last.at, unmet="it is not")
            for step in ("all pods exist", "set available", PODS_READY, STATUSES_AT_REST)
        }
        verdicts = {
            result.id: InvariantResult(result.statement, result.holds, str(result), None)
            for result in judge(story.history)
        }
        return SceneRun("ready", self, story.history, steps, verdicts)


def outcomes_by_requirement(scene_run: SceneRun) -> Iterator[tuple[str, set[str]]]:
    """Yield each requirement that tests of the scene judge, with the outcomes of its checks."""
    for module in (test_managed_objects, test_pods_of_a_set, test_gangs_of_a_set, test_ready_statuses):
        for test in vars(module).values():
            ids = [id for mark in getattr(test, "pytestmark", ()) if mark.name == MARK for id in mark.args]
            for id in ids:
                checks = Checks("test", ids, lambda check: None)
                end_outcome = ""
                try:
                    test(Recorded(scene_run, scene_run.scene, checks))
                except (Blocked, CheckFailed) as error:
                    end_outcome = "blocked" if isinstance(error, Blocked) else "failed"
                yield id, {check.outcome for check in checks.recorded} | ({end_outcome} - {""})
