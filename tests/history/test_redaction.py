"""Tests that no credentials of a cluster get into the files of a run, which people upload and share."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from conformance.evidence import bundle
from conformance.grove.kinds import SECRETS
from conformance.history import redaction
from conformance.history.log import Log
from conformance.history.query import History
from conformance.history.recorder import Recorder, Watched, _Feed
from conformance.suite.outcomes.checks import Checks
from conformance.suite.outcomes.ledger import Check, Phase
from conformance.suite.outcomes.ledger_file import RunLedger
from conformance.suite.settings import RunSettings
from kube.objects import envelope

TOKEN = ".".join(
    base64.urlsafe_b64encode(text).decode().rstrip("=")
    for text in (b'{"alg":"RS256","kid":"x"}', b'{"iss":"kubernetes/serviceaccount","sub":"system"}', b"signature" * 9)
)
ENCODED = base64.b64encode(TOKEN.encode()).decode()
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def secret(**changes: Any) -> dict[str, Any]:
    metadata = {"name": "token", "namespace": "t", "uid": "u", "resourceVersion": "7"}
    metadata["annotations"] = {LAST_APPLIED: json.dumps({"data": {"token": ENCODED}}), "other": "kept"}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "data": {"token": ENCODED, "empty": ""},
        **changes,
    }


KEY = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
KUBECONFIG = f"users: [{{user: {{client-key-data: {base64.b64encode(KEY.encode()).decode()}}}}}]"
PRINTED = f"{KUBECONFIG}\n{KEY}"
"""Text that an implementation may print or write into objects."""
PARTS = (KEY.splitlines()[1], base64.b64encode(KEY.encode()).decode()[60:120])


def assert_clean(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        for part in (TOKEN, ENCODED, TOKEN[:60], *PARTS):
            assert part.encode() not in path.read_bytes(), path.name


def test_a_recorded_secret_keeps_its_keys_and_loses_their_values() -> None:
    log = Log()
    feed = _Feed(log, Watched(SECRETS))
    feed.on_event("ADDED", envelope(json.dumps(secret()).encode()))
    feed.on_event("DELETED", envelope(json.dumps(secret()).encode()))
    for record in log.records_after("t", 0):
        assert record.object["data"] == {"token": redaction.HIDDEN, "empty": ""}
        assert record.object["metadata"]["annotations"] == {LAST_APPLIED: "REDACTED", "other": "kept"}
        assert base64.b64decode(redaction.HIDDEN) == b"REDACTED" and ENCODED.encode() not in record.raw


def test_every_recorder_redacts_secrets(tmp_path: Path) -> None:
    feeds = {feed.resource: feed for feed in Recorder(tmp_path / "none")._feeds}
    assert SECRETS in feeds


def test_a_bundle_holds_no_credentials(tmp_path: Path) -> None:
    log = Log()
    _Feed(log, Watched(SECRETS)).on_event("ADDED", envelope(json.dumps(secret()).encode()))
    log_file = tmp_path / "operator.log"
    log_file.write_text(f"authenticating with {TOKEN}\n{PRINTED}\nstarted\n")
    fields = dict.fromkeys(("namespace", "version"), "t")
    for resource, kind in (("pods", "Pod"), ("events", "Event"), ("podgangs", "PodGang")):
        metadata = {"name": "a", "namespace": "t", "annotations": {"with": PRINTED}}
        body = {"kind": kind, "metadata": metadata, "message": PRINTED, "reason": PRINTED, "status": {"phase": PRINTED}}
        log.append("ADDED", resource, name="a", uid=kind, raw=json.dumps(body).encode(), **fields)
    recorded: list[Check] = []
    checks = Checks("t", ["AA-001", "AA-002"], recorded.append)
    checks.expect("AA-001", "the Secret", {}, {"live": [secret()]})
    error = checks.fail("AA-002", "the answer", "", f"refused: {TOKEN}")
    checks.fail("AA-002", "the other answer", PRINTED, PRINTED)
    bundle.write(
        tmp_path / "bundle",
        test="t",
        checks=checks.recorded,
        history=History(log, "t"),
        acts=[
            ("create", secret()),
            ("create", {"kind": "List", "items": [secret(stringData={"token": TOKEN})]}),
            ("patch secrets/token", {"data": {"token": ENCODED}}),
            ("create", {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"config": PRINTED}}),
        ],
        logs={"operator": (log_file, 0)},
        reproduce=["true", PRINTED],
        steps=[(0.5, PRINTED)],
    )
    assert_clean(tmp_path / "bundle")
    assert "authenticating with REDACTED" in (tmp_path / "bundle" / "logs" / "operator.log").read_text()
    assert TOKEN not in str(error) and "refused: REDACTED" in str(error)


def test_a_ledger_holds_no_tokens(tmp_path: Path) -> None:
    with RunLedger(tmp_path) as run_ledger:
        run_ledger.write(Phase(worker="w", phase="starting", detail=f"its log ends with: {TOKEN} {PRINTED}"))
    assert_clean(tmp_path)


def test_only_its_user_can_read_the_folder_of_a_run(tmp_path: Path) -> None:
    RunSettings(run="r", directory=str(tmp_path / "reports" / "r"), implementation="x").save()
    assert (tmp_path / "reports" / "r").stat().st_mode & 0o777 == 0o700
