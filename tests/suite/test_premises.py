"""Tests that a client which deletes the nodes or the namespace of a test is named. Needs no cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.cluster.audit import AuditLog
from conformance.cluster.nodes import POOL
from conformance.errors import HarnessError
from conformance.suite.outcomes.checks import Blocked, CheckFailed
from tests.history.scripted import Scripted
from tests.history.story import SPACE, Story
from tests.suite.test_case import play


@pytest.fixture
def story() -> Story:
    created = Story(Scripted())
    created.node("n1", tags={POOL: "pool"})
    created.node("other", tags={POOL: "another"})
    return created


SUITE, REAPER = ("grove-conformance", "grove-conformance/suite"), ("operator", "reaper/1 (linux)")
KWOK = ("kwok-admin", "kwok/v0.8")
CONTROLLER = "kube-controller-manager/v1.36.3"
COLLECTOR = ("system:serviceaccount:kube-system:generic-garbage-collector", CONTROLLER)
CONTROLLERS = (COLLECTOR[0], "system:serviceaccount:kube-system:taint-eviction-controller")
ID = "authentication.kubernetes.io/credential-id"


KWOK_ID = "X509SHA256=1"
"""The credential id of the certificate of the components."""


def line(
    writer: tuple[str, str],
    verb: str,
    resource: str,
    name: str,
    namespace: str = "",
    *,
    credential: str | None = None,
    issued: str = "",
) -> str:
    """Return a line of an audit log. A controller has the token that is issued to it in `log`, unless another
    `credential` is given."""
    plural, _, sub = resource.partition("/")
    credential_id = KWOK_ID if writer[0] == KWOK[0] else f"JTI={writer[0]}"
    ids = {ID: [credential_id if credential is None else credential]} if credential != "" else {}
    about = {"resource": plural, "subresource": sub, **({"name": name} if verb != "deletecollection" else {})}
    event = {
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": writer[0], "extra": ids},
        "userAgent": writer[1],
        "objectRef": {**about, **({"namespace": namespace} if namespace else {})},
        "responseStatus": {"code": 200},
        "annotations": {"authentication.kubernetes.io/issued-credential-id": issued} if issued else {},
    }
    return json.dumps(event) + "\n"


def log(folder: Path, *lines: str) -> AuditLog:
    """Write an audit log. Before `lines`, kube-controller-manager requests a token for each controller."""
    manager, path = (KWOK[0], CONTROLLER), folder / "audit.log"
    token_lines = [
        line(manager, "create", "serviceaccounts/token", user.rpartition(":")[2], "kube-system", issued=f"JTI={user}")
        for user in CONTROLLERS
    ]
    path.write_text("".join([*token_lines, *lines]))
    return AuditLog(path, KWOK_ID)


def audit(
    folder: Path, *writers: tuple[str, str], verb: str = "delete", resource: str = "nodes", name: str = "n1"
) -> AuditLog:
    return log(folder, *(line(writer, verb, resource, name) for writer in writers))


TOKEN = ("serviceaccounts/token", "generic-garbage-collector", "kube-system")
SECRET = ("secrets", "a-token", "kube-system")


def deletion(writer: tuple[str, str], credential: str | None = None) -> str:
    return line(writer, "delete", "nodes", "n1", credential=credential)


def deletes(story: Story, name: str, at: float = 1) -> None:
    story.log.later(at, lambda: (story.keep_pace(), story.delete("nodes", name)))


@pytest.mark.parametrize("verb", ["delete", "deletecollection"])
def test_a_client_that_deletes_nodes_ends_the_test_at_once(story: Story, tmp_path: Path, verb: str) -> None:
    case = play(story, audit=audit(tmp_path))
    audit(tmp_path, SUITE, REAPER, verb=verb)
    deletes(story, "n1")
    message = r'node n1 of the test was deleted by the user operator \(client "reaper/1 \(linux\)"\)'
    with pytest.raises(Blocked, match=message):
        case.until("AA-001", "what never comes", lambda view: None, 50)
    assert story.log.now() < 5 and case.checks.recorded == []


@pytest.mark.parametrize("agent", ["grove-conformance-x", "grove-conformance/suite", "kwok/v0.8"])
def test_another_client_with_the_user_agent_of_the_suite_is_blamed(story: Story, tmp_path: Path, agent: str) -> None:
    case = play(story, audit=audit(tmp_path))
    audit(tmp_path, ("operator", agent))
    deletes(story, "n1")
    with pytest.raises(Blocked, match=f'deleted by the user operator .client "{agent}"'):
        case.until("AA-001", "what never comes", lambda view: None, 50)


@pytest.mark.parametrize("writer", [KWOK, COLLECTOR, ("gang-scheduler", "of the reference")])
def test_the_cluster_itself_and_a_supplied_role_are_not_the_implementation(
    story: Story, tmp_path: Path, writer: tuple[str, str]
) -> None:
    case = play(story, audit=audit(tmp_path))
    audit(tmp_path, writer)
    deletes(story, "n1")
    with pytest.raises(HarnessError, match=f"node n1 of the test was deleted by the user {writer[0]}"):
        case.until("AA-001", "what never comes", lambda view: None, 50)


def test_a_component_that_was_led_to_it_is_not_at_fault(story: Story, tmp_path: Path) -> None:
    case = play(story, audit=audit(tmp_path))
    log(tmp_path, line(REAPER, "patch", "nodes", "n1"), line(COLLECTOR, "delete", "nodes", "n1"))
    deletes(story, "n1")
    with pytest.raises(
        Blocked, match=r"behind it is the user operator .*; the request is that of .*generic-garbage-collector"
    ):
        case.until("AA-001", "what never comes", lambda view: None, 50)


@pytest.mark.parametrize(
    ("lines", "user"),
    [
        ([line(REAPER, "create", *TOKEN, issued="JTI=b"), deletion(COLLECTOR, "JTI=b")], "operator"),
        ([line(REAPER, "patch", *SECRET), deletion(COLLECTOR, "")], f"unknown .as {COLLECTOR[0]}."),
        ([line(REAPER, "update", *SECRET), line(REAPER, "get", *SECRET), deletion(COLLECTOR, "")], "unknown"),
        ([deletion(COLLECTOR, "JTI=signed by a stolen key")], "unknown"),
        ([deletion(KWOK, "X509SHA256=2")], "unknown .as kwok-admin."),
        ([deletion(("system:apiserver", "kube-apiserver/v1.36.3"), "X509SHA256=2")], "unknown .as system:apiserver."),
    ],
    ids=["a token", "an applied Secret", "a Secret that is read", "a forged token", "a certificate", "a server's"],
)
def test_a_stolen_credential_does_not_make_a_client_a_component(
    story: Story, tmp_path: Path, lines: list[str], user: str
) -> None:
    case = play(story, audit=audit(tmp_path))
    log(tmp_path, *lines)
    deletes(story, "n1")
    with pytest.raises(Blocked, match=f"node n1 of the test was deleted by the user {user}"):
        case.until("AA-001", "what never comes", lambda view: None, 50)


@pytest.mark.parametrize(
    "before",
    [
        line(REAPER, "create", *TOKEN, issued="JTI=b"),
        line(REAPER, "create", *SECRET),
        line(REAPER, "create", "serviceaccounts/token", "default", SPACE, issued="JTI=c"),
    ],
    ids=["a token", "a Secret", "a token of its own"],
)
def test_a_credential_that_does_nothing_is_no_act(story: Story, tmp_path: Path, before: str) -> None:
    case = play(story, audit=audit(tmp_path))
    log(tmp_path, before, deletion(COLLECTOR))
    deletes(story, "n1")
    with pytest.raises(HarnessError, match=f"node n1 of the test was deleted by the user {COLLECTOR[0]} "):
        case.until("AA-001", "what never comes", lambda view: None, 50)


def test_a_supplied_role_that_has_the_token_of_a_component_is_not_the_implementation(
    story: Story, tmp_path: Path
) -> None:
    case = play(story, audit=audit(tmp_path))
    log(tmp_path, line(("gang-scheduler", "x"), "create", *TOKEN, issued="JTI=b"), deletion(COLLECTOR, "JTI=b"))
    deletes(story, "n1")
    with pytest.raises(HarnessError, match="node n1 of the test was deleted by the user gang-scheduler"):
        case.until("AA-001", "what never comes", lambda view: None, 50)


def test_no_client_is_accused_without_an_audit_log(story: Story) -> None:
    case = play(story)
    deletes(story, "n1")
    with pytest.raises(HarnessError, match="deleted by an unknown client"):
        case.until("AA-001", "what never comes", lambda view: None, 50)


def test_nodes_of_others_are_no_loss(story: Story, tmp_path: Path) -> None:
    case = play(story, audit=audit(tmp_path))
    audit(tmp_path, REAPER, name="other")
    deletes(story, "other")
    with pytest.raises(CheckFailed):
        case.until("AA-001", "what never comes", lambda view: None, 50)
    assert "reaper" not in str(case.checks.recorded[0].seen)


def test_a_client_that_deletes_the_namespace_is_named(story: Story, tmp_path: Path) -> None:
    case = play(story, audit=audit(tmp_path))
    audit(tmp_path, REAPER, resource="namespaces", name=SPACE)
    with pytest.raises(Blocked, match=f"the namespace {SPACE} of the test was deleted by the user operator"):
        case.until("AA-001", "what never comes", lambda view: None, 50)


def test_a_client_that_makes_nodes_unusable_is_named(story: Story, tmp_path: Path) -> None:
    case = play(story, audit=audit(tmp_path))
    audit(tmp_path, KWOK, REAPER, verb="patch")
    story.node("n1", ready=False, tags={POOL: "pool"})
    with pytest.raises(Blocked, match="n1 of the test is not usable, and was changed by the user operator"):
        case.create_nodes([{"metadata": {"name": "n1"}}])


def test_unready_nodes_that_no_other_client_changed_are_a_harness_error(story: Story, tmp_path: Path) -> None:
    case = play(story, audit=audit(tmp_path))
    audit(tmp_path, KWOK, verb="patch")
    story.node("n1", ready=False, tags={POOL: "pool"})
    with pytest.raises(HarnessError, match="1 of 1 nodes are not Ready"):
        case.create_nodes([{"metadata": {"name": "n1"}}])
