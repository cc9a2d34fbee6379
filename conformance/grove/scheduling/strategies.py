"""Hypothesis strategies that generate instances small enough for brute force.

Draw from `instances()`. Counterexamples shrink to few nodes and pods. `scenarios.to_yaml` writes an instance as YAML,
which `scenarios.read` can read.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any, Literal

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from conformance.grove.scheduling.instance import (
    HOST,
    Gang,
    Group,
    Instance,
    Node,
    RunningPod,
    SchedulingOutcome,
    free_capacity,
)
from conformance.grove.scheduling.scenario_format import Scope
from conformance.grove.scheduling.search import distributions

RACK, BLOCK = "rack", "block"
LEVELS = (BLOCK, RACK, HOST)
"""The label keys of generated nodes, widest first. The domains are nested."""
POOL = "pool"
MAX_PODS = 9
"""Maximum number of pods of all pending gangs together: beyond it, brute force takes too long."""

_keys = st.sampled_from(("", "", RACK, BLOCK, HOST))
_soft_keys = st.sampled_from(("", "", "", RACK, HOST))
_minimums = st.sampled_from((1, 2, 1, 1, 2, 3, 0))
_states: SearchStrategy[Literal["running", "terminating", "finished"]] = st.sampled_from(
    ("running", "running", "terminating", "finished")
)
_TAINT = {"key": POOL, "value": "x", "effect": "NoSchedule"}


def instances() -> SearchStrategy[Instance]:
    """Generate waiting gangs, sometimes with running gangs and pods, or a few waiting gangs among several running
    ones."""
    return st.one_of(_instances(crowded=False), _instances(crowded=True))


@st.composite
def preferences(draw: DrawFn) -> Instance:
    """Generate one gang without extra pods and with one preference, so that nothing else affects how well the
    preference is met."""
    nodes = tuple(draw(_plain_node(number)) for number in range(draw(st.integers(3, 5))))
    sizes = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=2, max_size=3))
    groups = tuple(
        Group(letter, minimum, minimum, {"gpus": gpus}) for letter, (minimum, gpus) in zip("pqr", sizes, strict=False)
    )
    return Instance(nodes, (Gang("g0", groups, preferred=draw(st.sampled_from((HOST, HOST, RACK)))),), name="generated")


@st.composite
def _plain_node(draw: DrawFn, number: int) -> Node:
    rack = draw(st.integers(0, 2))
    return Node(f"n{number}", {"gpus": draw(st.integers(1, 4))}, {HOST: f"n{number}", RACK: f"r{rack}"})


@st.composite
def _instances(draw: DrawFn, *, crowded: bool) -> Instance:
    nodes = tuple(draw(_node(i)) for i in range(draw(st.sampled_from((1, 2, 3, 3, 4, 4, 5)))))
    gangs: list[Gang] = []
    spare_pods = MAX_PODS // 2 if crowded else MAX_PODS
    for number in range(draw(st.sampled_from((1, 2) if crowded else (1, 2, 2, 3, 3)))):
        gang = draw(_gang(f"g{number}", gangs))
        pods = sum(group.desired for group in gang.groups)
        if pods <= spare_pods:
            gangs.append(gang)
            spare_pods -= pods
    instance = Instance(nodes, tuple(gangs), name="generated")
    for name in ("run", "row", "rye") if crowded else ("run",) if draw(st.booleans()) else ():
        instance = _with_running_gang(draw, instance, name)
    if draw(st.integers(0, 3)) == 3:
        instance = _with_single_pods(draw, instance)
    return instance


@st.composite
def _node(draw: DrawFn, number: int) -> Node:
    rack = draw(st.integers(0, 2))
    labels: dict[str, str] = {HOST: f"n{number}"}
    if draw(st.integers(0, 9)) < 9:
        labels |= {RACK: f"r{rack}", BLOCK: f"b{rack // 2}"}
    if draw(st.booleans()):
        labels[POOL] = "x"
    capacity = {"gpus": draw(st.sampled_from((1, 2, 2, 3, 4, 0)))}
    if draw(st.integers(0, 3)) == 3:
        capacity["cpu"] = draw(st.sampled_from((4, 3, 2, 1)))
    taints = (_TAINT,) if draw(st.integers(0, 7)) == 7 else ()
    return Node(f"n{number}", capacity, labels, taints, schedulable=draw(st.integers(0, 9)) < 9)


@st.composite
def _gang(draw: DrawFn, name: str, earlier_gangs: list[Gang]) -> Gang:
    groups = tuple(draw(_group(letter)) for letter in "pqr"[: draw(st.sampled_from((1, 2, 1, 2, 3)))])
    configs: tuple[Scope, ...] = ()
    if len(groups) > 1 and draw(st.booleans()):
        some_groups = tuple(group.name for group in groups[: draw(st.integers(1, len(groups) - 1))])
        configs = (Scope(some_groups, draw(_keys), draw(_soft_keys)),)
    bases = [gang for gang in earlier_gangs if not gang.base]
    base = draw(st.sampled_from([None, None, *bases])) if bases else None
    # A scaled gang has the priority of its base gang, because both belong to the same set.
    priority = base.priority if base else draw(st.sampled_from((0, 5)))
    return Gang(name, groups, priority, base.name if base else "", draw(_keys), draw(_soft_keys), configs)


@st.composite
def _group(draw: DrawFn, name: str) -> Group:
    minimum = draw(_minimums)
    asks = {"gpus": draw(st.sampled_from((1, 1, 1, 2, 2, 0, 3)))}
    if draw(st.integers(0, 3)) == 3:
        asks["cpu"] = draw(st.integers(1, 2))
    demands: dict[str, Any] = {}
    choice = draw(st.integers(0, 15))
    if choice == 15:
        demands["nodeSelector"] = {POOL: "x"}
    if choice == 14:
        demands["nodeAffinity"] = [{"matchExpressions": [{"key": POOL, "operator": "DoesNotExist"}]}]
    if draw(st.integers(0, 3)) == 3:
        demands["tolerations"] = [{"key": POOL, "operator": "Exists"}]
    required = draw(st.sampled_from(("", "", "", RACK, HOST)))
    return Group(
        name, minimum, minimum + draw(st.sampled_from((0, 1, 0, 2))) + (not minimum), asks, required, "", demands
    )


def _with_running_gang(draw: DrawFn, instance: Instance, name: str) -> Instance:
    """Add a gang that is already running, placed in any way that fits. It may have lost a pod."""
    gang = replace(draw(_gang(name, [])), priority=draw(st.sampled_from((0, 0, 3, 5))))
    counts = {group.name: draw(st.integers(group.minimum, group.desired)) for group in gang.groups}
    placements = list(
        islice(distributions(instance, gang, counts, free_capacity(instance, SchedulingOutcome()), {}), 20)
    )
    if not placements or not 0 < sum(counts.values()) < 6:
        return instance
    chosen_placement = draw(st.sampled_from(placements))
    pods = [
        (group, node)
        for group in gang.groups
        for node, count in chosen_placement.get(group.name, {}).items()
        for _ in range(count)
    ]
    running = [
        RunningPod(f"{name}-{number}", node, group.requests, 0, gang.name, group.name)
        for number, (group, node) in enumerate(pods)
    ]
    if len(running) > 1 and draw(st.integers(0, 2)) == 0:
        running.pop(draw(st.integers(0, len(running) - 1)))
    return replace(instance, gangs=(*instance.gangs, gang), running=(*instance.running, *running))


def _with_single_pods(draw: DrawFn, instance: Instance) -> Instance:
    """Add one or two pods without a gang where they fit."""
    for number in range(draw(st.integers(1, 2))):
        capacity = free_capacity(instance, SchedulingOutcome())
        nodes_with_room = [node.name for node in instance.nodes if capacity[node.name]["gpus"] > 0]
        if nodes_with_room:
            state = draw(_states)
            chosen_placement, priority = draw(st.sampled_from(nodes_with_room)), draw(st.sampled_from((0, 5)))
            pod = RunningPod(f"plain-{number}", chosen_placement, {"gpus": 1}, priority, state=state)
            instance = replace(instance, running=(*instance.running, pod))
    return instance
