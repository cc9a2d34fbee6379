"""Tests of the filters that depend on other pods: host ports, affinity, anti-affinity, topology spread."""

from __future__ import annotations

import pytest

from tests.reference.filters.scenes import HOST, ZONE, cluster, feasible, node, pod, reasons

NODES = [node("a", "z1"), node("b", "z1"), node("c", "z2"), node("d")]
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def listening(port, ip="", protocol="TCP", **fields):
    ports = [{"containerPort": 80, "hostPort": port, "hostIP": ip, "protocol": protocol}]
    sidecar = {"name": "s", "ports": ports, "restartPolicy": fields.pop("init", "")}
    spec = {"initContainers": [sidecar]} if sidecar["restartPolicy"] else {"containers": [{"ports": ports}]}
    return pod(**spec, **fields)


@pytest.mark.parametrize(
    ("other", "free"),
    [
        (listening(80, at="a", name="q"), False),
        (listening(80, at="a", name="q", metadata=DELETED), False),
        (listening(80, at="a", name="q", init="Always"), False),
        (listening(80, at="a", name="q", init="OnFailure"), True),
        (listening(81, at="a", name="q"), True),
        (listening(80, protocol="UDP", at="a", name="q"), True),
        (listening(80, "10.0.0.1", at="a", name="q"), False),
    ],
)
def test_pods_with_the_same_host_port_do_not_share_a_node(other, free):
    assert feasible(listening(80), cluster(NODES[:1], other)) == ("a" if free else "")


def test_host_ports_of_different_addresses_do_not_conflict():
    state = cluster(NODES[:1], listening(80, "10.0.0.1", at="a", name="q"))
    assert feasible(listening(80, "10.0.0.2"), state) == "a"
    assert reasons(listening(80, "10.0.0.1"), state).startswith("NodePorts: ")
    assert feasible(listening(80, "0.0.0.0"), state) == ""


def affinity_to(*terms):
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def anti_affinity_to(*terms):
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def term(key=ZONE, app="x", **fields):
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **fields}


X = {"app": "x"}
SPACES = [{"metadata": {"name": "ns"}}, {"metadata": {"name": "other", "labels": {"team": "t"}}}]


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (affinity_to(term()), "a b"),
        (affinity_to(term(HOST)), "a"),
        (affinity_to(term(), term(HOST)), "a"),
        (affinity_to(term(app="y")), ""),
        (affinity_to({"topologyKey": ZONE}), ""),
        (affinity_to({"topologyKey": ZONE, "labelSelector": {}}), "a b"),
        (affinity_to(term(namespaces=["other"])), "c"),
        (affinity_to(term(namespaceSelector={})), "a b c"),
        (affinity_to(term(namespaceSelector={"matchLabels": {"team": "t"}})), "c"),
        (affinity_to(term(matchLabelKeys=["v"])), "a b"),
        (affinity_to(term(mismatchLabelKeys=["v"])), ""),
        (anti_affinity_to(term()), "c d"),
        (anti_affinity_to(term(HOST)), "b c d"),
        (anti_affinity_to(term(namespaceSelector={})), "d"),
        (anti_affinity_to(term(app="y"), term(namespaces=["other"])), "a b d"),
    ],
)
def test_affinity_and_anti_affinity_select_nodes(affinity, expected):
    existing = pod("q", "a", {**X, "v": "1"}), pod("r", "c", X, namespace="other")
    state = cluster(NODES, *existing, namespaces=SPACES)
    assert feasible(pod(labels={"v": "1"}, affinity=affinity), state) == expected


def test_terminating_pods_still_repel_other_pods_and_terminated_pods_do_not():
    terms = anti_affinity_to(term(HOST))
    assert feasible(pod(affinity=terms), cluster(NODES[:2], pod("q", "a", X, metadata=DELETED))) == "b"
    assert feasible(pod(affinity=terms), cluster(NODES[:2], pod("q", "a", X, status={"phase": "Failed"}))) == "a b"


def test_the_anti_affinity_of_running_pods_applies_to_new_pods():
    state = cluster(NODES, pod("q", "a", affinity=anti_affinity_to(term())))
    assert feasible(pod(labels=X), state) == "c d"
    assert feasible(pod(labels={"app": "y"}), state) == "a b c d"
    assert feasible(pod(labels=X, namespace="other"), state) == "a b c d"
    assert "existing pods anti-affinity" in reasons(pod(labels=X), state)


def test_the_first_pod_of_a_series_with_affinity_to_itself_can_be_placed():
    first = pod(labels=X, affinity=affinity_to(term()))
    assert feasible(first, cluster(NODES)) == "a b c"  # not where the topology key is missing
    assert feasible(first, cluster(NODES, pod("q", "c", X))) == "c"
    assert feasible(first, cluster(NODES, pod("q", "d", X))) == "a b c"
    assert feasible(pod(affinity=affinity_to(term())), cluster(NODES)) == ""


def spread(skew=1, key=ZONE, **fields):
    constraint = {"maxSkew": skew, "topologyKey": key, "labelSelector": {"matchLabels": X}}
    return [{**constraint, "whenUnsatisfiable": "DoNotSchedule", **fields}]


TAINTED = node("e", "z3", taints=[{"key": "k", "effect": "NoSchedule"}])


@pytest.mark.parametrize(
    ("existing", "fields", "expected"),
    [
        (["a"], {"constraints": spread()}, "c"),
        (["a"], {"constraints": spread(2)}, "a b c"),
        (["a", "c"], {"constraints": spread()}, "a b c"),
        (["a"], {"constraints": spread(key=HOST)}, "b c d"),
        ([], {"constraints": spread(minDomains=3)}, "a b c"),
        (["a", "c"], {"constraints": spread(minDomains=3)}, ""),
        (["a", "c"], {"constraints": spread(minDomains=2)}, "a b c"),
        (["a"], {"constraints": spread(whenUnsatisfiable="ScheduleAnyway")}, "a b c d"),
        (["a"], {"constraints": spread(), "labels": {}}, "a b c"),
        (["a", "a"], {"constraints": spread(), "labels": {}}, "c"),
        (["a"], {"constraints": spread(), "nodeSelector": {ZONE: "z1"}}, "a b"),
        (["a"], {"constraints": spread(nodeAffinityPolicy="Ignore"), "nodeSelector": {ZONE: "z1"}}, ""),
        (["a"], {"constraints": spread(matchLabelKeys=["v"]), "labels": {**X, "v": "2"}}, "a b c"),
        (["a"], {"constraints": spread(matchLabelKeys=["v"]), "labels": {**X, "v": "1"}}, "c"),
        (["a", "a"], {"constraints": spread(labelSelector={})}, "a b c"),
        (["a", "a"], {"constraints": spread(labelSelector=None)}, "a b c"),
    ],
)
def test_topology_spread_constraints_select_nodes(existing, fields, expected):
    state = cluster(NODES, *(pod(f"q{i}", at, {**X, "v": "1"}) for i, at in enumerate(existing)))
    fields = {"labels": X, **fields}
    assert feasible(pod(topologySpreadConstraints=fields.pop("constraints"), **fields), state) == expected


def test_spread_counts_tainted_domains_by_default():
    state = cluster([*NODES, TAINTED], pod("q", "a", X), pod("r", "c", X))
    assert feasible(pod(labels=X, topologySpreadConstraints=spread()), state) == ""
    assert feasible(pod(labels=X, topologySpreadConstraints=spread(nodeTaintsPolicy="Honor")), state) == "a b c"


def test_spread_ignores_terminating_pods_and_other_namespaces():
    state = cluster(NODES, pod("q", "a", X, metadata=DELETED), pod("r", "a", X, namespace="other"))
    assert feasible(pod(labels=X, topologySpreadConstraints=spread()), state) == "a b c"
