"""Tests that waiting pods and objects are reported if a cluster does not come to rest."""

from __future__ import annotations

from typing import Any

from conformance.history.view import View
from conformance.nemesis.rest import are_bound_pods_ready, waiting_objects


class PodState(View):
    """A view that contains only the given pods."""

    def __init__(self, *pods: dict[str, Any]) -> None:
        super().__init__()
        self.pods = pods

    def list(self, resource: str, labels: Any = None) -> Any:
        return list(self.pods) if resource == "pods" else []

    def resources(self) -> Any:
        return iter(["pods"])


def pod(name: str, *, is_ready: bool = False, **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(is_ready)}]
    return {"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions}}


def test_each_pod_that_is_not_ready_is_reported_with_its_reason() -> None:
    deleted_pod = pod("d", nodeName="n", is_ready=True)
    deleted_pod["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/a"]}
    lines = waiting_objects(
        PodState(pod("g", schedulingGates=[{"name": "gate"}]), pod("u"), pod("b", nodeName="n"), deleted_pod)
    )
    assert lines == [
        "pod g waits for the gate gate",
        "pod u waits for a node",
        "pod b is bound and not Ready",
        "pods/d is being deleted, and waits for example.com/a",
    ]


def test_pods_without_a_node_and_held_pods_are_ignored() -> None:
    assert are_bound_pods_ready(PodState(pod("u"), pod("b", nodeName="n", is_ready=True)))
    assert not are_bound_pods_ready(PodState(pod("b", nodeName="n")))
    held_pod = pod("h", nodeName="n")
    held_pod["metadata"]["annotations"] = {"conformance.grove.io/hold-status": "yes"}
    assert are_bound_pods_ready(PodState(held_pod))
