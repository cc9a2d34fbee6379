"""What is written of a node that is to be lost, or back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conformance.cluster import loss
from conformance.cluster.loss import LOST, Lease, Node

NOW = "2026-01-01T00:00:09Z"


def node(lost: bool, **conditions: str) -> Node:
    document = {
        "metadata": {"name": "n", "annotations": {LOST: "yes"} if lost else {}},
        "status": {"conditions": [{"type": kind, "status": status} for kind, status in conditions.items()]},
    }
    return msgspec.convert(document, Node)


def lease(holder: str | None) -> Lease:
    return msgspec.convert({"metadata": {"resourceVersion": "7"}, "spec": {"holderIdentity": holder}}, Lease)


@pytest.mark.parametrize(
    ("lost", "holder", "wanted"),
    [
        (True, "kwok", {"holderIdentity": "lost", "leaseDurationSeconds": 2147483647}),
        (True, None, {"holderIdentity": "lost", "leaseDurationSeconds": 2147483647}),
        (True, "lost", None),
        (False, "lost", {"holderIdentity": None, "leaseDurationSeconds": 40}),
        (False, "kwok", None),
        (False, None, None),
    ],
)
def test_the_lease_is_taken_once_and_given_back_only_by_us(
    lost: bool, holder: str | None, wanted: dict[str, Any] | None
) -> None:
    change = loss.lease_patch(node(lost, Ready="True"), lease(holder))
    assert change == (wanted and {"metadata": {"resourceVersion": "7"}, "spec": wanted})


def test_what_the_kubelet_would_tell_is_unknown_and_the_rest_is_left() -> None:
    found = loss.node_patch(node(True, Ready="True", DiskPressure="Unknown", NetworkUnavailable="False"), NOW)
    assert found is not None
    assert [(c["type"], c["status"], c["lastTransitionTime"]) for c in found["conditions"]] == [
        ("Ready", "Unknown", NOW)
    ]


@pytest.mark.parametrize("seen", [node(True, Ready="Unknown"), node(True), node(False, Ready="True")])
def test_a_node_that_is_as_it_has_to_be_is_left_alone(seen: Node) -> None:
    assert loss.node_patch(seen, NOW) is None
