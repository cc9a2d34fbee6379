"""One run of an instance in one form: the objects that are created, and the actions of an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.grove import pods as pod_fields
from conformance.grove.fields import label, terminating
from conformance.grove.labels import GATE
from conformance.grove.scheduling import instance as oracle
from conformance.grove.scheduling import manifests
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.lab.gaps import device_claims, forms
from conformance.lab.gaps.forms import Form
from conformance.lab.gaps.instances import Counts, GapInstance, ServiceComponent
from conformance.suite.scenes.api import Object
from conformance.testing import workload_groups
from conformance.testing.benches import Bench
from conformance.testing.scene import SceneEnvironment
from conformance.testing.workload_groups import Leaf

CREATION_TIME = "2026-01-01T00:00:00Z"
KUBE_SCHEDULER = "default-scheduler"


class InstanceRun:
    """An instance on separate nodes. Pods are created with a gate, and the gates are removed pod by pod in the order of
    the components, as an operator does it. No scheduler gains an advantage by this (WL37-B42)."""

    def __init__(self, env: SceneEnvironment, form: Form, instance: GapInstance, run: int = 1) -> None:
        self.form, self.instance, self.run = form, instance, run
        uses_kube_scheduler = form.api != forms.PODGANGS
        self.bench = Bench(
            env,
            f"{form.name[0]}{run}-{instance.name}",
            trees=form.api in (forms.TREES, forms.SETS),
            groups=form.api in (forms.GROUPS, forms.TREES, forms.SETS),
            scheduler=KUBE_SCHEDULER if uses_kube_scheduler else "",
        )
        self.leaves = [leaf for _, leaves in forms.leaves_by_component(instance) for leaf in leaves]
        self.gated: list[str] = []
        """Pods whose gates are removed one by one, in this order, once everything exists."""
        self._env, self._scaled_pods = env, list[str]()
        self._occupied_nodes: list[tuple[str, int]] = []
        self._gangs, self._testbed = oracle.Instance((), forms.gangs(instance)), env.testbed(self.bench.name)

    # -- creation ----------------------------------------------------------------------------------------------------

    def nodes(self) -> list[Object]:
        """Return the nodes, and remember which of them are occupied."""
        node_manifests: list[Object] = []
        for group in self.instance.nodes:
            labels = {level: value for level in ("rack", "block") if (value := getattr(group, level))}
            group_nodes = self.bench.node_manifests(*[group.gpus] * group.count, **labels)
            if group.profile:
                group_nodes = [device_claims.offering_devices(node, group) for node in group_nodes]
            self._occupied_nodes += [(node["metadata"]["name"], group.gpus) for node in group_nodes if group.taken]
            node_manifests += group_nodes
        return node_manifests

    def create(self) -> None:
        """Create what groups and pods need: pods on the occupied nodes, claims, and the objects to which PodGangs
        refer."""
        for claim in device_claims.claim_objects(self.bench.name, self.instance):
            self._env.create(claim)
        for number, (node, gpus) in enumerate(self._occupied_nodes):
            self.bench.create_plain_pod(f"other-{number}", gpus=gpus, node=node)
        if self.form.api == forms.PODGANGS:
            self.bench.create_priority_classes(0)
            if (binding := manifests.topology_binding(self._gangs, self._testbed)) is not None:
                self._env.create(binding)

    def groups(self) -> list[Object]:
        """Return the groups in the order in which they are to be created."""
        if self.form.api == forms.PODGANGS:
            return [
                {**gang, **manifests.gang_status(CREATION_TIME)} for gang in manifests.gangs(self._gangs, self._testbed)
            ]
        roots = [] if self.form.api == forms.PLAIN else forms.roots(self.form, self.instance)
        return [group for root in roots for group in workload_groups.groups(root, self.bench.target)]

    def pods(self) -> list[Object]:
        """Return the pods in the order in which they are to be created, each with a gate."""
        pods = self._pods_of_gangs() if self.form.api == forms.PODGANGS else self._pods_of_groups()
        components = self._components
        for pod in pods:
            component = components[pod["metadata"]["name"]]
            device_claims.add_claim(pod["spec"], self.bench.name, component)
        return pods

    def take_pods_to_ungate(self, view: View) -> Sequence[str]:
        """Return the pods of scaled gangs, once, when the minimum of the base gang is bound: their gates are to be
        removed."""
        waiting_pods, self._scaled_pods = self._scaled_pods, []
        if waiting_pods and self.instance.bound_part(self.counts(view)) == "minimum":
            return waiting_pods
        self._scaled_pods = waiting_pods
        return ()

    def lose_pods(self) -> None:
        """Delete the first pod of each component that loses one, occupy the node of the first deleted pod, and recreate
        the pods."""
        env, view = self._env, self._env.history.view()
        leaves = [
            component_leaves[0]
            for component, component_leaves in forms.leaves_by_component(self.instance)
            if component.name in self.instance.lost
        ]
        names = [self._pod(leaf, 0) for leaf in leaves]
        lost_pods = [dict(view.get("pods", name) or {}) for name in names]
        for name in names:
            env.delete("pods", name)
        env.wait_for(
            f"{self.bench.name} has lost pods",
            lambda view: all(view.get("pods", name) is None for name in names) or Unmet("a deleted pod is still there"),
        )
        self.bench.create_plain_pod("taker", gpus=leaves[0].gpus, node=pod_fields.node(lost_pods[0]))
        for pod in lost_pods:
            env.create(_without_added_fields(pod))

    def witness(self, pod: str) -> None:
        """Show that the scheduler has had its chance; see `Bench.witness`. A scheduler for PodGangs does not schedule
        plain pods."""
        if self.form.api != forms.PODGANGS:
            self.bench.bind_witness(pod)

    # -- observation -------------------------------------------------------------------------------------------------

    def counts(self, view: View) -> Counts:
        """Return the number of bound pods of each component, by PodGroup."""
        return forms.bound_counts(self.instance, [len(self.bound_pods(view, leaf)) for leaf in self.leaves])

    def bound_pods(self, view: View, leaf: Leaf) -> list[Mapping[str, Any]]:
        """Return the bound pods of a group."""
        pods = (view.get("pods", self._pod(leaf, index)) for index in range(leaf.pods))
        return [pod for pod in pods if pod is not None and is_running(pod)]

    def count_devices(self, view: View) -> int | None:
        """Return the number of devices that are allocated, or None if no pod claims any."""
        return device_claims.count_allocated(view, self.bench.name) if self.instance.claims_devices else None

    def find_violation(self, view: View) -> str:
        """Return how the devices or the domains of the bound pods violate the constraints, or an empty string."""
        bound_pods = [pod for leaf in self.leaves for pod in self.bound_pods(view, leaf)]
        return device_claims.find_violation(view, self.bench.name, bound_pods) or self._find_domain_violation(view)

    def _find_domain_violation(self, view: View) -> str:
        racks = [
            (leaf.name, self._domains(view, leaf, manifests.LABEL_KEYS["rack"])) for leaf in self.leaves if leaf.key
        ]
        blocks = {block for leaf in self.leaves for block in self._domains(view, leaf, manifests.LABEL_KEYS["block"])}
        if self.instance.block and len(blocks) > 1:
            return f"in {len(blocks)} blocks"
        split_leaves = [name for name, domains in racks if len(domains) > 1]
        return f"{split_leaves[0]} is in several racks" if split_leaves else ""

    # -- details -----------------------------------------------------------------------------------------------------

    @property
    def _components(self) -> dict[str, ServiceComponent]:
        """Return the component of each pod by the pod's name."""
        return {
            self._pod(leaf, index): component
            for component, leaves in forms.leaves_by_component(self.instance)
            for leaf in leaves
            for index in range(leaf.pods)
        }

    def _pods_of_groups(self) -> list[Object]:
        pods = [pod for leaf in self.leaves for pod in workload_groups.pods(leaf, self.bench.target, gated=True)]
        for pod in pods if self.form.api == forms.PLAIN else ():
            del pod["spec"]["schedulingGroup"]
        self.gated = [pod["metadata"]["name"] for pod in pods]
        return pods

    def _pods_of_gangs(self) -> list[Object]:
        pods = manifests.pods(self._gangs, self._testbed)
        for pod in pods:
            gates = pod["spec"].get("schedulingGates")
            (self._scaled_pods if gates else self.gated).append(pod["metadata"]["name"])
            pod["spec"]["schedulingGates"] = [{"name": GATE}]
        return pods

    def _pod(self, leaf: Leaf, index: int) -> str:
        if self.form.api != forms.PODGANGS:
            return self.bench.target.name(leaf.name, index)
        [gang] = [g for g in forms.gangs(self.instance) for group in g.groups if group.name == leaf.name]
        return self._testbed.name(gang.name, leaf.name, str(index))

    def _domains(self, view: View, leaf: Leaf, key: str) -> set[str]:
        nodes = [view.get("nodes", pod_fields.node(pod)) for pod in self.bound_pods(view, leaf)]
        return {label(node, key) for node in nodes}


def is_running(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is bound and not being deleted."""
    return pod_fields.is_bound(pod) and not terminating(pod)


def _without_added_fields(pod: Mapping[str, Any]) -> Object:
    """Return a pod as it was before its creation, without the fields that the API server and the scheduler have
    added."""
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace", "labels")}
    added_fields = ("nodeName", "schedulingGates", "priority", "preemptionPolicy")
    spec = {key: value for key, value in pod["spec"].items() if key not in added_fields}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
