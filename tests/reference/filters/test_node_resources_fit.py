"""Tests of the resources that pods request and of the resources that pods hold on a node."""

from __future__ import annotations

import msgspec
import pytest

from reference_impl.scheduler.model import pod_type
from tests.reference.filters.scenes import cluster, feasible, node, pod, reasons, requests


def cpu(amount, **fields):
    return {"name": fields.pop("name", "main"), "resources": {"requests": {"cpu": amount}}, **fields}


@pytest.mark.parametrize(
    ("spec", "amount"),
    [
        ({"containers": [cpu("1"), cpu("500m")]}, 1500),
        ({"containers": [{"resources": {"limits": {"cpu": "2"}}}]}, 2000),
        ({"containers": [cpu("1")], "initContainers": [cpu("3")]}, 3000),
        ({"containers": [cpu("1")], "initContainers": [cpu("1", restartPolicy="Always"), cpu("3")]}, 4000),
        ({"containers": [cpu("1")], "initContainers": [cpu("3"), cpu("1", restartPolicy="Always")]}, 3000),
        ({"containers": [cpu("3")], "initContainers": [cpu("1", restartPolicy="Always")]}, 4000),
        ({"containers": [cpu("1")], "overhead": {"cpu": "250m"}}, 1250),
        ({"containers": [cpu("1")], "resources": {"requests": {"cpu": "3"}}}, 3000),
        ({"containers": [cpu("1")], "resources": {"requests": {"cpu": "3"}}, "overhead": {"cpu": "1"}}, 4000),
        ({"containers": [cpu("1")], "initContainers": [cpu("5")], "resources": {"requests": {"cpu": "3"}}}, 3000),
        ({"containers": [cpu("1")], "resources": {"requests": {"memory": "1Gi"}}}, 1000),
        ({"containers": [cpu("1")], "resources": {"requests": {"nvidia.com/gpu": "1"}}}, 1000),
    ],
)
def test_the_requests_of_a_pod_are_summed(spec, amount):
    assert pod(**spec).requests["cpu"] == amount
    assert "nvidia.com/gpu" not in pod(**spec).requests


def running_pod(spec, used, allocated, reason=""):
    status = {"name": "main", "resources": {"requests": {"cpu": used}}, "allocatedResources": {"cpu": allocated}}
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    return pod(containers=[cpu(spec)], status={"containerStatuses": [status], "conditions": conditions})


@pytest.mark.parametrize(
    ("resized", "amount"),
    [
        (running_pod("1", "2", "3"), 3000),
        (running_pod("4", "2", "3"), 4000),
        (running_pod("4", "2", "3", "Deferred"), 4000),
        (running_pod("4", "2", "3", "Infeasible"), 3000),
    ],
)
def test_a_resized_pod_holds_the_largest_of_desired_allocated_and_used_resources(resized, amount):
    assert resized.usage["cpu"] == amount
    assert resized.requests["cpu"] != 3000


@pytest.mark.parametrize(("reason", "before", "amount"), [("", 6000, 5000), ("Infeasible", 4000, 3000)])
def test_resized_containers_are_summed_from_kubernetes_1_37_on(reason, before, amount):
    """One container grows from 1 CPU to 3, and one shrinks from 2 to 1. A third container has no status, and does not
    count if the resize is infeasible."""
    statuses = [
        {"name": name, "resources": {"requests": {"cpu": used}}, "allocatedResources": {"cpu": used}}
        for name, used in (("grows", "1"), ("shrinks", "2"))
    ]
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}] if reason else []
    resized = pod(
        containers=[cpu("3", name="grows"), cpu("1", name="shrinks"), cpu("1", name="starts")],
        status={"containerStatuses": statuses, "conditions": conditions},
    )
    assert resized.usage["cpu"] == before
    assert msgspec.convert(msgspec.to_builtins(resized), pod_type((1, 37))).usage["cpu"] == amount


def test_resized_pod_level_resources_are_counted():
    status = {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "4"}}
    assert pod(resources={"requests": {"cpu": "2"}}, status=status).usage["cpu"] == 5000


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ({"cpu": "8"}, "a"),
        ({"cpu": "8001m"}, "NodeResourcesFit: Insufficient cpu"),
        ({"ephemeral-storage": "2Gi"}, "NodeResourcesFit: Insufficient ephemeral-storage"),
        ({"hugepages-2Mi": "4Mi"}, "a"),
        ({"hugepages-1Gi": "1Gi"}, "NodeResourcesFit: Insufficient hugepages-1Gi"),
        ({"example.com/fpga": "1"}, "NodeResourcesFit: Insufficient example.com/fpga"),
        ({"example.com/fpga": "0"}, "a"),
        ({"memory": "17179869184001m"}, "NodeResourcesFit: Insufficient memory"),
    ],
)
def test_a_pod_must_fit_the_allocatable_resources_of_a_node(amounts, expected):
    state = cluster([node("a", status={"ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi"})])
    subject = pod(containers=requests(**amounts))
    assert (feasible(subject, state) or reasons(subject, state)) == expected


@pytest.mark.parametrize(
    ("other", "fits"),
    [
        ({}, False),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, False),
        ({"status": {"phase": "Succeeded"}}, True),
        ({"status": {"phase": "Failed"}}, True),
    ],
)
def test_pods_hold_resources_until_they_have_terminated(other, fits):
    state = cluster([node("a")], pod("q", "a", containers=requests(cpu="1"), **other))
    assert (feasible(pod(containers=requests(cpu="8")), state) == "a") is fits


def test_a_node_limits_the_number_of_pods():
    state = cluster([node("a", status={"pods": "1"})], pod("q", "a"))
    assert reasons(pod(), state) == "NodeResourcesFit: Too many pods"
