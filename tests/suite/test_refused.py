"""Tests that a scene whose pods the cluster rejects is blocked with the API server's message. Needs no cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance.cluster.audit import AuditLog
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.refused import Refused
from conformance.suite.scenes.scene import SceneEnded
from kube.errors import ApiError
from tests.grove.test_refusals_of_a_cluster import QUOTA, STANDARD
from tests.history.scripted import Scripted
from tests.history.story import SPACE, Story
from tests.suite.test_case import Api, play


@pytest.fixture
def story() -> Story:
    return Story(Scripted())


def _audited(folder: Path, message: str, code: int = 403, namespace: str = SPACE) -> None:
    event = {
        "stage": "ResponseComplete",
        "verb": "create",
        "user": {"username": "operator"},
        "objectRef": {"resource": "pods", "namespace": namespace},
        "responseStatus": {"code": code, "message": message},
    }
    with (folder / "audit.log").open("a", encoding="utf-8") as log:
        log.write(json.dumps(event) + "\n")


def test_pods_that_the_cluster_refuses_block_the_scene_by_the_audit_log(story: Story, tmp_path: Path) -> None:
    case = play(story, audit=AuditLog(tmp_path / "audit.log"))
    _audited(tmp_path, STANDARD, namespace="another")
    with pytest.raises(SceneEnded):
        case.wait_for("pods", lambda view: False, 10)
    _audited(tmp_path, STANDARD)
    with pytest.raises(Blocked, match=r"has refused what the scene needs: .*violates PodSecurity") as blocked:
        case.wait_for("more pods", lambda view: False, 10)
    assert blocked.value.cause == "circumstances"


@pytest.mark.parametrize(
    ("resource", "document"),
    [
        ("events", {"note": QUOTA}),
        ("podcliques", {"status": {"lastErrors": [{"code": "ERR", "description": QUOTA}]}}),
        ("podcliquesets", {"status": {"conditions": [{"type": "x", "message": QUOTA}]}}),
    ],
)
def test_the_message_of_the_operator_decides_without_an_audit_log(
    story: Story, resource: str, document: dict[str, Any]
) -> None:
    story.record(resource, "s", document)
    with pytest.raises(Blocked, match="exceeded quota: house"):
        play(story).wait_for("pods", lambda view: False, 10)


@pytest.mark.parametrize("limited", [True, False])
def test_requests_above_a_limit_are_the_clusters_doing_where_it_adds_limits(story: Story, limited: bool) -> None:
    answer = 'Pod "a" is invalid: resources.requests: Invalid value: "4": must be less than or equal to cpu limit'
    refused = Refused(story.history, SPACE, None, (), [], lambda: limited)
    assert refused.by_cluster(answer) == limited


def test_a_quota_of_the_scene_itself_is_judged(story: Story) -> None:
    story.record("events", "s", {"note": QUOTA})
    case = play(story)
    case.acts.append(("create", {"kind": "ResourceQuota", "metadata": {"name": "house"}}))
    with pytest.raises(SceneEnded):
        case.wait_for("pods", lambda view: False, 10)


@pytest.mark.parametrize("word", [STANDARD, "is invalid"])
def test_a_write_of_the_suite_that_the_cluster_refuses_is_no_failure(story: Story, word: str, monkeypatch: Any) -> None:
    def refuse(*given: object) -> None:
        raise ApiError(403, "Forbidden", word, {}, None)

    monkeypatch.setattr(Api, "delete", refuse)
    case = play(story)
    with pytest.raises(Blocked) as blocked:
        case.delete("services", "s")
    assert blocked.value.cause == ("circumstances" if word == STANDARD else "implementation")
