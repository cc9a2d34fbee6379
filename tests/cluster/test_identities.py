"""Tests that a request in the name of a component is attributed to it only with a credential of that component."""

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

COLLECTOR = "system:serviceaccount:kube-system:generic-garbage-collector"
BORROWED = f"unknown (as {COLLECTOR})"
ID, ISSUED = "authentication.kubernetes.io/credential-id", "authentication.kubernetes.io/issued-credential-id"
CERTIFICATE = "X509SHA256=1"


def token(jti: str) -> str:
    parts = ({"alg": "RS256"}, {"jti": jti, "sub": COLLECTOR})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join((*encoded, "c2ln"))


def event(user: str, credential: str, **fields: Any) -> dict[str, Any]:
    about = {"resource": "nodes", "name": "n1"}
    user_info = {"username": user, "extra": {ID: [credential]} if credential else {}}
    return {"stage": "ResponseComplete", "verb": "delete", "user": user_info, "objectRef": about, **fields}


def issues(user: str, credential: str, *, code: int = 201, noted: str = "", answer: object = None) -> dict[str, Any]:
    """Return the audit event of a token request. `answer` is the token, if the log has it, `noted` the annotated id."""
    about = {"resource": "serviceaccounts", "subresource": "token", "namespace": "kube-system"}
    fields = {"verb": "create", "objectRef": about, "responseStatus": {"code": code}, "annotations": {ISSUED: noted}}
    return event(user, credential, **fields, **({"responseObject": {"status": {"token": answer}}} if answer else {}))


def actor(folder: Path, *events: dict[str, Any]) -> str:
    """Return the user to whom the last event is attributed."""
    (log := folder / "audit.log").write_text("".join(json.dumps(document) + "\n" for document in events))
    return [entry.user.username for entry, _ in AuditLog(log, CERTIFICATE).events(0)][-1]


def test_a_controller_has_the_tokens_that_a_component_has_asked_for() -> None:
    identities = Identities(CERTIFICATE)
    identities.issued("JTI=a", identities.actor("kwok-admin", CERTIFICATE))
    identities.issued("JTI=b", identities.actor("operator", "X509SHA256=3"))
    identities.issued("JTI=c", identities.actor("kwok-admin", "X509SHA256=2"))
    identities.issued("JTI=d", identities.actor(COLLECTOR, "JTI=b"))
    ids = ("JTI=a", "JTI=b", "JTI=c", "JTI=d", "JTI=e", "")
    actors = [COLLECTOR, "operator", "unknown (as kwok-admin)", "operator", BORROWED, BORROWED]
    assert [identities.actor(COLLECTOR, id) for id in ids] == actors


def test_who_asked_first_for_a_token_has_it() -> None:
    identities = Identities(CERTIFICATE)
    identities.issued("JTI=b", "operator")
    identities.issued("JTI=b", "kwok-admin")
    assert identities.actor(COLLECTOR, "JTI=b") == "operator"


def test_other_users_are_who_they_are() -> None:
    identities = Identities(CERTIFICATE)
    for user in ("operator", "grove-conformance", "system:serviceaccount:mine:operator"):
        assert identities.actor(user, "JTI=x") == identities.actor(user, "") == user


def test_a_token_is_known_wherever_it_was_issued(tmp_path: Path) -> None:
    collected = event(COLLECTOR, "JTI=a")
    assert actor(tmp_path, issues("kwok-admin", CERTIFICATE, noted="JTI=a"), collected) == COLLECTOR
    assert actor(tmp_path, issues("kwok-admin", CERTIFICATE, answer=token("a")), collected) == COLLECTOR
    assert actor(tmp_path, issues("kwok-admin", CERTIFICATE, noted="JTI=a", code=403), collected) == BORROWED


def test_a_log_is_learned_from_before_the_mark(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(json.dumps(issues("kwok-admin", CERTIFICATE, noted="JTI=a")) + "\n")
    audit = AuditLog(log, CERTIFICATE)
    mark = audit.mark()
    for name, expected_actor in (("a", COLLECTOR), ("b", BORROWED)):
        with log.open("a") as file:
            file.write(json.dumps(event(COLLECTOR, f"JTI={name}")) + "\n")
        assert [entry.user.username for entry, _ in audit.events(mark)][-1] == expected_actor


def test_a_webhook_that_annotates_a_request_of_the_components_gives_nobody_their_name(tmp_path: Path) -> None:
    """A webhook named authentication.kubernetes.io writes its annotations before the API server writes its own."""
    request, stolen = issues("kwok-admin", CERTIFICATE, noted="JTI=b", answer=token("a")), event(COLLECTOR, "JTI=b")
    assert actor(tmp_path, issues("operator", "X509SHA256=3", noted="JTI=junk"), request, stolen) == BORROWED
    assert actor(tmp_path, request, event(COLLECTOR, "JTI=a")) == COLLECTOR
    other = event("kwok-admin", CERTIFICATE, verb="patch", annotations={ISSUED: "JTI=b"}, responseStatus={"code": 200})
    assert actor(tmp_path, other, stolen) == BORROWED


@pytest.mark.parametrize("answer", ["x", "a.b.c", "a.e30.c.d", 1])
def test_an_answer_without_a_token_is_no_event(tmp_path: Path, answer: object) -> None:
    with pytest.raises(HarnessError, match="has a line that is no audit event"):
        actor(tmp_path, issues("kwok-admin", CERTIFICATE, answer=answer))


def test_a_certificate_has_the_id_that_the_api_server_gives_it(tmp_path: Path) -> None:
    der = b"of a certificate"
    pem = f"-----BEGIN CERTIFICATE-----\n{base64.b64encode(der).decode()}\n-----END CERTIFICATE-----\n"
    (tmp_path / "a.crt").write_text(pem)
    assert identities.of_certificate(tmp_path / "a.crt") == f"X509SHA256={hashlib.sha256(der).hexdigest()}"
