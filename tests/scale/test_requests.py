"""Tests of the request counts of a phase."""

from __future__ import annotations

from collections import Counter

from conformance.cluster.audit import AuditKey
from conformance.scale.requests import count_throttled, summarize

USER_BY_PROGRAM = {
    "kube-controller-manager": "kwok-admin",
    "kwok-controller": "kwok-admin",
    "kube-scheduler": "kwok-admin",
}


def key(program: str, verb: str = "create", resource: str = "pods", code: int = 201, user: str = "") -> AuditKey:
    return AuditKey(
        verb, "", resource, user or USER_BY_PROGRAM.get(program, "operator"), f"{program}/v1 (linux/amd64)", code
    )


def test_writes_that_happen_also_without_an_operator_do_not_count() -> None:
    requests = Counter(
        {
            key("an-operator"): 10,
            key("an-operator", "patch", code=409): 2,
            key("an-operator", "patch", code=422): 1,
            key("kube-controller-manager", "create", "events"): 3,
            key("kwok-controller", "patch", "pods/status"): 50,
            key("kube-scheduler", "create", "pods/binding"): 10,
            key("grove-conformance-scale", "create", "podcliquesets", user="grove-conformance"): 1,
        }
    )
    writes = summarize(requests, 10)["writes"]
    assert (writes["total"], writes["perPod"], writes["refused"], writes["conflicts"]) == (16, 1.6, 3, 2)
    rows = writes["rows"]
    assert isinstance(rows, list) and len(rows) == 6
    assert rows[0] == {
        "program": "kwok-controller",
        "verb": "patch",
        "resource": "pods/status",
        "count": 50,
        "perPod": 5,
    }


def test_an_operator_is_counted_with_any_user_agent() -> None:
    names = ("kwok-controller", "kube-scheduler", "grove-conformance-scale")
    requests = Counter({key(name, user="operator"): 1 for name in names})
    writes = summarize(requests, 1)["writes"]
    assert writes["total"] == 3


def test_reads_are_counted_separately_from_writes() -> None:
    requests = Counter(
        {
            key("an-operator", "get", code=200): 7,
            key("an-operator", "get", code=404): 1,
            key("an-operator", "list", code=200): 2,
            key("an-operator"): 5,
            key("kube-controller-manager", "get", code=200): 9,
            key("grove-conformance-recorder", "list", code=200, user="grove-conformance"): 30,
        }
    )
    result = summarize(requests, 10)
    assert (result["writes"]["total"], result["reads"]["total"], result["reads"]["refused"]) == (5, 10, 1)
    assert isinstance(result["reads"]["rows"], list) and len(result["reads"]["rows"]) == 4


def test_throttled_requests_of_all_clients_count() -> None:
    assert count_throttled(Counter({key("grove-conformance-scale", code=429): 2, key("x", "get", code=429): 1})) == 3
