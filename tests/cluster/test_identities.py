"""Tests that a request in the name of a component is attributed to the component only if it was sent with a credential
of that component."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from conformance.cluster import identities
from conformance.cluster.audit import AuditLog
from conformance.cluster.identities import Identities
from conformance.errors import HarnessError

GARBAGE_COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
UNKNOWN_COLLECTOR = f"unknown (as {GARBAGE_COLLECTOR})"
CREDENTIAL_ID, ISSUED_CREDENTIAL_ID = (
    "authentication.kubernetes.io/credential-id",
    "authentication.kubernetes.io/issued-credential-id",
)
CERTIFICATE_ID = "X509SHA256=1"


def token(jti: str) -> str:
    parts = ({"alg": "RS256"}, {"jti": jti, "sub": GARBAGE_COLLECTOR})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join((*encoded, "c2ln"))


def event(user: str, credential: str, **fields: Any) -> dict[str, Any]:
    object_ref = {"resource": "nodes", "name": "n1"}
    user_info = {"username": user, "extra": {CREDENTIAL_ID: [credential]} if credential else {}}
    return {"stage": "ResponseComplete", "verb": "delete", "user": user_info, "objectRef": object_ref, **fields}


def token_request(
    user: str, credential: str, *, code: int = 201, annotated_id: str = "", response_token: object = None
) -> dict[str, Any]:
    """Return the audit event of a token request with an annotated id, and with the token if the log contains it."""
    object_ref = {"resource": "serviceaccounts", "subresource": "token", "namespace": "kube-system"}
    fields = {
        "verb": "create",
        "objectRef": object_ref,
        "responseStatus": {"code": code},
        "annotations": {ISSUED_CREDENTIAL_ID: annotated_id},
    }
    return event(
        user,
        credential,
        **fields,
        **({"responseObject": {"status": {"token": response_token}}} if response_token else {}),
    )


def last_actor(folder: Path, *events: dict[str, Any]) -> str:
    """Return the user to whom the last event is attributed."""
    (log := folder / "audit.log").write_text("".join(json.dumps(document) + "\n" for document in events))
    return [entry.user.username for entry, _ in AuditLog(log, CERTIFICATE_ID).events(0)][-1]


def test_a_controller_has_the_tokens_that_a_component_has_requested() -> None:
    identities = Identities(CERTIFICATE_ID)
    identities.issued("JTI=a", identities.actor("kwok-admin", CERTIFICATE_ID))
    identities.issued("JTI=b", identities.actor("operator", "X509SHA256=3"))
    identities.issued("JTI=c", identities.actor("kwok-admin", "X509SHA256=2"))
    identities.issued("JTI=d", identities.actor(GARBAGE_COLLECTOR, "JTI=b"))
    ids = ("JTI=a", "JTI=b", "JTI=c", "JTI=d", "JTI=e", "")
    actors = [
        GARBAGE_COLLECTOR,
        "operator",
        "unknown (as kwok-admin)",
        "operator",
        UNKNOWN_COLLECTOR,
        UNKNOWN_COLLECTOR,
    ]
    assert [identities.actor(GARBAGE_COLLECTOR, id) for id in ids] == actors


def test_a_token_belongs_to_its_first_requester() -> None:
    identities = Identities(CERTIFICATE_ID)
    identities.issued("JTI=b", "operator")
    identities.issued("JTI=b", "kwok-admin")
    assert identities.actor(GARBAGE_COLLECTOR, "JTI=b") == "operator"


def test_other_users_need_no_known_credential() -> None:
    identities = Identities(CERTIFICATE_ID)
    for user in ("operator", "grove-conformance", "system:serviceaccount:mine:operator"):
        assert identities.actor(user, "JTI=x") == identities.actor(user, "") == user


def test_a_token_is_known_by_its_annotation_or_its_value(tmp_path: Path) -> None:
    deletion = event(GARBAGE_COLLECTOR, "JTI=a")
    assert (
        last_actor(tmp_path, token_request("kwok-admin", CERTIFICATE_ID, annotated_id="JTI=a"), deletion)
        == GARBAGE_COLLECTOR
    )
    assert (
        last_actor(tmp_path, token_request("kwok-admin", CERTIFICATE_ID, response_token=token("a")), deletion)
        == GARBAGE_COLLECTOR
    )
    assert (
        last_actor(tmp_path, token_request("kwok-admin", CERTIFICATE_ID, annotated_id="JTI=a", code=403), deletion)
        == UNKNOWN_COLLECTOR
    )


def test_tokens_that_were_issued_before_the_mark_are_known(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(json.dumps(token_request("kwok-admin", CERTIFICATE_ID, annotated_id="JTI=a")) + "\n")
    audit = AuditLog(log, CERTIFICATE_ID)
    mark = audit.mark()
    for name, expected_actor in (("a", GARBAGE_COLLECTOR), ("b", UNKNOWN_COLLECTOR)):
        with log.open("a") as file:
            file.write(json.dumps(event(GARBAGE_COLLECTOR, f"JTI={name}")) + "\n")
        assert [entry.user.username for entry, _ in audit.events(mark)][-1] == expected_actor


def test_a_webhook_cannot_attribute_a_token_to_a_component(tmp_path: Path) -> None:
    """A webhook named authentication.kubernetes.io writes its annotations before the API server writes its own."""
    request, deletion = (
        token_request("kwok-admin", CERTIFICATE_ID, annotated_id="JTI=b", response_token=token("a")),
        event(GARBAGE_COLLECTOR, "JTI=b"),
    )
    assert (
        last_actor(tmp_path, token_request("operator", "X509SHA256=3", annotated_id="JTI=junk"), request, deletion)
        == UNKNOWN_COLLECTOR
    )
    assert last_actor(tmp_path, request, event(GARBAGE_COLLECTOR, "JTI=a")) == GARBAGE_COLLECTOR
    patch_event = event(
        "kwok-admin",
        CERTIFICATE_ID,
        verb="patch",
        annotations={ISSUED_CREDENTIAL_ID: "JTI=b"},
        responseStatus={"code": 200},
    )
    assert last_actor(tmp_path, patch_event, deletion) == UNKNOWN_COLLECTOR


@pytest.mark.parametrize("response_token", ["x", "a.b.c", "a.e30.c.d", 1])
def test_a_response_without_a_token_is_an_error(tmp_path: Path, response_token: object) -> None:
    with pytest.raises(HarnessError, match="has a line that is no audit event"):
        last_actor(tmp_path, token_request("kwok-admin", CERTIFICATE_ID, response_token=response_token))


def test_the_id_of_a_certificate_is_the_one_that_the_api_server_uses(tmp_path: Path) -> None:
    der = b"of a certificate"
    pem = f"-----BEGIN CERTIFICATE-----\n{base64.b64encode(der).decode()}\n-----END CERTIFICATE-----\n"
    (tmp_path / "a.crt").write_text(pem)
    assert identities.certificate_id(tmp_path / "a.crt") == f"X509SHA256={hashlib.sha256(der).hexdigest()}"
