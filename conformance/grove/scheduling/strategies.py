"""Generated instances, small enough for brute force (hypothesis).

Draw from `instances()`. A counterexample shrinks to few nodes and pods; `scenarios.shown` prints it as the YAML that
reproduces it, and `scenarios.read` reads that again.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from conformance.grove.scheduling.instance import HOST, Gang, Group, Instance, Node, Outcome, Running, Scope
from conformance.grove.scheduling.rules import room
from conformance.grove.scheduling.search import distributions

RACK, BLOCK = "rack", "block"
LEVELS = (BLOCK, RACK, HOST)
"""The keys of generated nodes, the widest first; they nest."""
POOL = "pool"
MOST_PODS = 8
"""Of all pending gangs together: beyond that, brute force takes too long."""

_keys = st.sampled_from(("", "", RACK, BLOCK, HOST))
_soft_keys = st.sampled_from(("", "", "", RACK, HOST))
_floors = st.sampled_from((1, 1, 1, 2, 2, 3, 0))
_TAINT = {"key": POOL, "value": "x", "effect": "NoSchedule"}


def instances() -> SearchStrategy[Instance]:
    """Instances with gangs that wait, and sometimes gangs and pods that run already."""
    return _instances()


@st.composite
def _instances(draw: DrawFn) -> Instance:
    nodes = tuple(draw(_node(i)) for i in range(draw(st.integers(1, 5))))
    gangs: list[Gang] = []
    left = MOST_PODS
    for number in range(draw(st.integers(1, 3))):
        gang = draw(_gang(f"g{number}", gangs))
        pods = sum(group.desired for group in gang.groups)
        if pods <= left:
            gangs.append(gang)
            left -= pods
    instance = Instance(nodes, tuple(gangs), name="generated")
    if draw(st.integers(0, 2)) == 0:
        instance = _with_running_gang(draw, instance)
    if draw(st.integers(0, 3)) == 0:
        instance = _with_single_pods(draw, instance)
    return instance


@st.composite
def _node(draw: DrawFn, number: int) -> Node:
    rack = draw(st.integers(0, 2))
    labels: dict[str, str] = {HOST: f"n{number}"}
    if draw(st.integers(0, 9)):
        labels |= {RACK: f"r{rack}", BLOCK: f"b{rack // 2}"}
    if draw(st.integers(0, 3)) == 0:
        labels[POOL] = "x"
    capacity = {"gpus": draw(st.integers(0, 4))}
    if draw(st.integers(0, 3)) == 0:
        capacity["cpu"] = draw(st.integers(0, 4))
    taints = (_TAINT,) if draw(st.integers(0, 6)) == 0 else ()
    return Node(f"n{number}", capacity, labels, taints, schedulable=draw(st.integers(0, 7)) > 0)


@st.composite
def _gang(draw: DrawFn, name: str, earlier: list[Gang]) -> Gang:
    groups = tuple(draw(_group(letter)) for letter in "pqr"[: draw(st.integers(1, 3))])
    configs: tuple[Scope, ...] = ()
    if len(groups) > 1 and draw(st.booleans()):
        some = tuple(group.name for group in groups[: draw(st.integers(1, len(groups) - 1))])
        configs = (Scope(some, draw(_keys), draw(_soft_keys)),)
    bases = [gang for gang in earlier if not gang.base]
    base = draw(st.sampled_from([None, None, *bases])) if bases else None
    # A scaled gang has the priority of its base: they are of one set.
    priority = base.priority if base else draw(st.sampled_from((0, 0, 5)))
    return Gang(name, groups, priority, base.name if base else "", draw(_keys), draw(_soft_keys), configs)


@st.composite
def _group(draw: DrawFn, name: str) -> Group:
    floor = draw(_floors)
    asks = {"gpus": draw(st.sampled_from((1, 1, 2, 0, 3)))}
    if draw(st.integers(0, 3)) == 0:
        asks["cpu"] = draw(st.integers(1, 2))
    demands: dict[str, Any] = {}
    kind = draw(st.integers(0, 9))
    if kind == 0:
        demands["nodeSelector"] = {POOL: "x"}
    if kind == 1:
        demands["nodeAffinity"] = [{"matchExpressions": [{"key": POOL, "operator": "DoesNotExist"}]}]
    if draw(st.integers(0, 5)) == 0:
        demands["tolerations"] = [{"key": POOL, "operator": "Exists"}]
    required = draw(st.sampled_from(("", "", "", RACK, HOST)))
    return Group(name, floor, floor + draw(st.integers(0 if floor else 1, 2)), asks, required, "", demands)


def _with_running_gang(draw: DrawFn, instance: Instance) -> Instance:
    """A gang that was placed before, in any way that fits; it may have lost a pod since."""
    gang = replace(draw(_gang("run", [])), priority=draw(st.sampled_from((0, 0, 3, 5))))
    counts = {group.name: draw(st.integers(group.floor, group.desired)) for group in gang.groups}
    ways = list(islice(distributions(instance, gang, counts, room(instance, Outcome()), {}), 20))
    if not ways or sum(counts.values()) > 5:
        return instance
    chosen = draw(st.sampled_from(ways))
    pods = [
        (group, node)
        for group in gang.groups
        for node, count in chosen.get(group.name, {}).items()
        for _ in range(count)
    ]
    running = [
        Running(f"run-{number}", node, group.asks, 0, gang.name, group.name)
        for number, (group, node) in enumerate(pods)
    ]
    if len(running) > 1 and draw(st.integers(0, 2)) == 0:
        running.pop(draw(st.integers(0, len(running) - 1)))
    return replace(instance, gangs=(*instance.gangs, gang), running=(*instance.running, *running))


def _with_single_pods(draw: DrawFn, instance: Instance) -> Instance:
    """One or two pods of no gang, where there is room."""
    for number in range(draw(st.integers(1, 2))):
        left = room(instance, Outcome())
        roomy = [node.name for node in instance.nodes if left[node.name]["gpus"] > 0]
        if roomy:
            state = draw(st.sampled_from(("running", "running", "terminating", "finished")))
            where, priority = draw(st.sampled_from(roomy)), draw(st.sampled_from((0, 5)))
            pod = Running(f"plain-{number}", where, {"gpus": 1}, priority, state=state)
            instance = replace(instance, running=(*instance.running, pod))
    return instance
