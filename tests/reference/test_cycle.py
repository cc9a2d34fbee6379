"""Tests of placing gangs: as a whole or not at all, minimums before extra pods, no capacity held by waiting gangs."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from reference_impl.scheduler import cycle, eligibility, search
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.gang import Gang, Group, scopes
from reference_impl.scheduler.quantity import thousandths
from tests.reference.examples import gpu_pod, node

GPU = "nvidia.com/gpu"


def gang(name, *groups):
    """Return a gang; `groups` are (minimum, pods, GPUs per pod)."""
    return Gang(
        name,
        [
            Group(f"{name}-{g}", minimum, [gpu_pod(f"{name}-{g}-{i}", gpus) for i in range(pods)])
            for g, (minimum, pods, gpus) in enumerate(groups)
        ],
    )


def placed(plan, name):
    return sum(pod.metadata.name.startswith(f"{name}-") for pod, _ in plan.bindings)


def test_a_gang_whose_minimums_do_not_fit_binds_no_pods():
    plan = cycle.plan([gang("a", (2, 2, 4), (1, 1, 4))], Capacity([node("n", 8)], {}))
    assert plan.bindings == []
    assert GPU in str(plan.waiting["a"])


def test_a_waiting_gang_holds_no_capacity_and_blocks_no_gang():
    plan = cycle.plan([gang("big", (3, 3, 4)), gang("small", (2, 2, 4))], Capacity([node("n", 8)], {}))
    assert placed(plan, "small") == 2 and placed(plan, "big") == 0


def test_extra_pods_of_a_group_do_not_take_the_minimum_of_another_group():
    plan = cycle.plan([gang("a", (1, 4, 4), (1, 1, 4))], Capacity([node("n", 8)], {}))
    assert sorted(pod.metadata.name for pod, _ in plan.bindings) == ["a-0-0", "a-1-0"]


def test_extra_pods_of_a_gang_do_not_take_the_minimum_of_another_gang():
    plan = cycle.plan([gang("a", (1, 9, 4)), gang("b", (1, 1, 4))], Capacity([node("n", 8)], {}))
    assert placed(plan, "a") == 1 and placed(plan, "b") == 1


def test_extra_pods_are_placed_if_there_is_capacity():
    plan = cycle.plan([gang("a", (1, 3, 2))], Capacity([node("n", 8)], {}))
    assert placed(plan, "a") == 3


def test_a_gang_with_gated_pods_is_not_placed_and_has_no_shortfall():
    plan = cycle.plan([gang("a", (2, 1, 1))], Capacity([node("n", 8)], {}))
    assert plan.bindings == [] and plan.waiting == {}


def test_bound_pods_count_toward_the_minimum():
    half = gang("a", (2, 1, 1))
    half.groups[0].members = [(gpu_pod("a-0-x", 1), "n")]
    assert placed(cycle.plan([half], Capacity([node("n", 8)], {})), "a") == 1


def test_a_lost_pod_does_not_wait_for_a_pod_of_another_group():
    for replaced in (1, 0):  # the pod of the first group fits nowhere (1), or does not exist yet (0)
        half = gang("a", (2, replaced, 8), (1, 1, 1))
        half.groups[0].members = [(gpu_pod("a-0-x", 8), "m")]
        plan = cycle.plan([half], Capacity([node("n", 4), node("m", 8)], {"m": {GPU: 8000}}))
        assert [pod.metadata.name for pod, _ in plan.bindings] == ["a-1-0"]


def test_lost_pods_of_a_group_are_replaced_together():
    half = gang("a", (3, 2, 4))
    half.groups[0].members = [(gpu_pod("a-0-x", 4), "m")]
    assert cycle.plan([half], Capacity([node("n", 4), node("m", 4)], {"m": {GPU: 4000}})).bindings == []


def test_lost_pods_take_no_capacity_from_a_waiting_gang():
    half = gang("a", (2, 1, 8), (1, 1, 4))
    half.groups[0].members = [(gpu_pod("a-0-x", 8), "m")]
    plan = cycle.plan([half, gang("b", (1, 1, 4))], Capacity([node("n", 4), node("m", 8)], {"m": {GPU: 8000}}))
    assert placed(plan, "b") == 1 and placed(plan, "a") == 0


def test_used_capacity_is_not_free():
    capacity = Capacity([node("n", 8)], {"n": {GPU: 6000}})
    assert cycle.plan([gang("a", (1, 1, 4))], capacity).bindings == []


def test_taints_selectors_and_affinity_are_respected():
    tainted = node("t", 8, taints=[{"key": "pool", "value": "x", "effect": "NoSchedule"}], labels={"zone": "z1"})
    plain = gpu_pod("p", 1)
    tolerant = gpu_pod("p", 1, tolerations=[{"key": "pool", "operator": "Equal", "value": "x"}])
    any_pod = gpu_pod("p", 1, tolerations=[{"operator": "Exists"}])
    assert not eligibility.eligible(plain, tainted)
    assert eligibility.eligible(tolerant, tainted) and eligibility.eligible(any_pod, tainted)

    def wants(operator, *values):
        term = {"matchExpressions": [{"key": "zone", "operator": operator, "values": list(values)}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
        return gpu_pod("p", 1, affinity={"nodeAffinity": required})

    labelled_node = node("h", 8, labels={"zone": "z1", "rank": "5"})
    assert eligibility.eligible(wants("In", "z1"), labelled_node) and not eligibility.eligible(
        wants("In", "z2"), labelled_node
    )
    assert eligibility.eligible(wants("NotIn", "z2"), labelled_node) and eligibility.eligible(
        wants("Exists"), labelled_node
    )
    assert not eligibility.eligible(wants("DoesNotExist"), labelled_node)
    assert not eligibility.eligible(gpu_pod("p", 1, nodeSelector={"zone": "z9"}), labelled_node)


def test_cordoned_and_unready_nodes_are_not_used():
    for unusable_node in (node("n", 8, unschedulable=True), node("n", 8, ready=False)):
        assert not eligibility.eligible(gpu_pod("p", 1), unusable_node)


def test_init_containers_count_by_their_maximum_and_sidecars_always():
    def cpu(amount, **fields):
        return {"resources": {"requests": {"cpu": amount}}, **fields}

    pod = gpu_pod(
        "p", 0, containers=[cpu("1"), cpu("500m")], initContainers=[cpu("1", restartPolicy="Always"), cpu("2")]
    )
    assert pod.requests["cpu"] == 3000


def test_quantities_are_read_in_thousandths():
    assert [thousandths(q) for q in ("500m", "2", "1Gi", "1e3", "0.5", 3, "1.5k", "100u")] == [
        500,
        2000,
        2**30 * 1000,
        1000000,
        500,
        3000,
        1500000,
        1,
    ]


shapes = st.lists(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 4)).map(lambda t: (t[0], t[0] + t[1], t[2])),
        min_size=1,
        max_size=3,
    ),
    min_size=1,
    max_size=5,
)


@settings(deadline=None)  # a busy machine must not count as a slow scheduler
@given(shapes, st.lists(st.integers(0, 8), min_size=1, max_size=4))
def test_no_gang_is_split_and_no_node_is_overcommitted(gangs, nodes):
    items = [gang(f"g{i}", *groups) for i, groups in enumerate(gangs)]
    pods = {item.name: [list(group.waiting) for group in item.groups] for item in items}
    plan = cycle.plan(items, Capacity([node(f"n{i}", gpus) for i, gpus in enumerate(nodes)], {}))
    used = dict.fromkeys((f"n{i}" for i in range(len(nodes))), 0)
    for pod, name in plan.bindings:
        used[name] += pod.requests.get(GPU, 0) // 1000
    assert all(used[f"n{i}"] <= gpus for i, gpus in enumerate(nodes))
    assert len({pod.metadata.uid for pod, _ in plan.bindings}) == len(plan.bindings)
    bound = {pod.metadata.uid for pod, _ in plan.bindings}
    for item in items:
        counts = [sum(pod.metadata.uid in bound for pod in of_group) for of_group in pods[item.name]]
        whole = all(count >= group.minimum for count, group in zip(counts, item.groups, strict=True))
        assert whole or not any(counts)
        assert whole != (item.name in plan.waiting)


def test_a_scaled_gang_follows_a_base_gang_that_took_the_capacity_of_an_extra_pod():
    """The scaled gang is placed in the same cycle, because binding its base gang does not trigger another cycle."""
    wide, scaled = gang("wide", (1, 2, 4)), gang("scaled", (1, 1, 2))
    base = Gang("base", [Group("base-0", 1, [gpu_pod("base-0-0", 4, nodeSelector={"only": "yes"})])])
    scaled.base = "base"
    nodes = [node("a", 4, labels={"only": "yes"}), node("b", 4), node("c", 2)]
    plan = cycle.plan([wide, base, scaled], Capacity(nodes, {}))
    assert plan.waiting == {}
    assert {pod.metadata.name: at for pod, at in plan.bindings} == {"wide-0-1": "b", "base-0-0": "a", "scaled-0-0": "c"}


def test_a_scaled_gang_that_does_not_fit_next_to_its_base_gang_reports_its_shortfall():
    wide, scaled = gang("wide", (1, 2, 4)), gang("scaled", (1, 1, 8))
    base = Gang("base", [Group("base-0", 1, [gpu_pod("base-0-0", 4, nodeSelector={"only": "yes"})])])
    scaled.base = "base"
    plan = cycle.plan([wide, base, scaled], Capacity([node("a", 4, labels={"only": "yes"}), node("b", 4)], {}))
    assert GPU in str(plan.waiting["scaled"])


def test_gangs_that_no_extra_pod_blocks_cost_a_single_check_of_the_extra_pods(monkeypatch):
    original_release, released = Capacity.release, []
    monkeypatch.setattr(Capacity, "release", lambda *given: (released.append(given), original_release(*given)))
    wide = gang("wide", (1, 50, 1))
    waiting = [gang(f"big-{size}", (size, size, 16)) for size in range(2, 40)]
    plan = cycle.plan([wide, *waiting], Capacity([node(f"n{i}", 8) for i in range(7)], {}))
    assert placed(plan, "wide") == 50 and len(plan.waiting) == len(waiting)
    assert len(released) <= 50


def plan_undecided_cycle(**other_pods):
    """Plan a cycle in which the search for gang `high` may give up, because the gang fits, but not with the large pods
    on the fullest nodes."""
    high, low, harmless = gang("high", (1, 1, 3), (2, 2, 2)), gang("low", (1, 1, 1)), gang("harmless", (1, 1, 0))
    high.priority = 1
    harmless.groups[0].waiting = [gpu_pod("harmless-0-0", 0, nodeSelector={"only": "cpu"})]
    nodes = [node("a", 4), node("b", 3), node("c", 0, labels={"only": "cpu"})]
    high.scopes = scopes(["high-0", "high-1"], (["high-1"], "host", ""))
    for item in nodes:
        item.metadata.labels = {**(item.metadata.labels or {}), "host": item.metadata.name}
    return cycle.plan([low, harmless, high], Capacity(nodes, {}), cycle.OtherPods(**other_pods))


def test_a_gang_that_fits_in_only_one_way_is_placed():
    assert set(plan_undecided_cycle().waiting) == {"low"}


def test_a_search_that_gives_up_reserves_room_against_gangs_of_lower_priority(monkeypatch):
    monkeypatch.setattr(search, "STEPS_PER_GANG", 0)
    plan = plan_undecided_cycle()
    assert [pod.metadata.name for pod, _ in plan.bindings] == ["harmless-0-0"] and plan.reserved_for == ["high"]
    assert plan.waiting["high"].kind == "effort" and "high" in str(plan.waiting["low"])
    assert placed(plan_undecided_cycle(overdue_gangs={"high"}), "low") == 1


def test_a_search_that_gives_up_because_of_filters_reserves_room(monkeypatch):
    """The gang fits, but not if the pod that may run anywhere is placed on the fullest node, where the other pod needs
    the same host port."""
    monkeypatch.setattr(search, "STEPS_PER_GANG", 0)
    high, low = gang("high", (1, 1, 1), (1, 1, 1)), gang("low", (1, 1, 4))
    high.priority = 1
    port = {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
    high.groups[0].waiting = [gpu_pod("high-0-0", 1, **port)]
    high.groups[1].waiting = [gpu_pod("high-1-0", 1, nodeSelector={"only": "a"}, **port)]
    nodes = [node("a", 4, labels={"only": "a"}), node("b", 4)]
    plan = cycle.plan([low, high], Capacity(nodes, {}))
    assert (plan.waiting["high"].kind, plan.reserved_for) == ("effort", ["high"])
    assert "NodePorts" in str(plan.waiting["high"])
    assert plan.waiting["low"].kind == "behind"
