"""Tests that a condition or a taint excuses a deletion only if the audit log shows a permitted writer.

Needs no cluster.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance import invariants
from conformance.history.query import History
from conformance.suite.scenes import writers
from tests.history.story import SPACE, Story
from tests.history.test_cause_rule import pod_options, record_ready_gang
from tests.suite.test_premises import COLLECTOR, KWOK, REAPER, SUITE, TOKEN, line, log

EVICTOR = ("system:serviceaccount:kube-system:taint-eviction-controller", "kube-controller-manager/v1.36.3")
SCHEDULER = ("gang-scheduler", "kube-controller-manager/v1.36.3")
DISRUPTION = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}


@pytest.fixture
def story() -> Story:
    created = Story()
    record_ready_gang(created)
    return created


def disrupt(story: Story) -> None:
    """Delete a Ready pod that has the condition DisruptionTarget."""
    conditions = [{"type": "Ready", "status": "True"}, DISRUPTION]
    document: dict[str, Any] = dict(story.history.view().get("pods", "a3") or {})
    metadata = {**document["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    story.record("pods", "a3", {**document, "metadata": metadata, "status": {"conditions": conditions}})


def verdict(history: History) -> bool | None:
    [result] = invariants.judge(history, rule_ids=["INV-009"])
    return result.holds


def deletion(writer: tuple[str, str], credential: str | None = None) -> str:
    return line(writer, "delete", "pods", "a3", SPACE, credential=credential)


def test_without_an_audit_log_the_condition_is_believed(story: Story) -> None:
    disrupt(story)
    assert verdict(story.history) is True


@pytest.mark.parametrize(
    ("lines", "holds"),
    [
        ([deletion(EVICTOR), deletion(KWOK)], True),
        ([deletion(REAPER), deletion(KWOK)], False),
        ([deletion(SCHEDULER), deletion(KWOK)], False),
        ([deletion(COLLECTOR), deletion(KWOK)], False),
        ([line(REAPER, "create", "pods/eviction", "a3", SPACE), deletion(KWOK)], False),
        ([line(REAPER, "create", *TOKEN, issued="JTI=b"), deletion(EVICTOR, "JTI=b")], False),
        ([deletion(EVICTOR, "")], False),
        ([line(REAPER, "create", *TOKEN, issued="JTI=b"), deletion(EVICTOR)], True),
    ],
    ids=[
        "a controller",
        "the operator",
        "a scheduler",
        "the collector",
        "an eviction",
        "a token",
        "a token of a Secret",
        "another token",
    ],
)
def test_a_disruption_is_believed_if_a_component_has_evicted_the_pod(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], holds: bool
) -> None:
    monkeypatch.setattr(writers, "MAX_AUDIT_LAG_SECONDS", 0.0)
    disrupt(story)
    writers.note_writers(story.history, log(tmp_path, *lines), 0)
    assert verdict(story.history) is holds
    story.history.save(tmp_path / "history.jsonl")
    assert verdict(History.load(tmp_path / "history.jsonl")) is holds


@pytest.mark.parametrize(("writer", "holds"), [(EVICTOR, True), (SUITE, True), (REAPER, False)])
def test_a_node_that_others_have_written_to_excuses_nothing(
    story: Story, tmp_path: Path, writer: tuple[str, str], holds: bool
) -> None:
    taints = [{"key": "x", "effect": "NoExecute"}]
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    story.record("nodes", "n1", {"spec": {"taints": taints}, "status": ready})
    story.pod("a3", **pod_options(node="n1", ready=True, terminating=True))
    writers.note_writers(story.history, log(tmp_path, line(writer, "patch", "nodes", "n1")), 0)
    assert verdict(story.history) is not False if holds else verdict(story.history) is False


def test_the_writer_of_a_pod_status_is_identified_by_the_version(story: Story, tmp_path: Path) -> None:
    def status(writer: tuple[str, str], version: str, credential: str | None = None) -> str:
        answer = {"kind": "Pod", "metadata": {"name": "a3", "resourceVersion": version}}
        event = json.loads(line(writer, "patch", "pods/status", "a3", SPACE, credential=credential))
        return json.dumps(event | {"responseObject": answer}) + "\n"

    token = line(REAPER, "create", *TOKEN, issued="JTI=b")
    borrowed = status(COLLECTOR, "202", ""), status(COLLECTOR, "203", "JTI=b")
    writers.note_writers(story.history, log(tmp_path, token, status(REAPER, "200"), status(KWOK, "201"), *borrowed), 0)
    unknown = f"unknown (as {COLLECTOR[0]})"
    assert story.history.origins.statuses == {"200": "operator", "202": unknown, "203": "operator"}


@pytest.mark.parametrize(("sent", "forged"), [("False", []), (None, ["operator"])])
def test_a_write_that_changes_nothing_is_not_the_one_that_produced_the_version(
    story: Story, tmp_path: Path, sent: str | None, forged: list[str]
) -> None:
    record = story.record("pods", "a3", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}})
    answer = {"kind": "Pod", "metadata": {"name": "a3", "resourceVersion": record.version}}
    conditions = [{"type": "Ready", "status": sent}] if sent else []
    requests = [(KWOK, conditions), (REAPER, [{"type": "PodScheduled", "status": "True"}])]
    lines = [
        json.dumps(
            json.loads(line(writer, "patch", "pods/status", "a3", SPACE))
            | {"requestObject": {"status": {"conditions": parts}}, "responseObject": answer}
        )
        + "\n"
        for writer, parts in requests
    ]
    writers.note_writers(story.history, log(tmp_path, *lines), 0)
    assert [*story.history.origins.statuses.values()] == forged


def test_a_status_that_is_stored_differently_than_kwok_sent_it(story: Story, tmp_path: Path) -> None:
    record = story.record("pods", "a3", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    answer = {"kind": "Pod", "metadata": {"name": "a3", "resourceVersion": record.version}}
    sent = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    event = json.loads(line(KWOK, "patch", "pods/status", "a3", SPACE))
    bodies = {"requestObject": sent, "responseObject": answer}
    writers.note_writers(story.history, log(tmp_path, json.dumps(event | bodies) + "\n"), 0)
    assert story.history.origins.altered == [f"Ready of pod a3 was stored otherwise than it was sent ({record})"]
    dry = {"requestURI": "/api/v1/x?dryRun=All"}
    writers.note_writers(story.history, log(tmp_path, json.dumps(event | bodies | dry) + "\n"), 0)
    assert story.history.origins.altered == []


@pytest.mark.parametrize("verb", ["patch", "delete"])
@pytest.mark.parametrize("resource", ["resourcequotas", "limitranges"])
def test_limits_of_a_test_that_another_client_changes(story: Story, tmp_path: Path, verb: str, resource: str) -> None:
    lines = [
        line(writer, verb, resource, "q", space) for writer, space in ((REAPER, SPACE), (SUITE, SPACE), (REAPER, "x"))
    ]
    writers.note_writers(story.history, log(tmp_path, *lines), 0)
    assert story.history.origins.altered == [f"{resource} q of the test: the user operator asked to {verb} it"]
