"""Tests that writes are counted by reading the audit log."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from conformance.cluster import growing
from conformance.cluster.audit import AuditKey, AuditLog, AuditTail
from conformance.errors import HarnessError
from tests import irregular


def event(verb: str = "create", resource: str = "pods", **fields: Any) -> bytes:
    body = {
        "kind": "Event",
        "level": "Metadata",
        "stage": fields.pop("stage", "ResponseComplete"),
        "requestURI": "/api/v1/namespaces/default/pods",
        "verb": verb,
        "user": {"username": "kwok-admin", "groups": ["system:masters"]},
        "userAgent": fields.pop("agent", "kube-scheduler/v1.36.3 (linux/amd64)"),
        "objectRef": {"resource": resource, "namespace": "default", "apiVersion": "v1", **fields.pop("ref", {})},
        "responseStatus": {"metadata": {}, "code": fields.pop("code", 201)},
        **fields,
    }
    return json.dumps(body).encode() + b"\n"


def test_writes_are_counted_by_verb_resource_agent_and_code(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(
        event() * 3
        + event(ref={"subresource": "binding"})
        + event("patch", "podgangs", ref={"apiGroup": "scheduler.grove.io"}, code=409, agent="mine")
        + event(stage="ResponseStarted")
    )
    agent = "kube-scheduler/v1.36.3 (linux/amd64)"
    counts = AuditLog(log).count()
    assert counts == {
        AuditKey("create", "", "pods", "kwok-admin", agent, 201): 3,
        AuditKey("create", "", "pods/binding", "kwok-admin", agent, 201): 1,
        AuditKey("patch", "scheduler.grove.io", "podgangs", "kwok-admin", "mine", 409): 1,
    }
    assert {key.program for key in counts} == {"kube-scheduler", "mine"}


def test_refused_writes_are_counted_in_their_namespace(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(event(code=403))
    audit = AuditLog(log)
    mark = audit.mark()
    event_in_other_namespace = event(code=403, ref={"namespace": "other"})
    with log.open("ab") as file:
        file.write(
            event() + event(code=403) * 2 + event("patch", code=422) + event(code=409) + event_in_other_namespace
        )
    assert audit.refused("default", mark) == {"create pods": 2, "patch pods": 1}
    assert audit.refusal_codes("default", "pods", mark) == {403, 409, 422}
    assert audit.refusal_codes("default", "podcliques", mark) == set()


def test_a_request_without_object_or_response_is_also_counted(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text('{"stage":"ResponseComplete","verb":"post"}\n')
    assert AuditLog(log).count() == {AuditKey("post", "", "", "", "", 0): 1}


def test_counts_between_marks_add_up(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    audit = AuditLog(log)
    assert audit.mark() == 0 and not audit.count()
    log.write_bytes(event() * 2)
    first_mark = audit.mark()
    with log.open("ab") as file:
        file.write(event("delete") * 5)
    second_mark = audit.mark()
    with log.open("ab") as file:
        file.write(event("patch"))
    assert audit.count(0, first_mark).total() == 2
    assert audit.count(first_mark, second_mark).total() == 5
    assert audit.count(second_mark).total() == 1
    assert audit.count(second_mark, second_mark).total() == 0


def test_an_incomplete_line_is_counted_once_it_is_complete(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    line = event()
    log.write_bytes(line + line[:100])
    audit = AuditLog(log)
    middle_mark = audit.mark()
    assert audit.count(0, middle_mark).total() == 1
    with log.open("ab") as file:
        file.write(line[100:] + line)
    end_mark = audit.mark()
    assert (
        audit.count(0, middle_mark).total() + audit.count(middle_mark, end_mark).total()
        == audit.count(0, end_mark).total()
        == 3
    )


def test_to_count_lines_costs_less_than_to_parse_them_three_times(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(event(annotations={"padding": "x" * 400}) * 50_000)
    start = time.process_time()
    for line in log.read_bytes().splitlines():
        json.loads(line)
    parsed = time.process_time()
    assert AuditLog(log).count().total() == 50_000
    assert time.process_time() - parsed < 3 * (parsed - start)


@pytest.mark.parametrize("is_parsed", [False, True])
def test_a_line_that_is_not_an_event_is_reported(tmp_path: Path, is_parsed: bool) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(event())
    audit = AuditLog(log)
    tail = AuditTail(audit)
    if is_parsed:
        audit.mark()
    with log.open("ab") as file:
        file.write(b"junk\n" + event())
    prefix = f"{log}: has a line that is no audit event, before byte {len(event()) + 5}: "
    for read in (tail.poll, audit.count):
        with pytest.raises(HarnessError) as caught:
            read()
        assert str(caught.value).startswith(prefix) and "\n" not in str(caught.value)


def _truncate(log: Path) -> None:
    os.truncate(log, log.stat().st_size - len(event()))


def _replace(log: Path) -> None:
    log.rename(log.with_name("old"))
    log.write_bytes(event() * 300)


def _rewrite(log: Path) -> None:
    with log.open("r+b") as file:
        file.write(event().replace(b"pods", b"gods"))


def _remove(log: Path) -> None:
    log.unlink()


@pytest.mark.parametrize(
    ("attack", "problem"),
    [(_truncate, "was cut"), (_replace, "was replaced"), (_remove, "was replaced"), (_rewrite, "was changed")],
)
@pytest.mark.parametrize("events", [2, 200])
def test_changes_to_the_log_by_another_program_are_reported(
    tmp_path: Path, attack: Any, problem: str, events: int
) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(event() * events)
    audit = AuditLog(log)
    assert audit.count().total() == events
    attack(log)
    with pytest.raises(HarnessError, match=rf"^{log}: {problem} — another program of this user"):
        audit.count()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", irregular.KINDS)
def test_only_a_regular_file_is_an_audit_log(tmp_path: Path, kind: str) -> None:
    log = tmp_path / "audit.log"
    irregular.create(kind, log)
    with pytest.raises(HarnessError, match="cannot be read: "):
        AuditLog(log).count()


def test_the_length_of_a_line_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "MAX_LINE_BYTES", 200_000)
    log = tmp_path / "audit.log"
    log.write_bytes(b"x" * 500_000)
    with pytest.raises(HarnessError, match="has a line of more than"):
        AuditLog(log).count()


@pytest.mark.parametrize(
    "size", [growing.PIECE_BYTES - 1, growing.PIECE_BYTES, growing.PIECE_BYTES + 1, 3 * growing.PIECE_BYTES]
)
def test_lines_are_read_completely_wherever_pieces_end(tmp_path: Path, size: int) -> None:
    log = tmp_path / "audit.log"
    line = event()
    lines = -(-size // len(line))
    log.write_bytes(line * lines)
    audit = AuditLog(log)
    assert audit.count().total() == lines
    for mark in (1, len(line) - 1, len(line), len(line) + 1, size):
        assert audit.count(mark).total() == (lines * len(line) - mark) // len(line)
