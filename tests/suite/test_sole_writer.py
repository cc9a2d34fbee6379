"""Tests that writes of other clients to the sets and nodes of a test are reported. Needs no cluster."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.cluster.nodes import POOL
from conformance.suite.outcomes import ledger
from conformance.suite.outcomes.checks import CheckFailed, Checks
from conformance.suite.scenes.sole_writer import SoleWriter
from tests.history.story import Story

SENT_SET = {
    "kind": "PodCliqueSet",
    "spec": {"replicas": 2, "template": {"terminationDelay": "60m", "cliques": [{"a": 1}]}},
}
STORED_SET = {
    "replicas": 2,
    "template": {"terminationDelay": "1h0m0s", "cliques": [{"a": 1}], "cliqueStartupType": "x"},
}


def node(gpus: str = "8", **spec: Any) -> dict[str, Any]:
    metadata = {"name": "n1", "labels": {POOL: "pool", "rack": "r1"}}
    return {"metadata": metadata, "spec": spec, "status": {"allocatable": {"nvidia.com/gpu": gpus, "cpu": "1"}}}


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def sole() -> SoleWriter:
    return SoleWriter("pool", compares_nodes=True)


def create_set(story: Story, sole: SoleWriter, stored: dict[str, Any] = STORED_SET) -> None:
    uid = story.record("podcliquesets", "s", {"spec": stored}).uid
    sole.created(SENT_SET, {"metadata": {"name": "s", "uid": uid}, "spec": stored})


def foreign(story: Story, sole: SoleWriter) -> str:
    return sole.foreign([story.history])


def with_pod(replicas: int = 2, **pod: Any) -> dict[str, Any]:
    """Return the spec of a set with one clique, whose pods have this spec."""
    return {"replicas": replicas, "template": {"cliques": [{"name": "a", "spec": {"podSpec": pod}}]}}


def test_changes_by_the_suite_and_by_admission_are_accepted(story: Story, sole: SoleWriter) -> None:
    create_set(story, sole)
    sole.nodes_created([node()])
    story.record("nodes", "n1", node())
    scaled = {**STORED_SET, "replicas": 3}
    sole.patched("podcliquesets", "s", {"spec": {"replicas": 3}}, {"metadata": {"uid": "uid-1"}, "spec": scaled})
    sole.patched("podcliquesets", "s", {"metadata": {"labels": {}}}, {"metadata": {"uid": "uid-1"}, "spec": scaled})
    story.record("podcliquesets", "s", {"spec": {**scaled, "added": "by a default"}})
    sole.patched("nodes", "n1", {"spec": {"unschedulable": True}}, {})
    story.record("nodes", "n1", node(unschedulable=True))
    sole.deleted("podcliquesets", "s")
    story.delete("podcliquesets", "s")
    assert foreign(story, sole) == ""


def test_a_scale_to_zero_is_the_suites(story: Story, sole: SoleWriter) -> None:
    create_set(story, sole)
    answer = {"kind": "Scale", "metadata": {"name": "s", "uid": "uid-1"}, "spec": {}}
    sole.patched("podcliquesets", "s", {"spec": {"replicas": 0}}, answer)
    story.record("podcliquesets", "s", {"spec": {**STORED_SET, "replicas": 0}})
    assert foreign(story, sole) == ""


SCRATCH: dict[str, Any] = {
    "name": "scratch",
    "ephemeral": {"volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}}},
}
PRUNED_SCRATCH: dict[str, Any] = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"metadata": {}}}}
"""The volume as the API server stores it with the CRDs of the Go operator."""


@pytest.mark.parametrize("stored", [{**STORED_SET, "replicas": 1}, {**STORED_SET, "template": {"cliques": []}}])
def test_a_set_that_is_stored_differently_than_it_was_sent(
    story: Story, sole: SoleWriter, stored: dict[str, Any]
) -> None:
    create_set(story, sole, stored)
    assert "PodCliqueSet s: spec." in foreign(story, sole) and "was stored as" in foreign(story, sole)


def container(**resources: Any) -> dict[str, Any]:
    return {"name": "main", "image": "x:1", "resources": {"requests": resources}}


@pytest.mark.parametrize(
    ("sent", "stored", "other"),
    [
        (
            with_pod(containers=[container(cpu="0.5", gpu=1)], nodeSelector={}),
            with_pod(containers=[{**container(cpu="500m", gpu="1"), "ports": []}], restartPolicy="Always"),
            "",
        ),
        (with_pod(containers=[container(gpu="8")]), with_pod(containers=[container(gpu="1")]), "gpu"),
        (with_pod(containers=[container(gpu="8")]), with_pod(containers=[{"name": "main", "image": "x:1"}]), "gpu"),
        (with_pod(nodeSelector={"rack": "r1"}), with_pod(nodeSelector={"rack": "r2"}), "nodeSelector.rack"),
        (with_pod(volumes=[SCRATCH]), with_pod(volumes=[PRUNED_SCRATCH]), ""),
        ({"template": {"terminationDelay": "90s"}}, {"template": {"terminationDelay": "1m30s"}}, ""),
        ({"template": {"terminationDelay": "90s"}}, {"template": {"terminationDelay": "4h0m0s"}}, "terminationDelay"),
    ],
)
def test_the_spec_of_a_set_is_compared_by_its_meaning(
    story: Story, sole: SoleWriter, sent: dict[str, Any], stored: dict[str, Any], other: str
) -> None:
    uid = story.record("podcliquesets", "s", {"spec": stored}).uid
    answer = {"kind": "PodCliqueSet", "metadata": {"name": "s", "uid": uid}, "spec": stored}
    sole.created({"kind": "PodCliqueSet", "spec": sent}, answer)
    assert foreign(story, sole) == "" if not other else f"{other} was stored as" in foreign(story, sole)


POD: dict[str, Any] = {
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [container(gpu="8")], "tolerations": []},
}
QUOTA = {"kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": 3, "requests.cpu": "2000m"}}}
CLASS = {"kind": "PriorityClass", "metadata": {"name": "c", "labels": {"a": "b"}}, "value": 7}
GANG = {
    "kind": "PodGang",
    "metadata": {"name": "g"},
    "spec": {"podgroups": [{"name": "a", "minReplicas": 4}], "new": 1},
}
SIDECAR, TOLERATION = {"name": "mesh"}, {"key": "x"}


@pytest.mark.parametrize(
    ("sent", "change", "other"),
    [
        (POD, {"spec": {"containers": [SIDECAR, *POD["spec"]["containers"]], "tolerations": [TOLERATION]}}, ""),
        (POD, {"spec": {"containers": [container(gpu="1")]}}, "Pod p: spec.containers[0] was stored as"),
        (QUOTA, {"spec": {"hard": {"pods": "3", "requests.cpu": "2"}}}, ""),
        (QUOTA, {"spec": {"hard": {"pods": "30"}}}, "ResourceQuota q: spec.hard.pods was stored as '30'"),
        (CLASS, {"value": 8}, "PriorityClass c: value was stored as 8"),
        (CLASS, {"metadata": {"name": "c", "labels": {"a": "c"}}}, "PriorityClass c: metadata.labels.a was stored as"),
        (GANG, {"spec": {"podgroups": [{"name": "a", "minReplicas": 4}]}}, ""),  # its CRD may lack a field
        (GANG, {"spec": {"podgroups": [{"name": "a", "minReplicas": 1}]}}, "minReplicas was stored as 1"),
        ({"kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}, {"stringData": None}, ""),
    ],
)
def test_other_objects_of_the_suite_are_stored_as_sent(
    story: Story, sole: SoleWriter, sent: dict[str, Any], change: dict[str, Any], other: str
) -> None:
    sole.created(sent, {**sent, **change})
    assert foreign(story, sole) == "" if not other else other in foreign(story, sole)


def test_a_patch_that_is_stored_differently(story: Story, sole: SoleWriter) -> None:
    raised = {"spec": {"hard": {"pods": "5"}}}
    sole.patched("resourcequotas", "q", raised, {**QUOTA, **raised})
    assert foreign(story, sole) == ""
    sole.patched("resourcequotas", "q", raised, QUOTA)
    assert "ResourceQuota q: spec.hard.pods was stored as 3" in foreign(story, sole)


def test_a_spec_that_another_client_changes(story: Story, sole: SoleWriter) -> None:
    create_set(story, sole)
    story.record("podcliquesets", "s", {"spec": {**STORED_SET, "replicas": 1}})
    assert "somebody else has changed spec.replicas to 1" in foreign(story, sole)


def test_a_spec_that_another_client_changes_back(story: Story, sole: SoleWriter) -> None:
    create_set(story, sole)
    scaled = {**STORED_SET, "replicas": 3}
    sole.patched("podcliquesets", "s", {"spec": {"replicas": 3}}, {"metadata": {"uid": "uid-1"}, "spec": scaled})
    story.record("podcliquesets", "s", {"spec": scaled})
    story.record("podcliquesets", "s", {"spec": STORED_SET})
    assert "somebody else has changed spec.replicas to 2" in foreign(story, sole)


def test_a_set_that_another_client_deletes_and_recreates(story: Story, sole: SoleWriter) -> None:
    create_set(story, sole)
    story.delete("podcliquesets", "s")
    assert "PodCliqueSet s was deleted by somebody else" in foreign(story, sole)
    sole.deleted("podcliquesets", "s")
    story.record("podcliquesets", "s", {"spec": STORED_SET})
    assert "PodCliqueSet s was made by somebody else" in foreign(story, sole)


@pytest.mark.parametrize(
    ("now", "subject"),
    [
        (node("80"), "allocatable"),
        (node(unschedulable=True), "schedulability"),
        ({**node(), "metadata": {"labels": {POOL: "pool", "rack": "r2"}}}, "labels"),
    ],
)
def test_a_node_that_another_client_changes(story: Story, sole: SoleWriter, now: dict[str, Any], subject: str) -> None:
    sole.nodes_created([node()])
    story.record("nodes", "n1", node())
    story.record("nodes", "n1", now)
    assert f"node n1: somebody else has changed its {subject}" in foreign(story, sole)
    elsewhere = SoleWriter("pool")  # where other programs may simulate nodes
    elsewhere.nodes_created([node()])
    assert foreign(story, elsewhere) == ""


def test_a_node_that_admission_changes_while_kwok_writes_it(story: Story, sole: SoleWriter) -> None:
    sole.nodes_created([node()])
    story.record("nodes", "n1", node())
    story.record("nodes", "n1", node("100"))  # the audit log names only kwok-admin
    assert "node n1: somebody else has changed its allocatable" in foreign(story, sole)


def test_a_taint_that_another_client_removes(story: Story, sole: SoleWriter) -> None:
    sole.nodes_created([node(taints=[{"key": POOL, "effect": "NoSchedule"}])])
    story.record("nodes", "n1", node())
    assert "somebody else has changed its taints" in foreign(story, sole)


def test_a_node_that_another_client_adds_to_the_pool(story: Story, sole: SoleWriter) -> None:
    story.record("nodes", "mine", node())
    assert "node mine was made by somebody else" in foreign(story, sole)


def test_only_the_kubelet_may_write_pod_statuses(story: Story, sole: SoleWriter) -> None:
    waits = {"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False"}]}}
    ready = {"status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "True"}]}}
    versions = [
        story.record("pods", "a", document).version for document in ({"status": {"phase": "Pending"}}, waits, ready)
    ]
    assert foreign(story, sole) == ""
    story.history.origins.statuses = {versions[1]: "gang-scheduler"}
    assert foreign(story, sole) == ""
    story.history.origins.statuses = {versions[2]: "operator"}
    assert "Ready of pod a was written by the user operator" in foreign(story, sole)
    story.record("pods", "b", waits)
    hidden = story.record("pods", "b", ready, listed=True).version
    story.history.origins.statuses = {hidden: "gang-scheduler"}
    assert foreign(story, sole) == ""


def test_a_test_whose_premises_are_falsified_passes_nothing() -> None:
    recorded: list[ledger.Check] = []
    checks = Checks("test", ["AA-001", "AA-002", "INV-010"], recorded.append)
    checks.passed("AA-001", "right")
    checks.expect("AA-002", "wrong", 1, 2)
    checks.spoil("only the suite", "somebody else")
    assert [(check.id, check.outcome) for check in recorded] == [
        ("AA-001", "passed"),
        ("AA-002", "failed"),
        ("AA-001", "unknown"),
        ("INV-010", "unknown"),
    ]
    with pytest.raises(CheckFailed):
        checks.finish()
