"""The objects that permit the init containers of a set to read pods: ServiceAccount, Role, RoleBinding and token Secret
(spec OBJ-108 to OBJ-110, OBJ-217, OBJ-218, OBJ-241, OBJ-242)."""

from __future__ import annotations

from typing import Any

from reference_impl.api import kubernetes
from reference_impl.api.models import PodCliqueSet
from reference_impl.plan import labels, names
from reference_impl.plan.children import Manifest, set_reference

RULES: list[Manifest] = [
    {"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]},
]
TOKEN_TYPE = "kubernetes.io/service-account-token"  # noqa: S105  (the type of a Secret, not a secret)
ACCOUNT_NAME = "kubernetes.io/service-account.name"


def _manifest(pcs: PodCliqueSet, api_version: str, kind: str, name: str, component: str, **fields: Any) -> Manifest:
    # The name of a Role contains characters that are not allowed in a label value.
    tags = labels.common_labels(pcs.metadata.name, component, name.replace(":", "-"))
    metadata = {
        "name": name,
        "namespace": pcs.metadata.namespace,
        "labels": tags,
        "ownerReferences": [set_reference(pcs)],
    }
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def service_account(pcs: PodCliqueSet) -> Manifest:
    """Return the manifest of the set's ServiceAccount (OBJ-241)."""
    name = names.service_account(pcs.metadata.name)
    return _manifest(pcs, "v1", "ServiceAccount", name, "pod-service-account", automountServiceAccountToken=True)


def role(pcs: PodCliqueSet) -> Manifest:
    """Return the manifest of the set's Role, which permits reading pods (OBJ-242)."""
    api = kubernetes.ROLES.api_version
    return _manifest(pcs, api, "Role", names.role(pcs.metadata.name), "pod-role", rules=RULES)


def role_binding(pcs: PodCliqueSet) -> Manifest:
    """Return the manifest of the set's RoleBinding (OBJ-242)."""
    name = pcs.metadata.name
    subject = {"kind": "ServiceAccount", "name": names.service_account(name), "namespace": pcs.metadata.namespace}
    return _manifest(
        pcs,
        kubernetes.ROLE_BINDINGS.api_version,
        "RoleBinding",
        names.role(name),
        "pod-role-binding",
        roleRef={"apiGroup": kubernetes.ROLES.group, "kind": "Role", "name": names.role(name)},
        subjects=[subject],
    )


def token_secret(pcs: PodCliqueSet) -> Manifest:
    """Return the manifest of the Secret into which the control plane writes a token. Only pods that mount the Secret
    wait for the token."""
    name = names.token_secret(pcs.metadata.name)
    manifest = _manifest(pcs, "v1", "Secret", name, "pod-sa-token-secret", type=TOKEN_TYPE)
    manifest["metadata"]["annotations"] = {ACCOUNT_NAME: names.service_account(pcs.metadata.name)}
    return manifest


def mounts_secret(pod: Manifest, secret: str) -> bool:
    """Return whether a pod mounts the Secret."""
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return any((volume.get("secret") or {}).get("secretName") == secret for volume in volumes)
