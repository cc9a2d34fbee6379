"""Tests that victims are minimal even if many other gangs run on nodes that the preemptor may not use."""

from __future__ import annotations

import pytest

from conformance.grove.scheduling.instance import Gang, Group, Instance, Node, RunningPod
from tests.scheduling.driving import settled_outcome

POOL = {"nodeSelector": {"pool": "x"}}


@pytest.mark.parametrize("unrelated_gangs", [0, 20])
def test_an_extra_pod_is_evicted_and_not_its_gang(unrelated_gangs: int) -> None:
    nodes = [Node("n0", {"gpus": 4}, {"pool": "x", "rack": "r0"}), Node("n1", {"gpus": 4}, {"pool": "x", "rack": "r1"})]
    gangs = [
        Gang("high", (Group("p", 2, 2, {"gpus": 2}, demands=POOL),), priority=5, required="rack"),
        Gang("run", (Group("p", 2, 4, {"gpus": 2}, demands=POOL),)),
    ]
    hosts = ("n0", "n0", "n1")
    running = [RunningPod(f"run-{i}", host, {"gpus": 2}, gang="run", group="p") for i, host in enumerate(hosts)]
    for index in range(unrelated_gangs):
        nodes.append(Node(f"m{index}", {"gpus": 4}, {}))
        gangs.append(Gang(f"other-{index}", (Group("p", 1, 1, {"gpus": 4}),)))
        running.append(RunningPod(f"other-{index}-0", f"m{index}", {"gpus": 4}, gang=f"other-{index}", group="p"))
    instance = Instance(tuple(nodes), tuple(gangs), tuple(running), name="example")
    assert settled_outcome(instance, ("rack",)).evicted == {"run-2"}
