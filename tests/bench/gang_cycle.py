"""Measures one cycle of the reference's gang scheduler when nearly all gangs are running. The benchmark needs no
cluster.

    .venv/bin/python tests/bench/gang_cycle.py

A cycle inspects all gangs and pods, so this is its cost while more gangs arrive. The benchmark prints CPU milliseconds
for 500 to 10,000 gangs of two pods, 20 of which wait, and the exponent of the growth. The exit code is 1 if the
exponent is above MAX_EXPONENT, or if cycles take a larger share of a core than MAX_SHARE.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from typing import Any

import msgspec

from conformance.cluster import nodes
from reference_impl.api.models import PodGang
from reference_impl.scheduler import cycle, model, snapshot
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.scheduler import SETTLE_PER_GANG, SETTLE_SECONDS

SIZES, WAITING, REPEATS, PODS, PODS_ON_A_NODE = (500, 1000, 2500, 5000, 10000), 20, 3, 2, 10
MAX_EXPONENT, MAX_SHARE = 1.4, 0.6
SPACE, SCHEDULER, TIME = "scale", "gangs", "2026-01-01T00:00:00Z"
INITIALIZED = {"type": "Initialized", "status": "True", "reason": "Ready", "lastTransitionTime": TIME}


def pod(gang: int, index: int, node: str) -> model.Pod:
    name = f"set-{gang}-worker-{index}"
    metadata = {"name": name, "namespace": SPACE, "uid": name, "labels": {"grove.io/podgang": f"set-{gang}"}}
    container = {"name": "main", "resources": {"requests": {"cpu": "10m"}}}
    spec = {"schedulerName": SCHEDULER, "nodeName": node, "containers": [container]}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}, model.Pod)


def podgang(gang: int, pods: list[model.Pod]) -> PodGang:
    references = [{"namespace": SPACE, "name": pod.metadata.name} for pod in pods]
    group = {"name": "worker", "minReplicas": len(pods), "podReferences": references}
    metadata = {"name": f"set-{gang}", "namespace": SPACE, "creationTimestamp": TIME}
    document: dict[str, Any] = {"metadata": metadata, "spec": {"podgroups": [group]}}
    return msgspec.convert({**document, "status": {"conditions": [INITIALIZED]}}, PodGang)


def create_nodes(count: int) -> list[model.Node]:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    manifests = nodes.manifests("tiny", count)
    return [msgspec.convert({**node, "status": {**node["status"], **ready}}, model.Node) for node in manifests]


def measure_cycle(gangs: int) -> float:
    """Return the CPU seconds of the fastest of REPEATS cycles."""
    nodes = create_nodes(-(-gangs * PODS // PODS_ON_A_NODE))
    names = [host.metadata.name for host in nodes]
    pods = {
        gang: [
            pod(gang, index, names[gang * PODS // PODS_ON_A_NODE] if gang < gangs - WAITING else "")
            for index in range(PODS)
        ]
        for gang in range(gangs)
    }
    items = {gang: podgang(gang, gang_pods) for gang, gang_pods in pods.items()}
    all_pods = [member for gang_pods in pods.values() for member in gang_pods]
    durations = []
    for _ in range(REPEATS):
        start = time.process_time()
        own_gangs = [gang for gang, item in items.items() if snapshot.is_responsible(item, SCHEDULER)]
        candidates = [snapshot.gang(items[gang], pods[gang], SCHEDULER, {}) for gang in own_gangs]
        capacity = Capacity(nodes, snapshot.used_resources(all_pods, {}))
        plan = cycle.plan(candidates, capacity, snapshot.other_pods(all_pods, {gang.name for gang in candidates}, ()))
        durations.append(time.process_time() - start)
        assert len(plan.bindings) == WAITING * PODS, "all that wait are placed"
    return min(durations)


def main() -> int:
    """Print the figures, and return the exit code."""
    results = {gangs: measure_cycle(gangs) for gangs in SIZES}
    shares = {
        gangs: duration / (duration + max(SETTLE_SECONDS, SETTLE_PER_GANG * gangs))
        for gangs, duration in results.items()
    }
    for gangs, duration in results.items():
        sys.stdout.write(
            f"{gangs:6} gangs: {duration * 1000:6.0f} ms, {shares[gangs]:.0%} of a core while gangs arrive\n"
        )
    logs = [math.log(gangs) for gangs in results], [math.log(duration) for duration in results.values()]
    exponent = statistics.linear_regression(*logs).slope
    sys.stdout.write(f"grows with gangs^{exponent:.2f}\n")
    return int(exponent > MAX_EXPONENT or max(shares.values()) > MAX_SHARE)


if __name__ == "__main__":
    sys.exit(main())
