"""Tests of filters within a gang whose pods exclude or attract each other. The gang is placed as a whole."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from reference_impl.scheduler import cycle, volume_decisions
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.feasibility import feasible_nodes
from reference_impl.scheduler.gang import Gang, Group
from reference_impl.scheduler.guard import Guard
from reference_impl.scheduler.snapshot import used_resources
from reference_impl.scheduler.storage import PersistentVolumeClaim
from reference_impl.scheduler.unschedulable import reasons
from tests.conftest import THOROUGH
from tests.reference.filters.scenes import HOST, cluster, node, pod, requests
from tests.reference.filters.test_between_pods import X, affinity_to, anti_affinity_to, listening, spread, term
from tests.reference.filters.test_volume_filters import LATER, attached, claim, storage_class, using, volume

NODES = [node("a", "z1"), node("b", "z1"), node("c", "z2"), node("d", "z2")]


def gang(name, *groups, minimum=None, **fields):
    parts = [Group(f"{name}-{i}", len(pods) if minimum is None else minimum, pods) for i, pods in enumerate(groups)]
    return Gang(name, parts, **fields)


def pods_named(count, make=pod, name="p", **fields):
    return [make(name=f"{name}{i}", **fields) for i in range(count)]


def plan_cycle(state, *gangs, **other_pods):
    capacity = Capacity(state.nodes, used_resources(state.pods, {}), state)
    return cycle.plan(gangs, capacity, cycle.OtherPods(**other_pods) if other_pods else None)


def nodes_by_pod(plan):
    return " ".join(
        f"{bound.metadata.name}:{name}" for bound, name in sorted(plan.bindings, key=lambda b: b[0].metadata.name)
    )


def reason_of(plan, name="g"):
    return str(plan.waiting.get(name, ""))


def test_pod_level_requests_count():
    """Four pods with 3 CPUs each need two nodes with 8 CPUs."""
    pods = pods_named(4, resources={"requests": {"cpu": "3"}})
    assert reason_of(plan_cycle(cluster(NODES[:1]), gang("g", pods))).endswith("cpu is short")
    assert len(plan_cycle(cluster(NODES[:2]), gang("g", pods)).bindings) == 4


def test_a_missing_claim_is_reported_by_name():
    plan = plan_cycle(cluster(NODES), gang("g", [using("model-cache")]))
    assert plan.bindings == [] and 'persistentvolumeclaim "model-cache" not found' in reason_of(plan)


@pytest.mark.parametrize(
    ("make", "fields", "reason"),
    [
        (pod, {"labels": X, "affinity": anti_affinity_to(term(HOST))}, "InterPodAffinity: "),
        (listening, {"port": 80}, "NodePorts: "),
    ],
)
def test_a_gang_with_one_pod_per_node_is_placed_as_a_whole_or_not_at_all(make, fields, reason):
    plan = plan_cycle(cluster(NODES[:2]), gang("g", pods_named(3, make, **fields)))
    assert plan.bindings == [] and reason_of(plan).startswith("only 2 of 3 pods of g-0") and reason in reason_of(plan)
    assert {name for _, name in plan_cycle(cluster(NODES[:3]), gang("g", pods_named(3, make, **fields))).bindings} == {
        *"abc"
    }


def test_the_filters_also_apply_to_extra_pods():
    plan = plan_cycle(
        cluster(NODES[:2]), gang("g", pods_named(3, labels=X, affinity=anti_affinity_to(term(HOST))), minimum=1)
    )
    assert sorted(name for _, name in plan.bindings) == ["a", "b"]


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        (listening(80, name="q"), "2 nodes NodePorts: "),
        (pod("q", labels=X, affinity=anti_affinity_to(term(HOST))), "2 nodes InterPodAffinity: "),
        (pod("q", nodeSelector={HOST: "z"}), "2 nodes NodeAffinity: "),
        (using("model-cache", name="q"), "2 nodes VolumeRestrictions: "),
    ],
)
def test_the_reason_of_an_extra_pod_names_the_filter(extra, reason):
    first = [listening(80, name=name, labels=X, affinity=anti_affinity_to(term(HOST))) for name in ("p0", "p1")]
    item = gang("g", [*first, extra], minimum=2)
    plan = plan_cycle(cluster(NODES[:2]), item)
    [(_, text)] = reasons(item, None, plan.extra_pod_reasons)
    assert text.startswith("pod gang g has its minimum; no node takes more pods of g-0: " + reason)


def test_an_extra_pod_that_is_too_large_lacks_capacity():
    item = gang("g", [pod(), pod("q", containers=requests(cpu="9"))], minimum=1)
    [(_, text)] = reasons(item, None, plan_cycle(cluster(NODES), item).extra_pod_reasons)
    assert text == "pod gang g has its minimum; no node has capacity for more pods of g-0"


def test_pods_without_such_fields_are_also_repelled():
    repelling_pod = pod("q", affinity=anti_affinity_to(term(HOST)))
    plan = plan_cycle(cluster(NODES[:1]), gang("g", [repelling_pod]), gang("h", [pod(labels=X)]))
    assert nodes_by_pod(plan) == "q:a" and "existing pods anti-affinity" in reason_of(plan, "h")


def test_pods_with_affinity_may_be_placed_first():
    big = pods_named(2, affinity=affinity_to(term(HOST)), containers=requests(cpu="3"))
    plan = plan_cycle(cluster(NODES), gang("g", big, [pod("x", labels=X)]))
    assert len({name for _, name in plan.bindings}) == 1 and len(plan.bindings) == 3


def test_a_gang_is_spread_over_zones():
    pods = pods_named(4, labels=X, topologySpreadConstraints=spread(), containers=requests(cpu="4"))
    assert len({name for _, name in plan_cycle(cluster(NODES), gang("g", pods)).bindings} & {*"ab"}) == 1
    plan = plan_cycle(cluster([*NODES[:2], node("c", "z2", status={"cpu": "4"})]), gang("g", pods))
    assert reason_of(plan).startswith("only 3 of 4 pods") and "PodTopologySpread" in reason_of(plan)


def test_a_large_gang_with_one_pod_per_node_is_decided_quickly():
    nodes = [node(f"n{i:03}", status={"cpu": str(9 + i)}) for i in range(150)]
    pods = pods_named(151, labels=X, affinity=anti_affinity_to(term(HOST)), containers=requests(cpu="1"))
    assert reason_of(plan_cycle(cluster(nodes), gang("g", pods))).startswith("only 150 of 151")
    assert len(plan_cycle(cluster(nodes), gang("g", pods[:150])).bindings) == 150


def test_a_placed_pod_is_reported_only_to_filters_that_it_affects(monkeypatch):
    original_update, calls = Guard.update, []
    monkeypatch.setattr(Guard, "update", lambda *given: (calls.append(given), original_update(*given)))
    gangs = []
    for app in map(str, range(20)):
        fields = {"labels": {"app": app}, "affinity": anti_affinity_to(term(HOST, app))}
        gangs.append(gang(f"g{app}", pods_named(3, name=f"g{app}-", **fields)))
    plan = plan_cycle(cluster([node(f"n{i}") for i in range(20)]), *gangs)
    assert len(plan.bindings) == 60 and len(calls) <= 4 * 60


def test_preemption_frees_resources_that_the_filters_require():
    low = listening(80, name="low", at="a", priority=0)
    high = listening(80, name="high", priority=10)
    plan = plan_cycle(cluster(NODES[:1], low), gang("g", [high], priority=10), evictable=[(low, "a")])
    assert [eviction.pod.metadata.name for eviction in plan.evictions] == ["low"]
    assert [(p.metadata.name, n) for p, n in plan.nominated["g"]] == [("high", "a")]
    same_port = listening(80, name="again")
    plan = plan_cycle(
        cluster(NODES[:1], low), gang("g", [high], priority=10), gang("h", [same_port]), evictable=[(low, "a")]
    )
    assert plan.bindings == [] and "NodePorts" in reason_of(plan, "h")


def test_the_volumes_of_a_gang_limit_its_nodes():
    single_use = {"claims": [claim(volume="v", modes=["ReadWriteOncePod"])], "volumes": [volume()]}
    plan = plan_cycle(cluster(NODES, **single_use), gang("g", pods_named(2, lambda name: using("c", name=name))))
    assert plan.bindings == [] and "ReadWriteOncePod" in reason_of(plan)
    csi = [volume(v, csi={"driver": "x", "volumeHandle": v}) for v in "vw"]
    two = {"claims": [claim("c", volume="v"), claim("d", volume="w")], "volumes": csi, **attached(1)}
    pods = [using("c", name="p", containers=requests(cpu="1")), using("d", name="q")]
    assert "NodeVolumeLimits" in reason_of(plan_cycle(cluster(NODES[:1], **two), gang("g", pods)))
    assert nodes_by_pod(plan_cycle(cluster(NODES[:2], **two), gang("g", pods))) in ("p:a q:b", "p:b q:a")


def test_pods_of_a_gang_do_not_share_an_unbound_volume():
    pods = [using("c", name="p"), using("d", name="q")]
    local = [volume(host="a"), volume("w", host="c")]
    objects = {"claims": [claim("c"), claim("d")], "storage_classes": [storage_class()]}
    assert nodes_by_pod(plan_cycle(cluster(NODES, volumes=local, **objects), gang("g", pods))) in ("p:a q:c", "p:c q:a")
    assert "VolumeBinding" in reason_of(plan_cycle(cluster(NODES, volumes=local[:1], **objects), gang("g", pods)))
    shared = plan_cycle(cluster(NODES, volumes=local, **objects), gang("g", [pods[0], using("c", name="r")]))
    assert nodes_by_pod(shared) in ("p:a r:a", "p:c r:c")


FIELDS = [
    {},
    {"labels": X},
    {"labels": X, "affinity": anti_affinity_to(term(HOST))},
    {"labels": X, "affinity": affinity_to(term())},
    {"affinity": affinity_to(term(HOST))},
    {"labels": {"app": "y"}, "affinity": anti_affinity_to(term(), term(HOST, "y"))},
    {"labels": X, "topologySpreadConstraints": spread()},
    {"labels": X, "topologySpreadConstraints": spread(2, HOST)},
    {"labels": X, "topologySpreadConstraints": spread(minDomains=2)},
]


def possible(pods, state, node_names=None, memo=None):
    """Return, by brute force, whether the pods can be placed one after another in some order (on the nodes in
    `node_names`, if it is not None)."""
    memo = {} if memo is None else memo
    key = tuple(sorted((p.metadata.name, p.spec.node_name) for p in state.pods))
    if not pods or key in memo:
        return memo.get(key, True)
    for subject in pods:
        for name, reason in feasible_nodes(subject, state).items():
            placed = pod(subject.metadata.name, name, **POD_FIELDS[subject.metadata.name])
            remaining_pods = [p for p in pods if p is not subject]
            is_possible = not reason and (node_names is None or node_names[subject.metadata.name] == name)
            if is_possible and possible(
                remaining_pods, ClusterState(state.nodes, [*state.pods, placed]), node_names, memo
            ):
                return True
    memo[key] = False
    return False


POD_FIELDS = {}


@pytest.mark.parametrize("seed", range(300 if THOROUGH else 40))
def test_a_small_gang_is_placed_if_and_only_if_it_fits(seed):
    random = Random(seed)
    nodes = random.sample(NODES, random.choice((2, 3, 3)))
    POD_FIELDS.clear()
    kinds = [{**random.choice(FIELDS), "containers": requests(cpu=random.choice("134"))} for _ in range(2)]
    groups = [[f"{g}{i}" for i in range(random.choice((1, 2)))] for g in "pq"]
    POD_FIELDS.update({name: kind for kind, names in zip(kinds, groups, strict=True) for name in names})
    old = [pod("o", nodes[0].metadata.name, **random.choice(FIELDS))] if random.random() < 0.5 else []
    pods = [[pod(name, **POD_FIELDS[name]) for name in names] for names in groups]
    plan = plan_cycle(cluster(nodes, *old), gang("g", *pods))
    all_pods = [p for group in pods for p in group]
    assert bool(plan.bindings) == possible(all_pods, cluster(nodes, *old)), POD_FIELDS
    if plan.bindings:
        nodes_by_name = {bound.metadata.name: name for bound, name in plan.bindings}
        assert len(nodes_by_name) == len(POD_FIELDS) and possible(all_pods, cluster(nodes, *old), nodes_by_name)


def test_a_gang_with_unbound_claims_is_postponed():
    """Its scaled gang is also postponed. Nodes are chosen for both gangs, and other gangs are bound."""
    objects = {"claims": [claim("c"), claim("d", storage_class="made")], "volumes": [volume(host="a")], **LATER}
    state = cluster(NODES, **objects)
    gangs = [gang("g", [using("c", "d")], [pod("x")]), gang("s", [pod("y")], base="g"), gang("o", [pod("z")])]
    capacity = Capacity(state.nodes, used_resources(state.pods, {}), state)
    plan = cycle.plan(gangs, capacity)
    decisions = volume_decisions.decisions(plan.bindings, capacity)
    assert volume_decisions.postpone_gangs(gangs, plan, decisions) == {"g"}
    assert [bound.metadata.name for bound, _ in plan.bindings] == ["z"]
    assert reason_of(plan) == reason_of(plan, "s") == "waits until volumes are bound to claims: c, d"
    first, second = (decision.body() for decision in decisions)
    assert first["spec"]["claimRef"]["name"] == "c" and first["metadata"]["annotations"]
    assert second["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": "a"}
    selected = claim("d", storage_class="made", annotations={"volume.kubernetes.io/selected-node": "a"})
    reread = msgspec.convert(selected, PersistentVolumeClaim)
    assert volume_decisions.Decision(set(), reread, None, "a").body() is None


def test_the_reason_of_an_extra_pod_names_its_unbound_claim():
    state = cluster(NODES, claims=[claim("c")], volumes=[volume(host="a")], **LATER)
    item = Gang("g", [Group("g-0", 1, [using("c")], [(pod("old", "a"), "a")])])
    capacity = Capacity(state.nodes, used_resources(state.pods, {}), state)
    plan = cycle.plan([item], capacity)
    volume_decisions.postpone_gangs([item], plan, volume_decisions.decisions(plan.bindings, capacity))
    [(_, text)] = reasons(item, None, plan.extra_pod_reasons)
    assert text == "pod gang g has its minimum; waits until volumes are bound to claims: c"
