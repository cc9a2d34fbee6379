"""What an implementation has not made fails once, and blocks whatever asks about it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformance.grove import workloads
from conformance.grove.expected import expected
from conformance.history.view import View
from conformance.suite.checks import ABSENT, Checks
from conformance.tests.core import gang_objects, objects, statuses
from tests.history.story import Story

IDS = (
    *(f"CORE-{number:03}" for number in range(1, 16)),
    "CORE-030",
    *(f"GANG-{number:03}" for number in (1, 2, 3, 4, 5, 23, 24)),
)


@pytest.fixture
def checks() -> Checks:
    return Checks("test", IDS, lambda check: None)


def outcomes(checks: Checks) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for check in checks.made:
        found.setdefault(check.id, set()).add(check.outcome)
    return found


def test_an_absent_object_blocks_and_the_others_are_judged(checks: Checks) -> None:
    checks.expect("CORE-004", "owners", {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": ABSENT, "c": 4})
    checks.expect("CORE-006", "services", {"a": 1, "b": 2}, {"a": 1, "b": ABSENT})
    checks.expect("CORE-015", "specs", {"a": 1}, {"a": ABSENT})
    checks.expect("CORE-014", "a spec", 1, ABSENT)
    assert [(c.id, c.outcome, c.expected, c.seen) for c in checks.made] == [
        ("CORE-004", "unknown", None, "there is no b"),
        ("CORE-004", "failed", {"a": 1, "c": 3}, {"a": 1, "c": 4}),
        ("CORE-006", "unknown", None, "there is no b"),
        ("CORE-006", "passed", {"a": 1}, {"a": 1}),
        ("CORE-015", "unknown", None, "there is no a"),
        ("CORE-014", "unknown", 1, "(no such object)"),
    ]


def test_of_a_set_without_objects_only_their_names_are_wrong(checks: Checks) -> None:
    story = Story()
    workload = dict(workloads.load("disaggregated", {}))
    wanted, name = expected(workload), str(workload["metadata"]["name"])
    story.tell("podcliquesets", name, {"metadata": {"finalizers": ["grove.io/podcliqueset.grove.io"]}})
    implementation = SimpleNamespace(scheduler_name="s")
    case: Any = SimpleNamespace(
        history=story.history,
        implementation=implementation,
        expect=lambda id, what, want, seen, at=None: checks.expect(id, what, want, seen),
    )
    view: View = story.history.view()
    objects.check_names_and_labels(case, wanted, view)
    objects.check_owners(case, wanted, view)
    objects.check_finalizers(case, wanted, view, name)
    objects.check_services(case, wanted, view)
    objects.check_specs(case, wanted, view)
    statuses.check_statuses(case, wanted, view, name)
    gang_objects.check_gangs(case, wanted, view)
    # The set itself exists, and says nothing about its replicas.
    assert {id for id, found in outcomes(checks).items() if "failed" in found} == {"CORE-001", "CORE-010", "CORE-013"}
    assert all("unknown" in found for id, found in outcomes(checks).items() if id not in ("CORE-001", "CORE-010"))
