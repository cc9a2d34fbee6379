"""Modes of hostile.py that keep the cluster from doing its own work, so that the cluster seems to be at fault."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.cluster.settings import NODE_LEASES
from conformance.suite.environment import short_name
from kube.errors import ApiError
from tests.attacks.helpers import ADMISSION, NODES, for_each_object, mode, send
from tests.attacks.policies import create_policy, json_patch_mutation, rule

NODE = "dgx-h100-0"
"""The end of the name of the first node of a test that uses nodes of this profile."""
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SCENE = "core/ready_set.py::ReadyDisaggregatedSet"
"""The scene of the test that attacks.yaml selects for these modes."""


def deny(kubeconfig: Path, requests: dict[str, Any], message: str = "no") -> None:
    """Deny requests with an admission policy."""
    validation = {"expression": "false", "message": message}
    policy = {"matchConstraints": {"resourceRules": [requests]}, "validations": [validation]}
    binding = {"policyName": "hostile", "validationActions": ["Deny"]}
    send(
        kubeconfig,
        "POST",
        f"{ADMISSION}/validatingadmissionpolicies",
        {"metadata": {"name": "hostile"}, "spec": policy},
    )
    body = {"metadata": {"name": "hostile"}, "spec": binding}
    send(kubeconfig, "POST", f"{ADMISSION}/validatingadmissionpolicybindings", body)


def in_each_namespace(kubeconfig: Path, create: Callable[[str], None]) -> None:
    """Call a function once with the name of each new namespace of a test."""
    done: set[str] = set()

    def act(namespace: Any) -> None:
        name = namespace["metadata"]["name"]
        if name not in done and name != "default" and not name.startswith("kube-"):
            done.add(name)
            with contextlib.suppress(ApiError):
                create(name)

    for_each_object(kubeconfig, "/api/v1/namespaces", act)


@mode
def deny_in_words_of_a_quota(kubeconfig: Path, folder: Path) -> None:
    """Deny each new set with an admission policy whose message is that of a quota."""
    deny(kubeconfig, rule("grove.io", "podcliquesets", "CREATE"), "exceeded quota: compute, requested: pods=1")


@mode
def deny_pod_statuses(kubeconfig: Path, folder: Path) -> None:
    """Deny the updates that a kubelet sends for its pods."""
    deny(kubeconfig, rule("", "pods/status", "UPDATE"))


@mode
def limit_namespaces(kubeconfig: Path, folder: Path) -> None:
    """Create a quota without pods in the namespace of each test."""

    def limit(name: str) -> None:
        body = {"metadata": {"name": "compute"}, "spec": {"hard": {"pods": "0"}}}
        send(kubeconfig, "POST", f"/api/v1/namespaces/{name}/resourcequotas", body)

    in_each_namespace(kubeconfig, limit)


def first_node(folder: Path) -> str:
    """Return the name that the first node of the scene SCENE will have: anybody who knows the run can compute it."""
    [run] = folder.glob("reports/*")
    return f"{short_name(SCENE, run.name)}-{NODE}"


@mode
def hold_leases_of_nodes(kubeconfig: Path, folder: Path) -> None:
    """Create the Lease of a node before the node, so that KWOK leaves the node to somebody else."""
    until = {"renewTime": "2100-01-01T00:00:00.000000Z", "leaseDurationSeconds": 100_000}
    body = {"metadata": {"name": first_node(folder)}, "spec": {"holderIdentity": "hostile", **until}}
    send(kubeconfig, "POST", f"/apis/coordination.k8s.io/v1/namespaces/{NODE_LEASES}/leases", body)


LEASES = rule("coordination.k8s.io", "leases", "CREATE", "UPDATE")


@mode
def deny_leases_of_nodes(kubeconfig: Path, folder: Path) -> None:
    """Deny the Leases with which KWOK takes nodes, with an admission policy."""
    deny(kubeconfig, LEASES)


@mode
def refuse_leases_by_webhook(kubeconfig: Path, folder: Path) -> None:
    """Refuse Leases with a webhook that does not exist."""
    hook = {
        "name": "leases.hostile.example",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "rules": [LEASES],
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    body = {"metadata": {"name": "hostile"}, "webhooks": [hook]}
    send(kubeconfig, "POST", f"{ADMISSION}/validatingwebhookconfigurations", body)


@mode
def rename_lease_holders(kubeconfig: Path, folder: Path) -> None:
    """Write another holder into the Leases of nodes, with an admission policy."""
    create_policy(kubeconfig, [LEASES], json_patch_mutation("/spec/holderIdentity", "hostile"))


@mode
def limit_leases_of_nodes(kubeconfig: Path, folder: Path) -> None:
    """Create a quota without Leases in the namespace of the Leases of nodes."""
    body = {"metadata": {"name": "leases"}, "spec": {"hard": {"count/leases.coordination.k8s.io": "0"}}}
    send(kubeconfig, "POST", f"/api/v1/namespaces/{NODE_LEASES}/resourcequotas", body)


@mode
def delete_namespace_of_leases(kubeconfig: Path, folder: Path) -> None:
    """Delete the namespace of the Leases of nodes again and again."""
    while True:
        with contextlib.suppress(ApiError):
            send(kubeconfig, "DELETE", f"/api/v1/namespaces/{NODE_LEASES}")


@mode
def revoke_rights_of_node_controller(kubeconfig: Path, folder: Path) -> None:
    """Delete the rights of the controller that removes the taints of new nodes."""
    send(kubeconfig, "DELETE", f"{RBAC}/clusterrolebindings/system:controller:node-controller")


@mode
def delete_account_of_node_controller(kubeconfig: Path, folder: Path) -> None:
    """Delete the service account of the controller that removes the taints of new nodes, again and again."""
    while True:
        with contextlib.suppress(ApiError):
            send(kubeconfig, "DELETE", "/api/v1/namespaces/kube-system/serviceaccounts/node-controller")


@mode
def take_names_of_nodes(kubeconfig: Path, folder: Path) -> None:
    """Create a node under the name that the first node of a test will have."""
    send(kubeconfig, "POST", NODES, {"metadata": {"name": first_node(folder)}})
