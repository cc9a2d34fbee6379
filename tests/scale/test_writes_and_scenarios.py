"""Counted writes, scenario files, and the tables of a result."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from conformance.cluster.audit import AuditKey
from conformance.data import folder
from conformance.errors import UsageError
from conformance.scale import scenario
from conformance.scale.writes import counted

SMALL = folder("fixtures") / "scale" / "scale-20.yaml"


def key(program: str, verb: str = "create", resource: str = "pods", code: int = 201) -> AuditKey:
    return AuditKey(verb, "", resource, "somebody", f"{program}/v1 (linux/amd64)", code)


def test_writes_a_pod_leave_out_who_would_write_as_much_without_an_operator() -> None:
    writes = Counter(
        {
            key("an-operator"): 10,
            key("an-operator", "patch", code=409): 2,
            key("kube-controller-manager", "create", "events"): 3,
            key("kwok-controller", "patch", "pods/status"): 50,
            key("kube-scheduler", "create", "pods/binding"): 10,
            key("grove-conformance-scale", "create", "podcliquesets"): 1,
        }
    )
    result = counted(writes, 10)
    assert (result["total"], result["perPod"], result["refused"]) == (15, 1.5, 2)
    rows = result["rows"]
    assert isinstance(rows, list) and len(rows) == 6
    assert rows[0] == {
        "program": "kwok-controller",
        "verb": "patch",
        "resource": "pods/status",
        "count": 50,
        "perPod": 5,
    }


def test_a_scenario_gives_the_set_and_the_same_pods_without_an_operator() -> None:
    small = scenario.read(SMALL)
    manifest = small.pod_clique_set("there", "some-scheduler")
    [clique] = manifest["spec"]["template"]["cliques"]
    assert manifest["metadata"] == {"name": "scale", "namespace": "there"} and manifest["spec"]["replicas"] == 10
    assert clique["spec"]["podSpec"]["schedulerName"] == "some-scheduler"
    assert (
        "schedulerName" not in small.pod_clique_set("there", None)["spec"]["template"]["cliques"][0]["spec"]["podSpec"]
    )
    pods = small.plain_pods("there", "default-scheduler")
    assert len(pods) == small.pods == 20 == len({pod["metadata"]["name"] for pod in pods})
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"default-scheduler"}
    assert pods[0]["spec"]["containers"] == clique["spec"]["podSpec"]["containers"]


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        ("podsPerReplica: 2", "podsPerReplica: 3", "the cliques have 2 pods"),
        ("replicas: 10", "replicas: many", "replicas"),
        ("count: 4", "count: 0", "nodes.count"),
        ("description:", "descriptoin:", "descriptoin"),
    ],
)
def test_a_wrong_scenario_is_told_with_file_and_field(tmp_path: Path, was: str, now: str, told: str) -> None:
    text = SMALL.read_text()
    assert was in text
    path = tmp_path / "wrong.yaml"
    path.write_text(text.replace(was, now, 1))
    with pytest.raises(UsageError, match=r"wrong\.yaml") as caught:
        scenario.read(path)
    assert told in str(caught.value)


def test_an_unknown_scenario_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="scale-1000"):
        scenario.load("scale-100")
