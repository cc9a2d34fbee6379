"""Modes of hostile.py in which an admission policy makes the API server change what other clients write."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import yaml

from conformance.cluster import users
from conformance.grove.kinds import PODCLIQUESETS
from kube.errors import ApiError
from tests.attacks.helpers import ADMISSION, preparation, send, wait_until

ADMISSION_GROUP = ADMISSION.removeprefix("/apis/")
PROBE = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe-of-a-policy"}}
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
    """Create a policy and its binding, and return when the API server applies it to built-in kinds: it also matches a
    ConfigMap that is created in dry runs, whose creation fails or changes. With `as_yaml`, apply both objects in YAML,
    which the API server does not write into its audit log."""
    probe_rule = rule("", "configmaps", "CREATE") | {"resourceNames": [PROBE["metadata"]["name"]]}
    policy = {
        "matchConstraints": {"resourceRules": [*rules, probe_rule]},
        "matchConditions": [
            {"name": "where", "expression": f'request.resource.resource == "configmaps" || ({condition})'}
        ],
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

    def has_effect() -> bool:
        try:
            response = send(kubeconfig, "POST", "/api/v1/namespaces/default/configmaps?dryRun=All", PROBE)
        except ApiError:
            return True
        return json.loads(response)["metadata"].get("labels") is not None

    wait_until(has_effect)


@preparation
def label_as_created_by_suite(kubeconfig: Path, folder: Path) -> None:
    """Label all new pods and PodGangs as objects that the suite has created by hand."""
    rules = [rule("", "pods", "CREATE"), rule("scheduler.grove.io", "podgangs", "CREATE")]
    label = '{labels: {"conformance.grove.io/scenario": "hostile"}}'
    create_policy(kubeconfig, rules, apply_configuration_mutation(f"Object{{metadata: Object.metadata{label}}}"))


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
    create_policy(kubeconfig, [rule("", "nodes/status", "UPDATE")], mutation, condition, as_yaml)


@preparation
def mark_ready_by_heartbeats(kubeconfig: Path, folder: Path) -> None:
    """Mark each pod Ready as soon as KWOK updates the pod's status, with a policy."""
    mutation = 'Object{status: Object.status{conditions: [Object.status.conditions{type: "Ready", status: "True"}]}}'
    condition = f'request.userInfo.username == "{users.COMPONENT}"'
    create_policy(kubeconfig, [rule("", "pods/status", "UPDATE")], apply_configuration_mutation(mutation), condition)


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
    pod_spec = {"containers": [{"name": "main", "image": "example.com/main:v1"}]}
    clique = {"name": "a", "spec": {"roleName": "a", "replicas": 1, "podSpec": pod_spec}}
    probe = {
        "apiVersion": PODCLIQUESETS.api_version,
        "kind": PODCLIQUESETS.kind,
        "metadata": {"name": "probe"},
        "spec": {"replicas": 1, "template": {"terminationDelay": "1h", "cliques": [clique]}},
    }

    def has_effect() -> bool:
        with contextlib.suppress(ApiError):
            return text.encode() in send(kubeconfig, "POST", f"{PODCLIQUESETS.path('default')}?dryRun=All", probe)
        return False

    wait_until(has_effect)
