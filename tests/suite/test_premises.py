"""Whoever deletes the nodes or the namespace of a test is named. No cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.cluster.audit import AuditLog
from conformance.cluster.nodes import POOL
from conformance.errors import HarnessError
from conformance.suite.checks import Blocked, CheckFailed
from tests.history.scripted import Scripted
from tests.history.story import SPACE, Story
from tests.suite.test_case import play


@pytest.fixture
def story() -> Story:
    made = Story(Scripted())
    made.node("n1", tags={POOL: "pool"})
    made.node("other", tags={POOL: "another"})
    return made


def audit(folder: Path, *agents: str, verb: str = "delete", resource: str = "nodes", name: str = "n1") -> AuditLog:
    log = folder / "audit.log"
    log.write_text("")
    lines = [
        {
            "stage": "ResponseComplete",
            "verb": verb,
            "user": {"username": "admin"},
            "userAgent": agent,
            "objectRef": {"resource": resource, **({"name": name} if verb != "deletecollection" else {})},
            "responseStatus": {"code": 200},
        }
        for agent in agents
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return AuditLog(log)


def deletes(story: Story, name: str, at: float = 1) -> None:
    story.log.later(at, lambda: (story.keep_pace(), story.gone("nodes", name)))


@pytest.mark.parametrize("verb", ["delete", "deletecollection"])
def test_a_client_that_deletes_nodes_ends_the_test_at_once(story: Story, tmp_path: Path, verb: str) -> None:
    case = play(story, audit=audit(tmp_path))
    audit(tmp_path, "grove-conformance/suite", "reaper/1 (linux)", verb=verb)
    deletes(story, "n1")
    who = r'node n1 of the test was deleted by the client "reaper/1 \(linux\)" \(user admin\)'
    with pytest.raises(Blocked, match=who):
        case.until("AA-001", "what never comes", lambda view: None, 50)
    assert story.log.now() < 5 and case.checks.made == []


@pytest.mark.parametrize("agent", ["kube-controller-manager/v1.36.3 (linux/amd64)", "kwok/v0.8"])
def test_the_cluster_itself_is_not_the_implementation(story: Story, tmp_path: Path, agent: str) -> None:
    case = play(story, audit=audit(tmp_path))
    audit(tmp_path, agent)
    deletes(story, "n1")
    with pytest.raises(HarnessError, match=r"node n1 of the test was deleted by \"k"):
        case.until("AA-001", "what never comes", lambda view: None, 50)


def test_nobody_is_accused_without_an_audit_log(story: Story) -> None:
    case = play(story)
    deletes(story, "n1")
    with pytest.raises(HarnessError, match="deleted by an unknown client"):
        case.until("AA-001", "what never comes", lambda view: None, 50)


def test_nodes_of_others_are_no_loss(story: Story, tmp_path: Path) -> None:
    case = play(story, audit=audit(tmp_path))
    audit(tmp_path, "reaper/1", name="other")
    deletes(story, "other")
    with pytest.raises(CheckFailed):
        case.until("AA-001", "what never comes", lambda view: None, 50)
    assert "reaper" not in str(case.checks.made[0].seen)


def test_a_client_that_deletes_the_namespace_is_named(story: Story, tmp_path: Path) -> None:
    case = play(story, audit=audit(tmp_path))
    audit(tmp_path, "reaper/1", resource="namespaces", name=SPACE)
    with pytest.raises(Blocked, match=f'the namespace {SPACE} of the test was deleted by the client "reaper/1"'):
        case.until("AA-001", "what never comes", lambda view: None, 50)


def test_a_client_that_makes_nodes_unusable_is_named(story: Story, tmp_path: Path) -> None:
    case = play(story, audit=audit(tmp_path))
    audit(tmp_path, "kwok/v0.8", "reaper/1", verb="patch")
    story.node("n1", ready=False, tags={POOL: "pool"})
    with pytest.raises(Blocked, match='n1 of the test is not usable, and was changed by the client "reaper/1"'):
        case.fleet([{"metadata": {"name": "n1"}}])


def test_nodes_that_nobody_else_has_written_to_are_the_suites_fault(story: Story, tmp_path: Path) -> None:
    case = play(story, audit=audit(tmp_path))
    audit(tmp_path, "kwok/v0.8", verb="patch")
    story.node("n1", ready=False, tags={POOL: "pool"})
    with pytest.raises(HarnessError, match="1 of 1 nodes are not Ready"):
        case.fleet([{"metadata": {"name": "n1"}}])
