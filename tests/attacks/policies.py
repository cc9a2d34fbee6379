"""Modes of hostile.py in which an admission policy makes the API server change what other clients write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from conformance.cluster import users
from conformance.grove.kinds import PODCLIQUESETS
from kube.errors import ApiError
from tests.attacks.helpers import ADMISSION, preparation, send, wait_until

ADMISSION_GROUP = ADMISSION.removeprefix("/apis/")
PROBE: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe-of-a-policy"}}
POD_SPEC = {"containers": [{"name": "main", "image": "example.com/main:v1"}]}
APPLY_YAML = "application/apply-patch+yaml"


def rule(group: str, resource: str, *operations: str) -> dict[str, Any]:
    """Return a policy's rule for one resource."""
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": list(operations), "resources": [resource]}


def json_patch_mutation(path: str, value: str) -> dict[str, Any]:
    """Return a mutation that replaces the value at a path."""
    expression = f'[JSONPatch{{op: "replace", path: "{path}", value: "{value}"}}]'
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def apply_configuration_mutation(expression: str) -> dict[str, Any]:
    """Return a mutation that adds fields."""
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def create_policy(
    kubeconfig: Path,
    rules: list[dict[str, Any]],
    mutation: dict[str, Any],
    condition: str = "true",
    as_yaml: bool = False,
) -> None:
    """Create a policy and its binding. With `as_yaml`, apply them in YAML, which the API server does not write into its
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
        body = {"apiVersion": ADMISSION_GROUP, "kind": kind, "metadata": {"name": "hostile"}, "spec": spec}
        if as_yaml:
            path = f"{ADMISSION}/{plural}/hostile?fieldManager=hostile"
            send(kubeconfig, "PATCH", path, yaml.safe_dump(body).encode(), content_type=APPLY_YAML)
        else:
            send(kubeconfig, "POST", f"{ADMISSION}/{plural}", body)


def create_status_policy(
    kubeconfig: Path, resource: str, mutation: dict[str, Any], condition: str, as_yaml: bool = False
) -> None:
    """Create a policy on updates of statuses, and return when it is in effect. It also matches a ConfigMap, which is
    created in dry runs until it is rejected, because the mutation fails on it."""
    rules = [
        rule("", f"{resource}/status", "UPDATE"),
        rule("", "configmaps", "CREATE") | {"resourceNames": [PROBE["metadata"]["name"]]},
    ]
    probe_or_condition = f'request.resource.resource == "configmaps" || ({condition})'
    create_policy(kubeconfig, rules, mutation, probe_or_condition, as_yaml)
    _wait_for_dry_run(kubeconfig, "/api/v1/namespaces/default/configmaps", PROBE, "")


def _wait_for_dry_run(kubeconfig: Path, path: str, probe: dict[str, Any], text: str) -> None:
    """Return when an object created in a dry run contains a text; if the text is empty, when the creation fails."""

    def has_effect() -> bool:
        try:
            response = send(kubeconfig, "POST", f"{path}?dryRun=All", probe)
        except ApiError:
            return not text
        return bool(text) and text.encode() in response

    wait_until(has_effect)


@preparation
def label_as_created_by_suite(kubeconfig: Path, folder: Path) -> None:
    """Label all new pods and PodGangs as objects that the suite has created by hand."""
    rules = [rule("", "pods", "CREATE"), rule("scheduler.grove.io", "podgangs", "CREATE")]
    label = '{labels: {"conformance.grove.io/scenario": "hostile"}}'
    create_policy(kubeconfig, rules, apply_configuration_mutation(f"Object{{metadata: Object.metadata{label}}}"))
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": POD_SPEC}
    _wait_for_dry_run(kubeconfig, "/api/v1/namespaces/default/pods", pod, 'scenario":"hostile"')


@preparation
def grow_nodes_by_heartbeats(kubeconfig: Path, folder: Path) -> None:
    """Give each node a hundred GPUs, with a policy on the status updates that a kubelet sends for its node."""
    _grow_nodes(kubeconfig, as_yaml=False)


@preparation
def grow_nodes_unaudited(kubeconfig: Path, folder: Path) -> None:
    """Give each node a hundred GPUs, with a policy created by requests that the API server cannot write into its audit
    log."""
    _grow_nodes(kubeconfig, as_yaml=True)


def _grow_nodes(kubeconfig: Path, as_yaml: bool) -> None:
    condition = '"nvidia.com/gpu" in object.status.allocatable'
    mutation = json_patch_mutation("/status/allocatable/nvidia.com~1gpu", "100")
    create_status_policy(kubeconfig, "nodes", mutation, condition, as_yaml)


@preparation
def mark_ready_by_heartbeats(kubeconfig: Path, folder: Path) -> None:
    """Mark each pod Ready as soon as KWOK updates the pod's status, with a policy."""
    mutation = 'Object{status: Object.status{conditions: [Object.status.conditions{type: "Ready", status: "True"}]}}'
    condition = f'request.userInfo.username == "{users.COMPONENT}"'
    create_status_policy(kubeconfig, "pods", apply_configuration_mutation(mutation), condition)


@preparation
def replace_images(kubeconfig: Path, folder: Path) -> None:
    """Make sets run other containers than users request, with a policy on new and updated sets."""
    path, image = "/spec/template/cliques/0/spec/podSpec/containers/0/image", "example.com/hostile"
    rules = [rule("grove.io", "podcliquesets", "CREATE", "UPDATE")]
    create_policy(kubeconfig, rules, json_patch_mutation(path, image))
    _wait_until_sets_contain(kubeconfig, f'"image":"{image}"')


@preparation
def lengthen_delays(kubeconfig: Path, folder: Path) -> None:
    """Lengthen the termination delay that users request, with a policy on new sets."""
    condition = "has(object.spec.template.terminationDelay)"
    rules = [rule("grove.io", "podcliquesets", "CREATE")]
    create_policy(kubeconfig, rules, json_patch_mutation("/spec/template/terminationDelay", "5s"), condition)
    _wait_until_sets_contain(kubeconfig, '"terminationDelay":"5s"')


def _wait_until_sets_contain(kubeconfig: Path, text: str) -> None:
    """Return when a policy adds a text to new sets. A dry run shows it as soon as another process serves the webhook
    for sets."""
    clique = {"name": "a", "spec": {"roleName": "a", "replicas": 1, "podSpec": POD_SPEC}}
    probe = {
        "apiVersion": PODCLIQUESETS.api_version,
        "kind": PODCLIQUESETS.kind,
        "metadata": {"name": "probe"},
        "spec": {"replicas": 1, "template": {"terminationDelay": "1h", "cliques": [clique]}},
    }
    _wait_for_dry_run(kubeconfig, PODCLIQUESETS.path("default"), probe, text)
