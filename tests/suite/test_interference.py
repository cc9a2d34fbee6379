"""Tests that whoever keeps the cluster from doing its own work is named before the cluster is blamed. Needs no
cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.cluster.audit import AuditLog
from conformance.cluster.nodes import POOL
from conformance.cluster.settings import NODE_LEASES
from conformance.errors import HarnessError
from conformance.suite.outcomes.checks import Blocked
from tests.grove.test_refusals_of_a_cluster import QUOTA
from tests.history.scripted import Scripted
from tests.history.story import SPACE, Story
from tests.suite.test_case import play
from tests.suite.test_premises import COLLECTOR, KWOK, REAPER, SUITE, line, log
from tests.suite.test_refused import _audited

REFUSAL = "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'mine' with binding 'mine' denied request: no"
RIGHTS = "system:controller:node-controller"
NODE = {"metadata": {"name": "pool-x-0", "labels": {POOL: "pool"}}}


@pytest.fixture
def story() -> Story:
    return Story(Scripted())


def rejected(writer: tuple[str, str], resource: str, message: str, code: int = 422) -> str:
    event = json.loads(line(writer, "patch", resource, "a", SPACE))
    return json.dumps({**event, "responseStatus": {"code": code, "message": message}}) + "\n"


def blame(story: Story, folder: Path, audit: AuditLog, *lines: str) -> None:
    """Create a node that does not become Ready. `lines` are what the audit log has of the test."""
    case = play(story, audit=audit)
    with (folder / "audit.log").open("a") as file:
        file.write("".join(lines))
    case.create_nodes([NODE])


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            line(REAPER, "create", "leases", "pool-x-0", NODE_LEASES),
            "create leases pool-x-0 of the namespace kube-node",
        ),
        (line(REAPER, "create", "nodes", "pool-x-0"), "create nodes pool-x-0, which only"),
        (line(REAPER, "create", "namespaces", f"{SPACE}-b"), f"create namespaces {SPACE}-b, which only"),
        (line(REAPER, "create", "limitranges", "l", SPACE), f"create limitranges l of the namespace {SPACE}"),
        (
            line(REAPER, "create", "resourcequotas", "q", NODE_LEASES),
            "create resourcequotas q of the namespace kube-node",
        ),
        (line(REAPER, "delete", "namespaces", NODE_LEASES), "delete namespaces kube-node-lease"),
        (line(REAPER, "delete", "clusterrolebindings", RIGHTS), f"delete clusterrolebindings {RIGHTS}, which only"),
    ],
)
def test_clients_that_write_objects_of_the_cluster_are_named(
    story: Story, tmp_path: Path, act: str, message: str
) -> None:
    with pytest.raises(Blocked, match=f"{message}.*: the user operator has done that") as blocked:
        blame(story, tmp_path, log(tmp_path), act)
    assert blocked.value.cause == "implementation"


@pytest.mark.parametrize("resource", ["nodes/status", "pods/status", "pods/binding", "leases"])
@pytest.mark.parametrize("writer", [KWOK, COLLECTOR, SUITE])
def test_webhooks_that_reject_requests_of_components_are_named(
    story: Story, tmp_path: Path, resource: str, writer: tuple[str, str]
) -> None:
    with pytest.raises(Blocked, match=f"of the user {writer[0]} was rejected: .*'mine'") as blocked:
        blame(story, tmp_path, log(tmp_path), rejected(writer, resource, REFUSAL))
    assert blocked.value.cause == "implementation"


@pytest.mark.parametrize(
    "act",
    [
        "",
        line(KWOK, "create", "leases", "pool-x-0", NODE_LEASES),
        line(SUITE, "create", "nodes", "pool-x-0"),
        line(("gang-scheduler", "of the reference"), "patch", "nodes", "pool-x-0"),
        line(REAPER, "create", "leases", "mine", SPACE),
        line(REAPER, "create", "clusterrolebindings", "mine"),
        line(SUITE, "patch", "clusterroles", RIGHTS),
        line(REAPER, "create", "nodes", "another-0"),
        line(REAPER, "create", "resourcequotas", "mine", "another"),
        rejected(REAPER, "pods/status", REFUSAL),
        rejected(KWOK, "pods/status", "the object has been modified", 409),
    ],
)
def test_the_cluster_is_blamed_if_no_client_has_interfered(story: Story, tmp_path: Path, act: str) -> None:
    with pytest.raises(HarnessError, match="1 of 1 nodes are not Ready"):
        blame(story, tmp_path, log(tmp_path), act)


def test_rejections_before_the_test_are_ignored(story: Story, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="1 of 1 nodes are not Ready"):
        blame(story, tmp_path, log(tmp_path, rejected(KWOK, "nodes/status", REFUSAL)))


def test_a_quota_of_the_implementation_is_none_of_the_cluster(story: Story, tmp_path: Path) -> None:
    audit = log(tmp_path, line(REAPER, "create", "resourcequotas", "house", SPACE))
    case = play(story, audit=audit)
    _audited(tmp_path, QUOTA)
    with pytest.raises(Blocked, match="create resourcequotas house") as blocked:
        case.wait_for("pods", lambda view: False, 10)
    assert blocked.value.cause == "implementation"
