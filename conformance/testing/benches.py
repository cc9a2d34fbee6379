"""A bench: one instance of Kubernetes' gang scheduling in a scene, on its own nodes.

Several benches of a scene are judged side by side, because no pod of one bench fits on a node of another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.grove import pods as pod_fields
from conformance.grove.fields import condition, label, terminating, text
from conformance.grove.kinds import COMPOSITES, PODGROUPS
from conformance.grove.labels import BY_HAND
from conformance.grove.scheduling import manifests
from conformance.grove.scheduling.instance import HOST, Instance, Node
from conformance.history.query import Predicate, Unmet
from conformance.history.view import View
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.scene_environment import SceneEnvironment
from conformance.testing import workload_groups
from conformance.testing.workload_groups import Leaf, Object, Root, WorkloadTarget

GROUP_SCHEDULED = {"v1alpha2": "PodGroupScheduled", "v1beta1": "PodGroupInitiallyScheduled"}
"""The condition type of a PodGroup, by API version (WL-F09)."""
POD_SCHEDULED = "PodScheduled"
BLOCK, RACK = manifests.LABEL_KEYS["block"], manifests.LABEL_KEYS["rack"]
"""The node label keys of the topology levels."""
NOT_SERVED_MESSAGE = (
    "the cluster serves no {kind}: it needs Kubernetes 1.37 and its gates (cluster up --kubernetes 1.37 --features "
    "workload-api, or run with the same options)"
)


def priority_class_name(priority: int) -> str:
    """Return the name of the PriorityClass with this value."""
    return manifests.priority_class(priority)


def pod_group_name(pod: Mapping[str, Any]) -> str:
    """Return the name of the PodGroup that a pod references; empty if there is none."""
    return text(pod, "spec", "schedulingGroup", "podGroupName")


def require_own_control_plane(env: SceneEnvironment) -> None:
    """Raise Blocked unless the judged scheduler is kube-scheduler, because otherwise the control plane is not a part of
    the implementation."""
    if not env.implementation.is_kube_scheduler:
        raise Blocked("the control plane answers, which is no part of the implementation", "circumstances")


class Bench:
    """The nodes, groups and pods of one instance. Each node has the requested number of GPUs, and no other resource is
    scarce."""

    def __init__(
        self, env: SceneEnvironment, name: str, *, trees: bool = False, groups: bool = True, scheduler: str = ""
    ) -> None:
        """Raise Blocked if the cluster does not serve PodGroups (unless not `groups`) or, with `trees`,
        CompositePodGroups. `scheduler` is the scheduler name of the pods, by default that of the judged
        implementation."""
        self.env, self.name = env, name
        for kind in [*([PODGROUPS] if groups else []), *([COMPOSITES] if trees else [])]:
            if not env.served(kind):
                raise Blocked(NOT_SERVED_MESSAGE.format(kind=kind), "circumstances")
        self._nodes = 0
        self._testbed = env.testbed(name)
        self.target = WorkloadTarget(
            env.namespace,
            name,
            scheduler or self._testbed.scheduler,
            labels={BY_HAND: name},
            selector=self._testbed.selector,
            tolerations=self._testbed.tolerations,
            pod_groups=env.served(PODGROUPS),
        )

    # -- making ------------------------------------------------------------------------------------------------------

    def add_nodes(self, *gpus: int, **labels: str) -> list[str]:
        """Add a node for each number of GPUs and wait until the nodes are Ready. `labels` sets their `rack` and
        `block`."""
        return self.env.create_nodes(self.node_manifests(*gpus, **labels))

    def node_manifests(self, *gpus: int, **labels: str) -> list[Object]:
        """Return the next nodes without adding them, so that many benches can add their nodes at the same time."""
        names = [f"n{self._nodes + index}" for index in range(len(gpus))]
        self._nodes += len(gpus)
        nodes = [Node(name, {"gpus": n}, {HOST: name, **labels}) for name, n in zip(names, gpus, strict=True)]
        return manifests.nodes(Instance(tuple(nodes), ()), self._testbed)

    def create_groups(self, *roots: Root) -> None:
        """Create groups and trees, parents first."""
        for root in roots:
            for group in workload_groups.groups(root, self.target):
                self.env.create(group)

    def create_child(self, root: Root, parent: Root) -> None:
        """Create one group as a child of another group."""
        self.env.create(workload_groups.group(root, self.target, parent.name))

    def create_pods(self, leaf: Leaf, first: int = 0, count: int | None = None, *, gated: bool = False) -> None:
        """Create pods of a group one after the other. By default, create all of them."""
        for pod in workload_groups.pods(leaf, self.target, first, count, gated=gated):
            self.env.create(pod)

    def create_plain_pod(self, pod: str, gpus: int = 1, priority: str = "", node: str = "") -> None:
        """Create a pod that belongs to no group."""
        self.env.create(workload_groups.plain_pod(pod, self.target, gpus, priority, node))

    def submit(self, *roots: Root) -> None:
        """Create groups and their pods with a gate, then remove the gates one by one. kube-scheduler does not schedule
        any pod of a tree before the last gate has been removed, so it sees the whole tree at once (WL37-B42)."""
        self.create_groups(*roots)
        leaves = [leaf for root in roots for leaf in root.leaves]
        for leaf in leaves:
            self.env.create_all(workload_groups.pods(leaf, self.target, gated=True))
        for leaf in leaves:
            for index in range(leaf.pods):
                self.ungate(leaf, index)

    def ungate(self, leaf: Leaf, index: int) -> None:
        """Remove the scheduling gate of a pod."""
        self.env.patch("pods", self.target.name(leaf.name, index), {"spec": {"schedulingGates": None}})

    def delete_pod(self, leaf: Leaf, index: int) -> None:
        """Delete one pod of a group."""
        self.env.delete("pods", self.target.name(leaf.name, index))

    def bind_witness(self, pod: str = "witness") -> None:
        """Create a plain pod that requests no GPU and wait until it is bound, so that the scheduler has had a chance to
        schedule everything that was created before. Then wait until nothing changes."""
        name = self.target.name(pod)
        self.create_plain_pod(pod, gpus=0)
        self.env.wait_for(f"{name} bound", lambda view: pod_fields.is_bound(view.get("pods", name) or {}))
        self.env.quiet(1, real=True)

    def create_priority_classes(self, *priorities: int) -> None:
        """Create the PriorityClasses with these values unless they exist. PriorityClasses are cluster-scoped."""
        for value in priorities:
            self.create_priority_class({"metadata": {"name": priority_class_name(value)}, "value": value})

    def create_priority_class(self, fields: Object) -> None:
        """Create a PriorityClass unless one with its name exists."""
        priority_class = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", **fields}
        if self.env.dry_run.ask(self.env.dry_run.create(priority_class)).accepted:
            self.env.create(priority_class)
        else:  # an earlier scene created it, but whoever repeats this scene alone must create it
            self.env.acts.append(("create", priority_class))

    def require_scheduler(self, name: str) -> None:
        """Raise Blocked unless the judged scheduler also has this name. Tests cannot start another scheduler. Only
        kube-scheduler can have several names, and it is not judged if the implementation has its own scheduler."""
        if not self.env.implementation.is_kube_scheduler:
            raise Blocked(f"the judged scheduler is not known to have the name {name} too", "circumstances")
        pod = workload_groups.plain_pod("by-another", self.target, gpus=0)
        self.env.create({**pod, "spec": {**pod["spec"], "schedulerName": name}})
        bound = self.are_running("by-another")
        if not bound(self.env.settled(f"a Pod of {name} is bound", bound, 10)):
            raise Blocked(f"no scheduler of the cluster is called {name}", "circumstances")

    # -- looking -----------------------------------------------------------------------------------------------------

    def live_pods(self, view: View, leaf: Leaf) -> list[Mapping[str, Any]]:
        """Return the pods of a group that are not being deleted."""
        group = self.target.name(leaf.name)
        return [
            pod
            for pod in view.list("pods", {BY_HAND: self.name})
            if not terminating(pod) and pod_group_name(pod) == group
        ]

    def bound_counts(self, view: View, *leaves: Leaf) -> tuple[int, ...]:
        """Return the number of bound pods of each group."""
        return tuple(sum(map(pod_fields.is_bound, self.live_pods(view, leaf))) for leaf in leaves)

    def is_running(self, view: View, pod: str) -> bool:
        """Return whether a pod exists, is bound, and is not being deleted."""
        pod_object = view.get("pods", self.target.name(pod))
        return pod_object is not None and pod_fields.is_bound(pod_object) and not terminating(pod_object)

    def domains(self, view: View, leaf: Leaf, key: str) -> set[str]:
        """Return the values of a node label on the nodes of a group's bound pods."""
        bound_nodes = (
            view.get("nodes", pod_fields.node(pod)) for pod in self.live_pods(view, leaf) if pod_fields.is_bound(pod)
        )
        return {label(node, key) for node in bound_nodes}

    def reason(self, view: View, resource: str, name: str) -> str:
        """Return `status/reason` of the scheduling condition of a pod or a PodGroup; empty if the condition is
        missing."""
        condition_type = (
            POD_SCHEDULED if resource == "pods" else GROUP_SCHEDULED[self.target.pod_groups.partition("/")[2]]
        )
        scheduling_condition = condition(view.get(resource, self.target.name(name)), condition_type)
        return (
            f"{text(scheduling_condition, 'status')}/{text(scheduling_condition, 'reason')}"
            if scheduling_condition
            else ""
        )

    # -- conditions to wait for and to judge -------------------------------------------------------------------------

    def has_bound(self, *counts: tuple[Leaf, int]) -> Predicate:
        """Each group has at least this number of bound pods."""

        def check(view: View) -> bool | Unmet:
            leaves = [leaf for leaf, _ in counts]
            actual = self.bound_counts(view, *leaves)
            has_shortfall = any(got < minimum for got, (_, minimum) in zip(actual, counts, strict=True))
            required = ", ".join(f"{leaf.name} {number}" for leaf, number in counts)
            return not has_shortfall or Unmet(f"{self.name}: bound are {self._summary(leaves, actual)} of {required}")

        return check

    def all_bound(self, *roots: Root) -> Predicate:
        """Every pod of the groups is bound."""
        return self.has_bound(*((leaf, leaf.pods) for root in roots for leaf in root.leaves))

    def none_bound(self, *roots: Root) -> Predicate:
        """No pod of the groups is bound."""
        leaves = [leaf for root in roots for leaf in root.leaves]

        def check(view: View) -> bool | Unmet:
            counts = self.bound_counts(view, *leaves)
            return not any(counts) or Unmet(f"{self.name}: bound are {self._summary(leaves, counts)}")

        return check

    def has_reason(self, resource: str, name: str, expected: str) -> Predicate:
        """The scheduling condition of a pod or a PodGroup is `status/reason`, or `status` with any reason."""

        def check(view: View) -> bool | Unmet:
            reason = self.reason(view, resource, name)
            matches = expected in (reason, reason.partition("/")[0])
            return matches or Unmet(f"{resource}/{self.target.name(name)} says {reason or 'nothing'}")

        return check

    def are_running(self, *pods: str) -> Predicate:
        """All these pods are bound, and none of them is being deleted."""

        def check(view: View) -> bool | Unmet:
            missing = [pod for pod in pods if not self.is_running(view, pod)]
            return not missing or Unmet(f"{self.name}: {', '.join(missing)} do not run")

        return check

    # -- within ------------------------------------------------------------------------------------------------------

    def _summary(self, leaves: Sequence[Leaf], counts: Sequence[int]) -> str:
        return ", ".join(f"{leaf.name} {count}" for leaf, count in zip(leaves, counts, strict=True))
