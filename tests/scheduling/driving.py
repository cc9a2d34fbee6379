"""The reference's scheduler on an instance of the oracle: scheduling cycles until nothing changes, as in a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from conformance.grove.scheduling.instance import Gang, Instance, Node, SchedulingOutcome
from reference_impl.scheduler import cycle, model
from reference_impl.scheduler import gang as ours
from reference_impl.scheduler.capacity import Capacity

RESOURCES = {"gpus": "nvidia.com/gpu", "cpu": "cpu", "memory": "memory"}
AMPLE_AMOUNT = "1000000"
DEMANDS = {"nodeSelector", "tolerations", "nodeAffinity"}
"""The demands that the driver can give to its pods."""
MAX_CYCLES = 12


def settled_outcome(instance: Instance, levels: tuple[str, ...] = ()) -> SchedulingOutcome:
    """Return the outcome at which the scheduler comes to rest. Evicted pods terminate immediately, and evicted pods of
    gangs are recreated."""
    return Driver(instance, levels).run()


def is_drivable(instance: Instance) -> bool:
    """Return whether the driver can give its pods all demands of an instance. Other demands are tested in a single
    cycle (test_manifests)."""
    return all(group.demands.keys() <= DEMANDS for gang in instance.gangs for group in gang.groups)


class Driver:
    def __init__(self, instance: Instance, levels: tuple[str, ...] = ()) -> None:
        self.instance, self.levels = instance, levels
        self.nodes = [node(item) for item in instance.nodes]
        self.old = {
            pod.name: (pod, pending_pod(pod.name, pod.requests, {}, instance.priority(pod))) for pod in instance.running
        }
        self.evicted: set[str] = set()
        self.bound: dict[str, tuple[str, str, model.Pod, str]] = {}
        """The gang, the group, the pod and the node of each new pod, by name."""
        self.preemptors: set[str] = set()
        self.plans: list[cycle.Plan] = []

    def run(self) -> SchedulingOutcome:
        for _ in range(MAX_CYCLES):
            plan = self.run_cycle()
            if not plan.bindings and not plan.evictions:
                return self.outcome()
        raise AssertionError(f"no rest after {MAX_CYCLES} cycles")

    def run_cycle(self) -> cycle.Plan:
        gangs = [self.gang(item) for item in self.instance.gangs]
        running = [(running, pod) for name, (running, pod) in self.old.items() if name not in self.evicted]
        used: dict[str, Counter[str]] = {}
        for node, pod in [(r.node, p) for r, p in running if r.occupies_node] + [
            (n, p) for *_, p, n in self.bound.values()
        ]:
            used.setdefault(node, Counter()).update(pod.requests)
        other_pods = cycle.OtherPods(
            evictable=[(p, r.node) for r, p in running if not r.gang and r.state == "running"],
            terminating=[(p, r.node) for r, p in running if r.state == "terminating"],
            preemptors=self.preemptors,
        )
        plan = cycle.plan(gangs, Capacity(self.nodes, {name: dict(total) for name, total in used.items()}), other_pods)
        self.plans.append(plan)
        for gang in gangs:
            for group in gang.groups:
                bound_uids = {pod.metadata.uid for pod, _ in plan.bindings}
                for pod, node_name in group.members:
                    if pod.metadata.uid in bound_uids:
                        self.bound[pod.metadata.name] = (gang.name, group.name, pod, node_name)
        for eviction in plan.evictions:
            name = eviction.pod.metadata.name
            self.preemptors.add(eviction.preemptor)
            if name in self.old:
                self.evicted.add(name)
            else:
                del self.bound[name]
        return plan

    def gang(self, item: Gang) -> ours.Gang:
        groups = []
        for group in item.groups:
            members = [
                (pod, running.node)
                for name, (running, pod) in self.old.items()
                if (running.gang, running.group) == (item.name, group.name)
                and running.is_active
                and name not in self.evicted
            ]
            members += [(pod, at) for g, n, pod, at in self.bound.values() if (g, n) == (item.name, group.name)]
            waiting = []
            for number in range(group.desired):
                name = f"{item.name}-{group.name}-new-{number}"
                if len(members) + len(waiting) < group.desired and name not in self.bound:
                    waiting.append(pending_pod(name, group.requests, group.demands, item.priority))
            groups.append(ours.Group(group.name, group.minimum, waiting, members))
        names = [group.name for group in item.groups]
        levels = ((scope.groups, scope.required, scope.preferred) for scope in item.scopes)
        return ours.Gang(item.name, groups, ours.scopes(names, *levels), item.priority, item.base, self.levels)

    def outcome(self) -> SchedulingOutcome:
        placed: dict[str, dict[str, Counter[str]]] = {}
        for gang, group, _, node in self.bound.values():
            placed.setdefault(gang, {}).setdefault(group, Counter())[node] += 1
        return SchedulingOutcome(placed, frozenset(self.evicted), recreated=True)


def node(item: Node) -> model.Node:
    allocatable = {
        resource: str(item.capacity[name]) if name in item.capacity else AMPLE_AMOUNT
        for name, resource in RESOURCES.items()
    }
    return msgspec.convert(
        {
            "metadata": {"name": item.name, "labels": dict(item.labels)},
            "spec": {"taints": [dict(taint) for taint in item.taints], "unschedulable": not item.schedulable},
            "status": {
                "allocatable": {**allocatable, "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
        model.Node,
    )


def pending_pod(name: str, asks: Mapping[str, int], demands: Mapping[str, Any], priority: int) -> model.Pod:
    requests = {RESOURCES[key]: str(amount) for key, amount in asks.items() if amount}
    spec: dict[str, Any] = {"containers": [{"resources": {"requests": requests}}], "priority": priority}
    spec |= {key: demands[key] for key in ("nodeSelector", "tolerations") if key in demands}
    if "nodeAffinity" in demands:
        required = {"nodeSelectorTerms": demands["nodeAffinity"]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return msgspec.convert({"metadata": {"name": name, "uid": name, "namespace": "ns"}, "spec": spec}, model.Pod)
