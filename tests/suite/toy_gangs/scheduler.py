"""A gang scheduler that keeps the promises of the Workload API, except the one that the cluster's `fault` names.

Each cycle tries all waiting groups and pods, oldest first. A pod goes to the first node with room for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformance.grove import pods
from conformance.grove.fields import condition, items, label, name, number, text
from conformance.testing.benches import pod_group_name
from toy_gangs.world import NAMESPACE, Object, World

Placement = list[tuple[Object, str]]
"""Pods with their nodes."""
SCHEDULED, INITIALLY_SCHEDULED = "PodScheduled", "PodGroupInitiallyScheduled"


class Room:
    """The free GPUs of each node, as if some pods were evicted and others placed."""

    def __init__(self, world: World, evicted: Sequence[Object] = ()) -> None:
        self.free = {name(node): int(node["status"]["allocatable"]["nvidia.com/gpu"]) for node in world.all("nodes")}
        for pod in world.all("pods"):
            if pods.is_bound(pod) and pod not in evicted:
                self.free[pods.node(pod)] -= gpus(pod)

    def copy(self) -> Room:
        """Return a copy, for a tentative placement."""
        other = Room.__new__(Room)
        other.free = dict(self.free)
        return other

    def take(self, pod: Object, nodes: Sequence[Object]) -> str:
        """Place a pod on the first of these nodes with room for it; return the node's name, empty if there is none."""
        selector = pod["spec"].get("nodeSelector", {})
        for node in nodes:
            fits = self.free[name(node)] >= gpus(pod) and all(label(node, key) == selector[key] for key in selector)
            if fits:
                self.free[name(node)] -= gpus(pod)
                return name(node)
        return ""


class Scheduler:
    """The scheduler of the pods that name it."""

    def __init__(self, world: World, scheduler: str) -> None:
        self.world, self.scheduler = world, scheduler
        self._failed: dict[str, int] = {}
        """Groups that could not be placed, with the number of nodes at that time."""

    def broken(self, fault: str) -> bool:
        """Return whether the scheduler breaks this promise."""
        return self.world.fault == fault

    def cycle(self) -> None:
        """Try once to place each waiting group and pod."""
        for one in [*self._roots(), *self.world.all("pods")]:
            if one["kind"] == "Pod":
                if self._is_pending(one) and not pod_group_name(one):
                    self._place_single(one)
            elif not self._place_group(one) and self.broken("a waiting gang blocks the queue"):
                return
        if self.broken("running gangs below their minimum are evicted"):
            self._evict_short_gangs()

    def _nodes(self) -> int:
        return len(self.world.all("nodes"))

    # -- what is there ---------------------------------------------------------------------------------------------

    def _roots(self) -> Iterator[Object]:
        for group in (*self.world.all("compositepodgroups"), *self.world.all("podgroups")):
            if not parent(group):
                yield group

    def _children(self, group: Object) -> list[Object]:
        every = (*self.world.all("compositepodgroups"), *self.world.all("podgroups"))
        return [child for child in every if parent(child) == name(group)]

    def _members(self, group: Object) -> list[Object]:
        """Return the pods of a group and of all groups below it, oldest first."""
        if group["kind"] == "PodGroup":
            return [pod for pod in self.world.all("pods") if pod_group_name(pod) == name(group)]
        return [pod for child in self._children(group) for pod in self._members(child)]

    def _leaves(self, group: Object) -> list[Object]:
        if group["kind"] == "PodGroup":
            return [group]
        return [leaf for child in self._children(group) for leaf in self._leaves(child)]

    def _is_pending(self, pod: Object) -> bool:
        return not pods.is_bound(pod) and not pods.gates(pod) and pod["spec"]["schedulerName"] == self.scheduler

    # -- placing -----------------------------------------------------------------------------------------------------

    def _place_single(self, pod: Object) -> None:
        nodes = self.world.all("nodes")
        if not (node := Room(self.world).take(pod, nodes)):
            self._evict(self._victims([pod], lambda room: room.take(pod, nodes)))
            node = Room(self.world).take(pod, nodes)
        if node:
            self._bind([(pod, node)])
        else:
            self._say(pod, SCHEDULED, "False", "Unschedulable")

    def _place_group(self, root: Object) -> bool:
        """Place a tree, or a group without a parent. Return False if it has to wait."""
        members = self._members(root)
        queue = [pod for pod in members if self._is_pending(pod)]
        if not queue or any(pods.gates(pod) for pod in members):
            return True
        if self._disagree(root, members, queue):
            return False
        if self.broken("a gang that failed is not tried again") and name(root) in self._failed:
            return False
        if self.broken("only nodes let a gang be tried again") and self._failed.get(name(root)) == self._nodes():
            return False
        if self.broken("a gang waits for its Workload") and "workloadRef" in root["spec"]:
            return False  # no scene creates one
        placement = None
        if not self.broken("a gang evicts before it looks for room"):
            placement = self._placed(root, Room(self.world), self.world.all("nodes"))
        if placement is None and self._may_evict(root, queue):
            victims = self._victims(queue, lambda room: self._placed(root, room, self.world.all("nodes")))
            self._evict(victims)
            placement = self._placed(root, Room(self.world), self.world.all("nodes"))
        if placement is None:
            self._failed[name(root)] = self._nodes()
            self._refuse(root, queue, "Unschedulable")
            return False
        self._bind(placement)
        self._report(root)
        return True

    def _placed(self, group: Object, room: Room, nodes: Sequence[Object]) -> Placement | None:
        """Return the placement of a group's waiting pods, and take their room; None if too few of them fit."""
        if not (key := topology(group)):
            return self._placed_within(group, room, nodes)
        present = [pod for pod in self._members(group) if pods.is_bound(pod)]
        domains = sorted({label(node, key) for node in nodes} - {""})
        if present and not self.broken("a Pod that joins is placed in any domain"):
            domains = [label(self.world.objects["nodes"][pods.node(present[0])], key)]
        for domain in domains[:1] if self.broken("only the first domain is tried") else domains:
            tried = room.copy()
            placement = self._placed_within(group, tried, [node for node in nodes if label(node, key) == domain])
            if placement is not None:
                room.free = tried.free
                return placement
        return None

    def _placed_within(self, group: Object, room: Room, nodes: Sequence[Object]) -> Placement | None:
        if group["kind"] == "PodGroup":
            return self._placed_pods(group, room, nodes)
        placement: Placement = []
        placed, children = 0, self._children(group)
        needed = len(children) if self.broken("all children of a tree are required") else minimum(group)
        for child in children:
            tried = room.copy()
            if (of_child := self._placed(child, tried, nodes)) is not None:
                room.free, placed = tried.free, placed + 1
                placement += of_child
        return placement if placed >= needed else None

    def _placed_pods(self, group: Object, room: Room, nodes: Sequence[Object]) -> Placement | None:
        members, placement = self._members(group), Placement()
        for pod in members:
            unused = [node for node in nodes if name(node) not in {node for _, node in placement}]
            one_each = self.broken("a node gets one Pod of a gang")
            if self._is_pending(pod) and (node := room.take(pod, unused if one_each else nodes)):
                placement.append((pod, node))
        needed = len(members) if self.broken("all Pods of a gang are required") else minimum(group)
        if self.broken("a gang is placed in part"):
            needed = 0
        return placement if sum(map(pods.is_bound, members)) + len(placement) >= needed else None

    # -- agreement ---------------------------------------------------------------------------------------------------

    def _disagree(self, root: Object, members: list[Object], queue: list[Object]) -> bool:
        """Refuse the pending pods of a tree whose pods differ in scheduler, priority or preemption policy, or are in
        two domains.

        Return whether the tree was refused.
        """
        bound = [pod for pod in members if pods.is_bound(pod)]
        domains = {
            label(self.world.objects["nodes"][pods.node(pod)], topology(root)) for pod in bound if topology(root)
        }
        wrong = (
            (
                len({pod["spec"]["schedulerName"] for pod in members}) > 1
                and not self.broken("two schedulers share a gang")
            )
            or any(priority(pod) != priority(root) for pod in members)
            or len({policy(pod) for pod in members}) > 1
            or len(domains) > 1
        )
        if wrong:
            other = self.broken("Pods of another priority are called unschedulable")
            self._refuse(root, queue, "Unschedulable" if other else "SchedulerError", warned=True)
        return wrong

    def _refuse(self, root: Object, queue: list[Object], reason: str, *, warned: bool = False) -> None:
        for pod in queue:
            if self._say(pod, SCHEDULED, "False", reason) and warned:
                self._warn(pod)
        if self.broken("nodes stay nominated") and not text(queue[0], "status", "nominatedNodeName"):
            queue[0]["status"]["nominatedNodeName"] = name(self.world.all("nodes")[0])
            self.world.change("pods", queue[0])
        for leaf in self._leaves(root):
            if text(condition(leaf, INITIALLY_SCHEDULED), "status") != "True":
                self._say(leaf, INITIALLY_SCHEDULED, "False", reason)

    def _report(self, root: Object) -> None:
        for leaf in self._leaves(root):
            members = self._members(leaf)
            if minimum(leaf) <= sum(map(pods.is_bound, members)):
                self._say(leaf, INITIALLY_SCHEDULED, "True", "Scheduled")
            for pod in members:
                if self._is_pending(pod):
                    self._say(pod, SCHEDULED, "False", "Unschedulable")

    # -- eviction ----------------------------------------------------------------------------------------------------

    def _may_evict(self, root: Object, queue: list[Object]) -> bool:
        forbidden = {
            "gangs evict nobody": root["kind"] == "PodGroup" and not topology(root),
            "trees evict nobody": root["kind"] == "CompositePodGroup",
            "gangs with a topology key evict nobody": bool(topology(root)),
        }
        never = policy(queue[0]) == "Never" and not self.broken("a gang that must not evict does")
        return not never and not forbidden.get(self.world.fault, False)

    def _victims(self, queue: Sequence[Object], fits: Any) -> list[Object]:
        """Return pods of lower priority whose eviction makes the queue fit, as few and with as low priorities as
        possible; none if the queue does not fit even then."""
        limit = priority(queue[0])
        running = [pod for pod in self.world.all("pods") if pods.is_bound(pod) and priority(pod) < limit]
        units = [self._unit(pod) for pod in sorted(running, key=priority, reverse=True)]
        victims = [pod for unit in units for pod in unit]
        if not fits(Room(self.world, victims)):
            return []
        if self.broken("a gang evicts before it looks for room"):
            return victims
        for unit in units:
            fewer = [pod for pod in victims if pod not in unit]
            if fits(Room(self.world, fewer)):
                victims = fewer
        return victims

    def _unit(self, pod: Object) -> list[Object]:
        """Return the bound pods of the highest group above a pod with the disruptionMode `all`, or the pod alone."""
        unit, group = [pod], self.world.objects["podgroups"].get(pod_group_name(pod))
        while group is not None:
            if "all" in group["spec"].get("disruptionMode", {}):
                unit = [member for member in self._members(group) if pods.is_bound(member)]
            group = self.world.objects["compositepodgroups"].get(parent(group))
        return unit

    def _evict(self, victims: Sequence[Object]) -> None:
        for pod in {name(victim): victim for victim in victims}.values():
            self.world.delete("pods", name(pod))

    def _evict_short_gangs(self) -> None:
        for leaf in self.world.all("podgroups"):
            bound = [pod for pod in self._members(leaf) if pods.is_bound(pod)]
            if 0 < len(bound) < minimum(leaf):
                self._evict(bound)

    # -- writing -----------------------------------------------------------------------------------------------------

    def _bind(self, placement: Placement) -> None:
        for pod, node in placement:
            pod["spec"]["nodeName"] = node
            pod.setdefault("status", {})["phase"] = "Running"
            self._say(pod, SCHEDULED, "True", "")

    def _say(self, obj: Object, kind: str, status: str, reason: str) -> bool:
        """Set a condition, and return whether it has changed."""
        condition = {"type": kind, "status": status, "reason": reason}
        conditions = obj.setdefault("status", {}).setdefault("conditions", [])
        if condition in conditions:
            return False
        conditions[:] = [entry for entry in conditions if entry["type"] != kind] + [condition]
        self.world.change("pods" if obj["kind"] == "Pod" else "podgroups", obj)
        return True

    def _warn(self, pod: Object) -> None:
        about = {"kind": "Pod", "name": name(pod), "namespace": NAMESPACE}
        event = {"kind": "Event", "metadata": {"name": f"about-{name(pod)}"}, "type": "Warning"}
        if self.world.answer(event).accepted:
            self.world.create({**event, "reason": "FailedScheduling", "regarding": about})


def gpus(pod: Object) -> int:
    """Return how many GPUs a pod requests."""
    return int(pod["spec"]["containers"][0]["resources"]["requests"].get("nvidia.com/gpu", 0))


def priority(obj: Object) -> int:
    """Return the priority of a pod or a group."""
    return int(obj["spec"]["priority"])


def policy(obj: Object) -> str:
    """Return the preemption policy of a pod or a group."""
    return str(obj["spec"]["preemptionPolicy"])


def parent(group: Object) -> str:
    """Return the name of the composite above a group; empty for a root."""
    return text(group, "spec", "parentCompositePodGroupName")


def minimum(group: Object) -> int:
    """Return minCount or minGroupCount; 0 for the basic policy."""
    gang = ("spec", "schedulingPolicy", "gang")
    return number(group, *gang, "minCount" if group["kind"] == "PodGroup" else "minGroupCount") or 0


def topology(group: Object) -> str:
    """Return the topology key of a group; empty if it has none."""
    constraints = items(group, "spec", "schedulingConstraints", "topology")
    return text(constraints[0], "key") if constraints else ""
