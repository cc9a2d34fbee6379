"""Tests that writes that a client hides from the audit log are reported. The tests need no cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cluster.audit_losses import AuditLosses
from conformance.errors import HarnessError

POLICY = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/p?fieldManager=x"


def lost_event_lines(user: str, response: int = 201, uri: str = POLICY, reason: str = "json: x") -> str:
    """Return the lines that the API server logs if it cannot write an audit event."""
    details = 'groups="\\"x\\"" as="<self>" asgroups="<lookup>" user-agent="x uri=\\"/a\\"" namespace="<none>"'
    return (
        "E1129 10:00:00.000000       1 metrics.go:110] Error in audit plugin 'log' affecting 1 audit events: "
        f"{reason}\n"
        "Impacted events:\n"
        f'2026-11-29T10:00:00Z AUDIT: id="1-2" stage="ResponseComplete" ip="127.0.0.1" method="patch" user="{user}" '
        f'{details} uri="{uri}" response="{response}"\n\n'
    )


def reported_loss(folder: Path, *lines: str) -> str:
    log = folder / "kube-apiserver.log"
    log.write_text("")
    losses = AuditLosses(log)
    log.write_text("".join(lines))
    return losses.first()


def test_the_user_and_the_request_are_named(tmp_path: Path) -> None:
    sentence = reported_loss(
        tmp_path,
        "I1129 began\n",
        lost_event_lines("kwok-admin"),
        lost_event_lines("operator"),
        lost_event_lines("gang-scheduler"),
    )
    assert sentence == f"the user operator has kept a request out of the audit log: patch {POLICY}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I1129 began\n",
        lost_event_lines("grove-conformance"),
        lost_event_lines("kwok-admin"),
        lost_event_lines("operator", 400),
        "x" * (3 << 20),
    ],
)
def test_no_other_user_is_accused(tmp_path: Path, text: str) -> None:
    assert reported_loss(tmp_path, text) == ""


def test_the_log_is_read_as_it_grows_and_after_a_restart_of_the_api_server(tmp_path: Path) -> None:
    log = tmp_path / "kube-apiserver.log"
    losses = AuditLosses(log)
    assert losses.first() == ""
    log.write_text("I1129 a long line before the next start of the API server\n" * 20)
    assert losses.first() == ""
    log.write_text(lost_event_lines("operator")[:-40])
    assert losses.first() == ""
    log.write_text(lost_event_lines("operator"))
    assert "operator" in losses.first()


def test_losses_before_the_run_are_ignored(tmp_path: Path) -> None:
    log = tmp_path / "kube-apiserver.log"
    log.write_text(lost_event_lines("operator"))
    assert AuditLosses(log).first() == ""


def test_no_user_is_accused_of_a_full_disk(tmp_path: Path) -> None:
    log = tmp_path / "kube-apiserver.log"
    log.write_text("")
    losses = AuditLosses(log)
    log.write_text(lost_event_lines("operator", reason="write /c/audit.log: no space left on device"))
    for _ in range(2):
        with pytest.raises(
            HarnessError, match=r"^/c/audit\.log: the API server cannot write its audit log: no space left"
        ):
            losses.first()
