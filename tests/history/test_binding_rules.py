"""Tests of the rules about bound pods that exclude each other (SCHED-080, SCHED-081). Each rule is tested with
histories where it holds, where it is violated, and where it cannot be judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from conformance import invariants
from conformance.invariants import placements
from conformance.invariants.creations import STALE
from conformance.invariants.result import RuleResult

HOST, RACK = "kubernetes.io/hostname", "example.com/rack"
TCP, UDP = {"hostPort": 20380}, {"hostPort": 20380, "protocol": "UDP"}
ONE, OTHER, ANY = ({**TCP, "hostIP": address} for address in ("10.0.0.1", "10.0.0.2", "0.0.0.0"))


def verdict(story, id: str) -> RuleResult:
    [result] = invariants.judge(story.history, rule_ids=[id])
    return result


def bind(story, name: str, node: str, spec: Mapping[str, Any], tags: Mapping[str, str] | None = None) -> None:
    metadata = {"namespace": "space", "labels": dict(tags or {})}
    story.record("pods", name, {"metadata": metadata, "spec": spec})
    story.record("pods", name, {"metadata": metadata, "spec": {**spec, "nodeName": node}})


def ports(*container_ports: Mapping[str, Any]) -> dict[str, Any]:
    return {"containers": [{"name": "main", "ports": [{"containerPort": 80, **port} for port in container_ports]}]}


def apart(key: str = HOST, **term: Any) -> dict[str, Any]:
    terms = [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": "x"}}, **term}]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.mark.parametrize(
    ("first", "second", "node", "holds"),
    [
        ((TCP,), (TCP,), "n1", False),
        ((TCP,), (TCP,), "n2", True),
        ((TCP,), (UDP,), "n1", True),
        ((ONE,), (OTHER,), "n1", True),
        ((ONE,), (ANY,), "n1", False),
        ((TCP,), (ONE,), "n1", False),
        ((), (), "n1", None),
    ],
)
def test_a_host_port_is_used_once_a_node(
    story, first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]], node: str, holds: bool | None
) -> None:
    bind(story, "a", "n1", ports(*first))
    bind(story, "b", node, ports(*second))
    assert verdict(story, "SCHED-080").holds is holds


def test_the_port_of_a_pod_that_has_ended_is_free(story) -> None:
    bind(story, "a", "n1", ports(TCP))
    story.record("pods", "a", {"spec": {**ports(TCP), "nodeName": "n1"}, "status": {"phase": "Succeeded"}})
    bind(story, "b", "n1", ports(TCP))
    bind(story, "c", "n2", ports(TCP))
    assert verdict(story, "SCHED-080").holds is True


@pytest.mark.parametrize(
    ("first", "second", "node", "holds"),
    [
        (apart(), {}, "n1", False),
        ({}, apart(), "n1", False),
        (apart(), {}, "n2", True),
        (apart(RACK), {}, "n2", False),
        (apart(RACK), {}, "n3", True),
        (apart(namespaces=["elsewhere"]), {}, "n1", True),
        (
            apart(labelSelector={"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["x"]}]}),
            {},
            "n1",
            True,
        ),
        (apart(labelSelector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}), {}, "n1", False),
        (apart(namespaceSelector={}), {}, "n1", None),
        ({}, {}, "n1", None),
    ],
)
def test_pods_are_kept_apart(
    story, first: Mapping[str, Any], second: Mapping[str, Any], node: str, holds: bool | None
) -> None:
    for name, rack in (("n1", "r1"), ("n2", "r1"), ("n3", "r2")):
        story.node(name, tags={HOST: name, RACK: rack})
    bind(story, "a", "n1", first, {"app": "x"})
    bind(story, "b", node, second, {"app": "x"})
    assert verdict(story, "SCHED-081").holds is holds


@pytest.mark.parametrize(("after", "holds"), [(STALE - 1, None), (STALE + 1, False)])
def test_a_scheduler_may_not_know_recent_bindings_of_another_one(story, after: float, holds: bool | None) -> None:
    bind(story, "a", "n1", {**ports(TCP), "schedulerName": "other"})
    story.record("pods", "b", {"spec": ports(TCP)}, after=after - 0.5)
    story.record("pods", "b", {"spec": {**ports(TCP), "nodeName": "n1"}})
    assert verdict(story, "SCHED-080").holds is holds


def test_a_recording_of_any_cluster_is_judged_by_both(story) -> None:
    story.gang("s-0", {"s-0-a": (1, ["a"])})
    story.node("n1", tags={HOST: "n1"})
    for name in ("a", "b"):
        bind(story, name, "n1", {**ports(TCP), **apart()}, {"app": "x"})
    broken = {result.id for _, result in placements.judge(story.log.all_records(), story.at + 60).broken_rules}
    assert broken == {"SCHED-080", "SCHED-081"}
