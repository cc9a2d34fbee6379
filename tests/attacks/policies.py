"""Modes of hostile.py in which an admission policy makes the API server change what other clients write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from conformance.cluster import users
from tests.attacks.means import ADMISSION, mode, send

GROUP = ADMISSION.removeprefix("/apis/")
APPLY = "application/apply-patch+yaml"


def rule(group: str, resource: str, *operations: str) -> dict[str, Any]:
    """Return a policy's rule for one resource."""
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": list(operations), "resources": [resource]}


def replacing(path: str, value: str) -> dict[str, Any]:
    """Return a mutation that replaces the value at a path."""
    expression = f'[JSONPatch{{op: "replace", path: "{path}", value: "{value}"}}]'
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def adding(expression: str) -> dict[str, Any]:
    """Return a mutation that adds fields."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def mutate(
    kubeconfig: Path,
    rules: list[dict[str, Any]],
    mutation: dict[str, Any],
    condition: str = "true",
    unseen: bool = False,
) -> None:
    """Create a policy and its binding. If `unseen`, apply them in YAML, which the API server does not write into its
    audit log."""
    policy = {
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [{"name": "where", "expression": condition}],
        "reinvocationPolicy": "Never",
        "mutations": [mutation],
    }
    for kind, plural, spec in (
        ("MutatingAdmissionPolicy", "mutatingadmissionpolicies", policy),
        ("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", {"policyName": "hostile"}),
    ):
        body = {"apiVersion": GROUP, "kind": kind, "metadata": {"name": "hostile"}, "spec": spec}
        if unseen:
            path = f"{ADMISSION}/{plural}/hostile?fieldManager=hostile"
            send(kubeconfig, "PATCH", path, yaml.safe_dump(body).encode(), content_type=APPLY)
        else:
            send(kubeconfig, "POST", f"{ADMISSION}/{plural}", body)


@mode
def label_as_ours(kubeconfig: Path, folder: Path) -> None:
    """Label all new pods and PodGangs as objects that the suite has created by hand."""
    rules = [rule("", "pods", "CREATE"), rule("scheduler.grove.io", "podgangs", "CREATE")]
    label = '{labels: {"conformance.grove.io/scenario": "hostile"}}'
    mutate(kubeconfig, rules, adding(f"Object{{metadata: Object.metadata{label}}}"))


@mode
def grow_nodes_by_heartbeats(kubeconfig: Path, folder: Path) -> None:
    """Give each node a hundred GPUs, with a policy on the status updates that a kubelet sends for its node."""
    _grow(kubeconfig, unseen=False)


@mode
def grow_nodes_unseen(kubeconfig: Path, folder: Path) -> None:
    """Give each node a hundred GPUs, with a policy created by requests that the API server cannot write into its audit
    log."""
    _grow(kubeconfig, unseen=True)


def _grow(kubeconfig: Path, unseen: bool) -> None:
    condition = '"nvidia.com/gpu" in object.status.allocatable'
    grown = replacing("/status/allocatable/nvidia.com~1gpu", "100")
    mutate(kubeconfig, [rule("", "nodes/status", "UPDATE")], grown, condition, unseen)


@mode
def ready_by_heartbeats(kubeconfig: Path, folder: Path) -> None:
    """Mark each pod Ready as soon as KWOK updates the pod's status, with a policy."""
    ready = 'Object{status: Object.status{conditions: [Object.status.conditions{type: "Ready", status: "True"}]}}'
    kwok = f'request.userInfo.username == "{users.COMPONENT}"'
    mutate(kubeconfig, [rule("", "pods/status", "UPDATE")], adding(ready), kwok)


@mode
def lengthen_delays(kubeconfig: Path, folder: Path) -> None:
    """Make gang termination later than users request, with a policy on new sets."""
    condition = "has(object.spec.template.terminationDelay)"
    rules = [rule("grove.io", "podcliquesets", "CREATE")]
    mutate(kubeconfig, rules, replacing("/spec/template/terminationDelay", "5s"), condition)
