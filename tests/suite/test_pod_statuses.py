"""Tests that changes by admission to a pod status that KWOK or the suite writes are reported. Needs no cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conformance.suite.scenes import pod_statuses
from tests.history.story import Story

TIME = "2026-01-01T00:00:00"
MAIN = {"name": "main", "ready": True, "started": True, "restartCount": 0, "image": "x"}
RUNNING = {**MAIN, "state": {"running": {"startedAt": f"{TIME}.5Z"}, "waiting": None, "terminated": None}}


def conditions(**statuses: str) -> list[dict[str, str]]:
    return [{"type": condition_type, "status": status} for condition_type, status in statuses.items()]


SENT_STATUS = {
    "phase": "Running",
    "startTime": f"{TIME}.25Z",
    "conditions": conditions(Ready="True"),
    "containerStatuses": [RUNNING],
}
STORED_STATUS = {
    **SENT_STATUS,
    "startTime": f"{TIME}Z",
    "conditions": conditions(PodScheduled="True", Ready="True"),
    "containerStatuses": [{**MAIN, "imageID": "", "state": {"running": {"startedAt": f"{TIME}Z"}}}],
}
PENDING_STATUS = {"phase": "Pending", "conditions": conditions(Ready="False")}


def altered(sent: dict[str, Any], stored: dict[str, Any], *later: dict[str, Any]) -> list[str]:
    """Return the parts of a status that differ from every request with its resource version: `sent` and `later`."""
    story = Story()
    story.record("pods", "a", {"status": {"phase": "Pending"}})
    version = story.record("pods", "a", {"status": stored}).version
    bodies = [json.dumps({"status": status}).encode() for status in (sent, *later)]
    return [message.partition(" of ")[0] for message in pod_statuses.altered(story.history, {version: bodies})]


def test_a_status_that_is_stored_as_sent_is_accepted() -> None:
    assert altered(SENT_STATUS, STORED_STATUS) == []
    assert altered({"conditions": [{"type": "x", "$patch": "delete"}]}, {"phase": "Pending"}) == []
    assert altered({"conditions": conditions(PodScheduled="False")}, {"phase": "Pending"}) == []
    assert altered({"conditions": [{"type": "Ready", "reason": "x"}]}, {"phase": "Pending"}) == []
    assert altered({}, STORED_STATUS, SENT_STATUS) == []  # the first request changed nothing
    assert altered({**SENT_STATUS, "startTime": "2026-01-01T14:00:00.123456789+14:00"}, STORED_STATUS) == []


@pytest.mark.parametrize(
    ("sent", "stored", "parts"),
    [
        (PENDING_STATUS, {**PENDING_STATUS, "conditions": conditions(Ready="True")}, ["Ready"]),
        (SENT_STATUS, {**STORED_STATUS, "conditions": conditions(Ready="False")}, ["Ready"]),
        ({"conditions": conditions(PodScheduled="True")}, {"phase": "Running"}, ["phase"]),
        (SENT_STATUS, {**STORED_STATUS, "podIP": "10.0.0.9"}, ["podIP"]),
        (SENT_STATUS, {**STORED_STATUS, "startTime": "2025-01-01T00:00:00Z"}, ["startTime"]),
        (SENT_STATUS, {**STORED_STATUS, "containerStatuses": [{**RUNNING, "restartCount": 3}]}, ["containerStatuses"]),
        (
            SENT_STATUS,
            {**STORED_STATUS, "containerStatuses": [{**RUNNING, "state": {"terminated": {}}}]},
            ["containerStatuses"],
        ),
        (SENT_STATUS, {**STORED_STATUS, "containerStatuses": []}, ["containerStatuses"]),
    ],
)
def test_a_status_that_is_stored_differently_is_named(
    sent: dict[str, Any], stored: dict[str, Any], parts: list[str]
) -> None:
    assert altered(sent, stored) == parts


def test_a_state_without_a_known_request_is_not_judged() -> None:
    story = Story()
    version = story.record("pods", "a", {"status": STORED_STATUS}, listed=True).version
    assert list(pod_statuses.altered(story.history, {})) == []
    body = json.dumps({"status": PENDING_STATUS}).encode()
    assert list(pod_statuses.altered(story.history, {version: [body]})) == []  # a list may hide the change
