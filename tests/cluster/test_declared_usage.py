"""Tests that the metrics of pods and nodes show the declared usage, or half of the requests."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.cluster.addons import usage
from conformance.cluster.kubelet_sim.init_wait import LOST

NOW = "2026-01-01T00:00:00Z"


def pod(annotations: dict[str, str] | None = None, *requests: dict[str, str]) -> dict[str, Any]:
    containers = [{"name": f"c{number}", "resources": {"requests": amounts}} for number, amounts in enumerate(requests)]
    metadata = {"name": "p", "namespace": "n", "annotations": annotations}
    spec = {"containers": containers or [{"name": "c0"}], "nodeName": "node"}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (pod(), [("1000000n", "1048576")]),
        (pod(None, {"cpu": "2", "memory": "1Gi"}, {}), [("1000000000n", "536870912"), ("1000000n", "1048576")]),
        (pod({"kwok.x-k8s.io/usage-cpu": "250m"}, {"cpu": "1"}, {}), [("250000000n", "1048576")] * 2),
        (pod({"kwok.x-k8s.io/usage-memory": "3Ki", "kwok.x-k8s.io/usage-cpu": "much"}), [("1000000n", "3072")]),
        (pod({"kwok.x-k8s.io/usage-cpu": "0"}, {"cpu": "1"}), [("0n", "1048576")]),
    ],
)
def test_a_container_uses_its_declared_usage_or_half_of_its_requests(
    document: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    metrics = usage.pod_metrics(document, NOW)
    assert [(c["usage"]["cpu"], c["usage"]["memory"]) for c in metrics["containers"]] == expected
    assert metrics["timestamp"] == NOW and metrics["window"] == "1s"


def test_the_usage_of_a_node_is_the_usage_of_its_pods() -> None:
    pods = [pod(None, {"cpu": "2"}, {"cpu": "1"}), pod({"kwok.x-k8s.io/usage-cpu": "1500u"})]
    node = {"metadata": {"name": "node"}}
    assert usage.node_metrics(node, pods, NOW)["usage"] == {"cpu": "1501500000n", "memory": str(3 << 20)}
    assert usage.node_metrics(node, [], NOW)["usage"] == {"cpu": "0n", "memory": "0"}


def test_pods_that_do_not_run_or_are_on_a_failed_node_have_no_metrics() -> None:
    assert usage.has_metrics(pod())
    assert not usage.has_metrics(pod() | {"status": {"phase": "Succeeded"}})
    assert not usage.has_metrics(pod() | {"status": {"phase": "Running", "conditions": [{"type": LOST}]}})
