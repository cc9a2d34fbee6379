"""Measures the planning time of the reference scheduler for gangs of mixed shapes on gb200-nvl72 nodes, in one cycle,
without a cluster.

    .venv/bin/python tests/bench/gang_placement.py

The benchmark prints CPU seconds for 100 to 1,000 gangs, on 1,000 nodes and on as many nodes as gangs, and the exponents
of their growth. The exit code is 1 if 1,000 gangs take more than MAX_SECONDS or an exponent is above MAX_EXPONENT.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections import Counter
from random import Random
from typing import Any

import msgspec

from conformance.cluster import nodes
from reference_impl.scheduler import cycle, model
from reference_impl.scheduler import gang as gangs
from reference_impl.scheduler.capacity import Capacity

PROFILE, SIZES, REPEATS = "gb200-nvl72", (100, 200, 500, 1000), 3
MAX_SECONDS, MAX_EXPONENT = 10.0, 1.3
LEVELS = (nodes.ZONE, nodes.BLOCK, nodes.RACK, nodes.HOSTNAME)

Groups = list[tuple[str, int, int, dict[str, str]]]
"""Name, minimum, number of pods, and the resource requests of a pod."""


def gpus(count: int) -> dict[str, str]:
    return {"nvidia.com/gpu": str(count), "cpu": str(8 * count), "memory": f"{64 * count}Gi"}


ROUTER = {"cpu": "4", "memory": "8Gi"}
SHAPES: list[tuple[Groups, dict[str, Any]]] = [
    ([("worker", 1, 2, gpus(1))], {}),
    ([("worker", 2, 2, gpus(4))], {"required": nodes.RACK}),
    ([("router", 1, 2, ROUTER), ("prefill", 1, 3, gpus(1)), ("decode", 1, 2, gpus(2))], {"preferred": nodes.RACK}),
    ([("router", 1, 1, ROUTER), ("prefill", 2, 2, gpus(2)), ("decode", 1, 1, gpus(4))], {"required": nodes.RACK}),
    ([("leader", 1, 1, gpus(3)), ("worker", 3, 3, gpus(1))], {"required": nodes.BLOCK, "preferred": nodes.RACK}),
    ([("worker", 2, 3, gpus(2))], {"required": nodes.HOSTNAME, "minimum": 2}),
    ([("prefill", 2, 2, gpus(1)), ("decode", 2, 2, gpus(1))], {"replicas": nodes.RACK}),
    ([("worker", 8, 8, gpus(4))], {"required": nodes.RACK}),
    ([("frontend", 2, 4, ROUTER)], {}),
]
WEIGHTS = [6, 3, 4, 3, 3, 2, 3, 1, 2]
"""Weights of the shapes. With as many gangs as nodes, the gangs request about as many GPUs as there are, so some gangs
must wait."""


def create_nodes(count: int) -> list[model.Node]:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    manifests = nodes.manifests(PROFILE, count)
    return [msgspec.convert({**node, "status": {**node["status"], **ready}}, model.Node) for node in manifests]


def workload(count: int, seed: int = 1) -> list[gangs.Gang]:
    """Return gangs of random shapes. Every ninth gang is followed by a scaled gang that depends on it."""
    random = Random(seed)
    result: list[gangs.Gang] = []
    while len(result) < count:
        (groups, constraints), name = random.choices(SHAPES, WEIGHTS)[0], f"g{len(result)}"
        result.append(_gang(name, groups, constraints, priority=random.choice((0, 0, 10))))
        if len(result) % 9 == 0 and len(result) < count:
            result.append(_gang(f"g{len(result)}", groups, constraints, result[-1].priority, base=name))
    return result


def _gang(name: str, groups: Groups, constraints: dict[str, Any], priority: int, base: str = "") -> gangs.Gang:
    pod_groups = [
        gangs.Group(f"{name}-{group}", minimum, [_pod(f"{name}-{group}-{i}", requests, priority) for i in range(pods)])
        for group, minimum, pods, requests in groups
    ]
    names = [group.name for group in pod_groups]
    levels = [(names, constraints.get("required", ""), constraints.get("preferred", ""))]
    levels += [([group_name], constraints["replicas"], "") for group_name in names if "replicas" in constraints]
    return gangs.Gang(name, pod_groups, gangs.scopes(names, *levels), priority, base, LEVELS)


def _pod(name: str, requests: dict[str, str], priority: int) -> model.Pod:
    spec = {"containers": [{"resources": {"requests": requests}}], "priority": priority}
    return msgspec.convert({"metadata": {"name": name, "uid": name}, "spec": spec}, model.Pod)


def measure(gang_count: int, node_count: int) -> tuple[float, cycle.Plan]:
    """Return the least CPU time of REPEATS cycles, and the last plan. Each cycle starts with new objects, as from the
    informer caches."""
    best_time, plan = math.inf, cycle.Plan()
    for _ in range(REPEATS):
        nodes, waiting = create_nodes(node_count), workload(gang_count)
        gc.collect()
        start = time.process_time()
        plan = cycle.plan(waiting, Capacity(nodes, {}))
        best_time = min(best_time, time.process_time() - start)
    return best_time, plan


def main() -> int:
    print(f"{'gangs':>6}{'nodes':>7}{'CPU':>9}{'pods bound':>12}{'gangs waiting':>15}  why")
    failures = []
    for label, nodes_for in (("1,000 nodes", lambda _: 1000), ("as many nodes as gangs", lambda count: count)):
        times: dict[int, float] = {}
        for count in SIZES:
            times[count], plan = measure(count, nodes_for(count))
            reasons = ", ".join(
                f"{kind} {n}" for kind, n in sorted(Counter(s.kind for s in plan.waiting.values()).items())
            )
            waiting = len(plan.waiting)
            print(f"{count:6}{nodes_for(count):7}{times[count]:7.2f} s{len(plan.bindings):12}{waiting:15}  {reasons}")
        exponent = math.log(times[SIZES[-1]] / times[SIZES[0]]) / math.log(SIZES[-1] / SIZES[0])
        print(f"{label}: exponent {exponent:.2f}\n")
        if times[SIZES[-1]] > MAX_SECONDS:
            failures.append(f"{label}: {times[SIZES[-1]]:.1f} s for {SIZES[-1]} gangs, the limit is {MAX_SECONDS:g} s")
        if exponent > MAX_EXPONENT:
            failures.append(f"{label}: exponent {exponent:.2f}, the limit is {MAX_EXPONENT}")
    for line in failures:
        print(line, file=sys.stderr)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
