"""Tests of the patches to a node that fails or recovers, and to the pods on that node."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conformance.cluster.kubelet_sim import node_failure
from conformance.cluster.kubelet_sim.init_wait import LOST, SimulatedPod
from conformance.cluster.kubelet_sim.node_failure import SimulatedNode

NOW = "2026-01-01T00:00:09Z"
LOST_KUBELET = {"reason": "NodeStatusUnknown", "message": f"the kubelet is gone: {LOST}"}


def conditions(**statuses: str) -> list[dict[str, str]]:
    return [
        {"type": LOST if condition_type == "lost" else condition_type, "status": status}
        for condition_type, status in statuses.items()
    ]


def node(is_lost: bool, **statuses: str) -> SimulatedNode:
    document = {
        "metadata": {"name": "n", "labels": {LOST: "yes"} if is_lost else {}},
        "status": {"conditions": conditions(**statuses)},
    }
    return msgspec.convert(document, SimulatedNode)


def pod(**statuses: str) -> SimulatedPod:
    status = {"phase": "Pending", "conditions": conditions(**statuses)}
    return msgspec.convert({"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": status}, SimulatedPod)


def entry(condition_type: str, status: str, **fields: str) -> dict[str, str]:
    return {"type": condition_type, "status": status, "lastTransitionTime": NOW, **fields}


@pytest.mark.parametrize(
    ("observed_node", "expected"),
    [
        (
            node(True, Ready="True", DiskPressure="False", NetworkUnavailable="False"),
            [entry("Ready", "Unknown", **LOST_KUBELET), entry("DiskPressure", "Unknown", **LOST_KUBELET)],
        ),
        (node(True, Ready="True", PIDPressure="Unknown"), [entry("Ready", "Unknown", **LOST_KUBELET)]),
        (node(True, Ready="Unknown"), None),
        (node(True), None),
        (node(False, Ready="True"), None),
        (node(False, Ready="Unknown"), None),  # KWOK reports the conditions again
    ],
)
def test_kubelet_conditions_of_a_lost_node_become_unknown_and_others_remain(
    observed_node: SimulatedNode, expected: list[dict[str, str]] | None
) -> None:
    assert node_failure.node_patch(observed_node, NOW) == (expected and {"conditions": expected})


@pytest.mark.parametrize(
    ("observed_pod", "is_lost", "expected"),
    [
        (pod(Ready="True"), True, [entry(LOST, "True"), entry("Ready", "False")]),
        (pod(Ready="False"), True, [entry(LOST, "True")]),
        (pod(), True, [entry(LOST, "True")]),
        (pod(lost="True", Ready="True"), True, [entry("Ready", "False")]),
        (pod(lost="True", Ready="False"), True, None),
        (pod(lost="True", Ready="False"), False, [{"type": LOST, "$patch": "delete"}]),
        (pod(Ready="True"), False, None),
    ],
)
def test_pods_of_a_lost_node_are_marked_and_not_ready(
    observed_pod: SimulatedPod, is_lost: bool, expected: list[dict[str, Any]] | None
) -> None:
    assert node_failure.pod_patch(observed_pod, is_lost, NOW) == (expected and {"conditions": expected})


@pytest.mark.parametrize(("conditions", "is_simulated"), [({}, True), ({"lost": "True"}, False)])
def test_the_wait_of_an_init_container_on_a_lost_node_is_not_simulated(
    conditions: dict[str, str], is_simulated: bool
) -> None:
    assert pod(Initialized="False", **conditions).is_waiting == is_simulated
