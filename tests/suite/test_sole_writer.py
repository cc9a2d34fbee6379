"""Sets and nodes of a test that somebody else than the suite writes. No cluster."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.cluster.nodes import POOL
from conformance.suite.outcomes import ledger
from conformance.suite.outcomes.checks import CheckFailed, Checks
from conformance.suite.scenes.sole_writer import SoleWriter
from tests.history.story import Story

SENT = {"kind": "PodCliqueSet", "spec": {"replicas": 2, "template": {"terminationDelay": "60m", "cliques": [{"a": 1}]}}}
STORED = {"replicas": 2, "template": {"terminationDelay": "1h0m0s", "cliques": [{"a": 1}], "cliqueStartupType": "x"}}


def node(gpus: str = "8", **spec: Any) -> dict[str, Any]:
    metadata = {"name": "n1", "labels": {POOL: "pool", "rack": "r1"}}
    return {"metadata": metadata, "spec": spec, "status": {"allocatable": {"nvidia.com/gpu": gpus, "cpu": "1"}}}


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def sole() -> SoleWriter:
    return SoleWriter("pool")


def made(story: Story, sole: SoleWriter, stored: dict[str, Any] = STORED) -> None:
    uid = story.tell("podcliquesets", "s", {"spec": stored}).uid
    sole.created(SENT, {"metadata": {"name": "s", "uid": uid}, "spec": stored})


def foreign(story: Story, sole: SoleWriter, changed: tuple[str, ...] = ("n1",)) -> str:
    story.history.origins.changed_nodes = list(changed)
    return sole.foreign([story.history])


def test_what_the_suite_asks_for_and_what_admission_adds_is_nobody_elses(story: Story, sole: SoleWriter) -> None:
    made(story, sole)
    sole.fleet([node()])
    story.tell("nodes", "n1", node())
    more = {**STORED, "replicas": 3}
    sole.patched("podcliquesets", "s", {"spec": {"replicas": 3}}, {"metadata": {"uid": "uid-1"}, "spec": more})
    sole.patched("podcliquesets", "s", {"metadata": {"labels": {}}}, {"metadata": {"uid": "uid-1"}, "spec": more})
    story.tell("podcliquesets", "s", {"spec": {**more, "added": "by a default"}})
    sole.patched("nodes", "n1", {"spec": {"unschedulable": True}}, {})
    story.tell("nodes", "n1", node(unschedulable=True))
    sole.deleted("podcliquesets", "s")
    story.gone("podcliquesets", "s")
    assert foreign(story, sole) == ""


def test_a_scale_to_zero_is_the_suites(story: Story, sole: SoleWriter) -> None:
    made(story, sole)
    answer = {"kind": "Scale", "metadata": {"name": "s", "uid": "uid-1"}, "spec": {}}
    sole.patched("podcliquesets", "s", {"spec": {"replicas": 0}}, answer)
    story.tell("podcliquesets", "s", {"spec": {**STORED, "replicas": 0}})
    assert foreign(story, sole) == ""


@pytest.mark.parametrize("stored", [{**STORED, "replicas": 1}, {**STORED, "template": {"cliques": []}}])
def test_a_set_that_is_stored_otherwise_than_it_was_sent(
    story: Story, sole: SoleWriter, stored: dict[str, Any]
) -> None:
    made(story, sole, stored)
    assert "PodCliqueSet s: spec." in foreign(story, sole) and "was stored as" in foreign(story, sole)


def test_a_spec_that_somebody_else_changes(story: Story, sole: SoleWriter) -> None:
    made(story, sole)
    story.tell("podcliquesets", "s", {"spec": {**STORED, "replicas": 1}})
    assert "somebody else has changed spec.replicas to 1" in foreign(story, sole)


def test_a_spec_that_somebody_else_changes_back(story: Story, sole: SoleWriter) -> None:
    made(story, sole)
    more = {**STORED, "replicas": 3}
    sole.patched("podcliquesets", "s", {"spec": {"replicas": 3}}, {"metadata": {"uid": "uid-1"}, "spec": more})
    story.tell("podcliquesets", "s", {"spec": more})
    story.tell("podcliquesets", "s", {"spec": STORED})
    assert "somebody else has changed spec.replicas to 2" in foreign(story, sole)


def test_a_set_that_somebody_else_deletes_and_makes_again(story: Story, sole: SoleWriter) -> None:
    made(story, sole)
    story.gone("podcliquesets", "s")
    assert "PodCliqueSet s was deleted by somebody else" in foreign(story, sole)
    sole.deleted("podcliquesets", "s")
    story.tell("podcliquesets", "s", {"spec": STORED})
    assert "PodCliqueSet s was made by somebody else" in foreign(story, sole)


@pytest.mark.parametrize(
    ("now", "what"),
    [
        (node("80"), "allocatable"),
        (node(unschedulable=True), "schedulability"),
        ({**node(), "metadata": {"labels": {POOL: "pool", "rack": "r2"}}}, "labels"),
    ],
)
def test_a_node_that_somebody_else_changes(story: Story, sole: SoleWriter, now: dict[str, Any], what: str) -> None:
    sole.fleet([node()])
    story.tell("nodes", "n1", node())
    story.tell("nodes", "n1", now)
    assert f"node n1: somebody else has changed its {what}" in foreign(story, sole)
    assert foreign(story, sole, changed=()) == ""  # a component of the cluster


def test_a_taint_that_somebody_else_takes_away(story: Story, sole: SoleWriter) -> None:
    sole.fleet([node(taints=[{"key": POOL, "effect": "NoSchedule"}])])
    story.tell("nodes", "n1", node())
    assert "somebody else has changed its taints" in foreign(story, sole)


def test_a_node_that_somebody_else_adds_to_the_pool(story: Story, sole: SoleWriter) -> None:
    story.tell("nodes", "mine", node())
    assert "node mine was made by somebody else" in foreign(story, sole)


def test_how_a_pod_fares_is_for_the_kubelet_to_say(story: Story, sole: SoleWriter) -> None:
    waits = {"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}}
    ready = {"status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]}}
    versions = [story.tell("pods", "a", told).version for told in ({"status": {"phase": "Pending"}}, waits, ready)]
    assert foreign(story, sole) == ""
    story.history.origins.statuses = {versions[1]: "gang-scheduler"}
    assert foreign(story, sole) == ""
    story.history.origins.statuses = {versions[2]: "operator"}
    assert "Ready of pod a was written by the user operator" in foreign(story, sole)
    story.tell("pods", "b", waits)
    hidden = story.tell("pods", "b", ready, listed=True).version
    story.history.origins.statuses = {hidden: "gang-scheduler"}
    assert foreign(story, sole) == ""


def test_a_test_whose_premises_are_falsified_passes_nothing() -> None:
    told: list[ledger.Check] = []
    checks = Checks("test", ["AA-001", "AA-002", "INV-010"], told.append)
    checks.passed("AA-001", "right")
    checks.expect("AA-002", "wrong", 1, 2)
    checks.spoil("only the suite", "somebody else")
    assert [(check.id, check.outcome) for check in told] == [
        ("AA-001", "passed"),
        ("AA-002", "failed"),
        ("AA-001", "unknown"),
        ("INV-010", "unknown"),
    ]
    with pytest.raises(CheckFailed):
        checks.finish()
