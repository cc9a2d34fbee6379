"""Convert an instance to Kubernetes objects, and the pods of a cluster to an outcome, to test a scheduler without an
operator.

The suite creates nodes, and the PodGangs and pods that an operator would create; pods of scaled gangs have Grove's gate
if the testbed says so. Running pods are created with a nodeName. Each PodGang gets `gang_status`, which reports to the
scheduler that all pods exist. A label of each object names its scenario.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from conformance.grove import labels
from conformance.grove.kinds import PODGANGS
from conformance.grove.restricted import restricted
from conformance.grove.scheduling.instance import (
    HOST,
    Gang,
    Group,
    Instance,
    Node,
    Resources,
    RunningPod,
    SchedulingOutcome,
)
from conformance.grove.scheduling.scenario_format import Scope

Manifest = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
LABEL_KEYS: Mapping[str, str] = MappingProxyType(
    {"block": "kubernetes.io/block", "rack": "kubernetes.io/rack", HOST: HOSTNAME}
)
_RESOURCES = {"gpus": "nvidia.com/gpu", "cpu": "cpu", "memory": "memory"}
_DEFAULT_CAPACITY = {"cpu": 1000, "memory": 10000}
FOREIGN_GATE = "example.com/held"
"""The scheduling gate of pods that the instance describes as gated."""


@dataclass(frozen=True)
class Testbed:
    """The nodes and the namespace of an instance. The pool's name is prepended to the names of nodes and domains, and
    `prefix` to the names of gangs and pods, so that many instances can run at the same time."""

    namespace: str
    pool: str
    scheduler: str
    prefix: str = ""
    selector: Mapping[str, str] = field(default_factory=dict)
    """Labels of the pool's nodes, which every pod selects."""
    taints: tuple[Mapping[str, str], ...] = ()
    """Taints of the pool's nodes."""
    tolerations: tuple[Mapping[str, str], ...] = ()
    """The tolerations that every pod needs for these nodes."""
    keys: Mapping[str, str] = field(default_factory=lambda: LABEL_KEYS)
    """Label key in the instance → label key of the nodes. Other keys are used unchanged."""
    gates: bool = False
    """Whether pods of scaled gangs start with Grove's gate, which the suite removes when an operator would (GS-03)."""

    def name(self, *parts: str) -> str:
        """Return the name of a gang, a group or a pod."""
        return object_name(*filter(None, (self.prefix,)), *parts)

    @property
    def scenario_label(self) -> Mapping[str, str]:
        """Return the label of every gang and pod."""
        return {labels.BY_HAND: self.prefix or self.pool}

    def node(self, name: str) -> str:
        """Return the name of a node of the instance."""
        return f"{self.pool}-{object_name(name)}"

    def key(self, name: str) -> str:
        """Return the node label key for a key of the instance."""
        return self.keys.get(name, name)

    def label(self, key: str, value: str) -> tuple[str, str]:
        """Return a node label for a key and value of the instance. Values of domains are unique to the pool."""
        return self.key(key), f"{self.pool}-{value}" if key in self.keys else value


def object_name(*parts: str) -> str:
    """Return the name of an object in lower case, because names in instances may have capital letters, which Kubernetes
    rejects."""
    return "-".join(parts).lower()


def priority_class(priority: int) -> str:
    """Return the name of the PriorityClass for a priority, including 0, because schedulers assume different priorities
    for a gang without a class (KAI-09)."""
    return f"conformance-{priority}"


def priority_classes(instance: Instance) -> list[Manifest]:
    """Return the PriorityClasses that an instance needs. They are cluster-scoped and may exist already."""
    priorities = {gang.priority for gang in instance.gangs} | {pod.priority for pod in instance.running}
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": priority_class(priority)},
            "value": priority,
        }
        for priority in sorted(priorities)
    ]


def nodes(instance: Instance, testbed: Testbed) -> list[Manifest]:
    """Return the nodes of an instance."""
    return [_node(node, testbed) for node in instance.nodes]


def gangs(instance: Instance, testbed: Testbed) -> list[Manifest]:
    """Return the PodGangs, with references to all their pods, including the running ones."""
    return [_gang(instance, gang, testbed) for gang in instance.gangs]


def topology_binding(instance: Instance, testbed: Testbed) -> Manifest | None:
    """Return the ClusterTopologyBinding that the gangs of an instance name, with only the levels that they use, because
    some schedulers expect every level on each node (KAI-07); None if the gangs have no constraints."""
    scopes = [scope for gang in instance.gangs for scope in gang.scopes]
    used_keys = {key for scope in scopes for key in (scope.required, scope.preferred) if key}
    levels = [{"domain": key, "key": testbed.key(key)} for key in LABEL_KEYS if key in used_keys]
    if not levels:
        return None
    metadata = {"name": testbed.pool}
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "metadata": metadata,
        "spec": {"levels": levels},
    }


def pods(instance: Instance, testbed: Testbed) -> list[Manifest]:
    """Return the pending pods: for each group, the desired pods that are not running yet, and the pods with foreign
    gates."""
    manifests = []
    for gang in instance.gangs:
        for group in gang.groups:
            pod_labels = _pod_labels(gang, group, testbed)
            gates = (labels.GATE,) if testbed.gates and gang.base else ()
            names = [(name, gates) for name in _pending_names(instance, gang, group, testbed)]
            names += [(name, (*gates, FOREIGN_GATE)) for name in _gated_names(gang, group, testbed)]
            for name, pod_gates in names:
                pod = _pod(name, group.requests, gang.priority, testbed, group.demands, pod_labels)
                manifests.append(_with_gates(pod, pod_gates))
    return manifests


def running_pods(instance: Instance, testbed: Testbed) -> list[Manifest]:
    """Return the running pods, already bound. The caller deletes the pods that are `terminating` (a finalizer holds
    them) and ends the pods that are `finished`."""
    manifests = []
    for pod in instance.running:
        gang = next((gang for gang in instance.gangs if gang.name == pod.gang), None)
        group = gang.group(pod.group) if gang else None
        pod_labels = _pod_labels(gang, group, testbed) if gang and group else {}
        demands = group.demands if group else {}
        manifest = _pod(testbed.name(pod.name), pod.requests, instance.priority(pod), testbed, demands, pod_labels)
        manifest["spec"]["nodeName"] = testbed.node(pod.node)
        manifests.append(manifest)
    return manifests


def recreated_name(pod: RunningPod, testbed: Testbed) -> str:
    """Return the name of the pod that replaces an evicted pod."""
    return testbed.name(pod.name, "again")


def recreated_pod(instance: Instance, pod: RunningPod, testbed: Testbed) -> Manifest:
    """Return the pod that replaces an evicted pod, as its owner creates it: without a node."""
    [manifest] = running_pods(replace(instance, running=(pod,)), testbed)
    spec = {key: value for key, value in manifest["spec"].items() if key != "nodeName"}
    return {**manifest, "metadata": {**manifest["metadata"], "name": recreated_name(pod, testbed)}, "spec": spec}


def recreated_references(podgroups: Iterable[Mapping[str, Any]], pod: RunningPod, testbed: Testbed) -> list[Manifest]:
    """Return the pod groups of a gang with a reference to the recreated pod instead of the evicted one."""
    old_name, new_name = testbed.name(pod.name), recreated_name(pod, testbed)

    def references(group: Mapping[str, Any]) -> list[Manifest]:
        return [{**ref, "name": new_name if ref["name"] == old_name else ref["name"]} for ref in group["podReferences"]]

    return [{**group, "podReferences": references(group)} for group in podgroups]


def gang_status(now: str) -> Manifest:
    """Return the PodGang status that reports that all pods exist (GS-F17)."""
    condition = {"type": "Initialized", "status": "True", "reason": "PodGangPodsCreated", "lastTransitionTime": now}
    return {"status": {"phase": "Pending", "conditions": [{**condition, "message": "All pods exist"}]}}


def outcome(instance: Instance, observed: Iterable[Mapping[str, Any]], testbed: Testbed) -> SchedulingOutcome:
    """Return the outcome of an instance, read from all pods of its namespace. Pods that are being deleted are
    ignored."""
    nodes_of = {testbed.node(node.name): node.name for node in instance.nodes}
    groups = {testbed.name(g.name, group.name): (g.name, group.name) for g in instance.gangs for group in g.groups}
    alive = {pod["metadata"]["name"]: pod for pod in observed if not pod["metadata"].get("deletionTimestamp")}
    running_pods = {testbed.name(pod.name): pod for pod in instance.running}
    original_names = {recreated_name(pod, testbed): pod.name for pod in instance.running}
    placed: dict[str, dict[str, Counter[str]]] = {}
    for name, pod in alive.items():
        node, clique = pod["spec"].get("nodeName"), pod["metadata"].get("labels", {}).get(labels.CLIQUE)
        if node and name not in running_pods and clique in groups:
            gang, group = groups[clique]
            placed.setdefault(gang, {}).setdefault(group, Counter())[nodes_of.get(node, node)] += 1
    evicted = {pod.name for name, pod in running_pods.items() if pod.state == "running" and name not in alive}
    replacements = {old: alive[new] for new, old in original_names.items() if new in alive and old in evicted}
    moved = frozenset(old for old, pod in replacements.items() if pod["spec"].get("nodeName"))
    gang_pods_recreated = any(pod.gang for pod in instance.running if pod.name in replacements)
    return SchedulingOutcome(placed, frozenset(evicted), gang_pods_recreated, moved)


def _node(node: Node, testbed: Testbed) -> Manifest:
    node_labels = dict(testbed.label(key, value) for key, value in node.labels.items())
    capacity = {**{_RESOURCES[name]: amount for name, amount in _DEFAULT_CAPACITY.items()}, **_amounts(node.capacity)}
    amounts = {name: f"{amount}Gi" if name == "memory" else str(amount) for name, amount in capacity.items()}
    amounts["pods"] = "110"
    spec: Manifest = {"taints": [dict(taint) for taint in (*testbed.taints, *node.taints)]}
    if not node.schedulable:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": testbed.node(node.name), "labels": {"type": "kwok", **testbed.selector, **node_labels}},
        "spec": spec,
        "status": {"capacity": amounts, "allocatable": dict(amounts)},
    }


def _gang(instance: Instance, gang: Gang, testbed: Testbed) -> Manifest:
    spec: Manifest = {"podgroups": [_podgroup(instance, gang, group, testbed) for group in gang.groups]}
    spec |= _constraint(gang, testbed)
    spec["priorityClassName"] = priority_class(gang.priority)
    if gang.configs:
        spec["topologyConstraintGroupConfigs"] = [
            {
                "name": testbed.name(gang.name, "config", str(number)),
                "podGroupNames": [testbed.name(gang.name, group) for group in scope.groups],
                **_constraint(scope, testbed),
            }
            for number, scope in enumerate(gang.configs)
        ]
    metadata: Manifest = {
        "name": testbed.name(gang.name),
        "namespace": testbed.namespace,
        "labels": {labels.SCHEDULER: testbed.scheduler, **testbed.scenario_label},
    }
    if gang.scopes:
        metadata["annotations"] = {labels.TOPOLOGY: testbed.pool}
    return {"apiVersion": PODGANGS.api_version, "kind": PODGANGS.kind, "metadata": metadata, "spec": spec}


def _podgroup(instance: Instance, gang: Gang, group: Group, testbed: Testbed) -> Manifest:
    running_names = [
        testbed.name(pod.name)
        for pod in instance.running
        if (pod.gang, pod.group) == (gang.name, group.name) and pod.is_active
    ]
    missing = [testbed.name(gang.name, group.name, "missing", str(i)) for i in range(group.missing or 0)]
    all_names = [
        *running_names,
        *_pending_names(instance, gang, group, testbed),
        *_gated_names(gang, group, testbed),
        *missing,
    ]
    return {
        "name": testbed.name(gang.name, group.name),
        "minReplicas": group.minimum,
        "podReferences": [{"namespace": testbed.namespace, "name": name} for name in sorted(all_names)],
        **_constraint(group, testbed),
    }


def _constraint(constrained: Gang | Group | Scope, testbed: Testbed) -> Manifest:
    keys = {"required": constrained.required, "preferred": constrained.preferred}
    pack = {strength: testbed.key(key) for strength, key in keys.items() if key}
    return {"topologyConstraint": {"packConstraint": pack}} if pack else {}


def _pending_names(instance: Instance, gang: Gang, group: Group, testbed: Testbed) -> list[str]:
    running_count = sum((pod.gang, pod.group) == (gang.name, group.name) and pod.is_active for pod in instance.running)
    return [testbed.name(gang.name, group.name, str(number)) for number in range(max(0, group.desired - running_count))]


def _gated_names(gang: Gang, group: Group, testbed: Testbed) -> list[str]:
    return [testbed.name(gang.name, group.name, "gated", str(number)) for number in range(group.gated or 0)]


def _with_gates(pod: Manifest, gates: Sequence[str]) -> Manifest:
    return {**pod, "spec": {**pod["spec"], "schedulingGates": [{"name": gate} for gate in gates]}} if gates else pod


def _pod(
    name: str,
    asks: Resources,
    priority: int,
    testbed: Testbed,
    demands: Mapping[str, Any],
    pod_labels: Mapping[str, str],
) -> Manifest:
    amounts = {n: f"{a}Gi" if n == "memory" else str(a) for n, a in _amounts(asks).items() if a}
    selector = {**testbed.selector, **dict(testbed.label(k, v) for k, v in demands.get("nodeSelector", {}).items())}
    spec: Manifest = {
        "schedulerName": testbed.scheduler,
        "nodeSelector": selector,
        "tolerations": [dict(t) for t in (*testbed.tolerations, *demands.get("tolerations", ()))],
        **_containers(amounts, demands),
    }
    spec["priorityClassName"] = priority_class(priority)
    if affinity := _affinity(demands, testbed, pod_labels):
        spec["affinity"] = affinity
    if "spread" in demands:
        spec["topologySpreadConstraints"] = [
            {
                "topologyKey": testbed.key(constraint["key"]),
                "maxSkew": constraint["maxSkew"],
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": _selector({}, testbed, pod_labels),
            }
            for constraint in demands["spread"]
        ]
    if claim := demands.get("claim"):
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    metadata = {"name": name, "namespace": testbed.namespace, "labels": {**pod_labels, **testbed.scenario_label}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": restricted(spec)}


def _containers(amounts: Mapping[str, str], demands: Mapping[str, Any]) -> Manifest:
    """Return the containers of a pod that requests these amounts, and pod-level resources if CPU and memory are
    requested by the pod itself."""
    main_container: Manifest = {"name": "main", "image": "registry.example/x:1"}
    if ports := demands.get("hostPorts"):
        main_container["ports"] = [{"containerPort": port, "hostPort": port} for port in ports]
    devices = {name: amount for name, amount in amounts.items() if "/" in name}
    shared = {name: amount for name, amount in amounts.items() if "/" not in name}
    requested_by = demands.get("requestedBy", "containers")
    if requested_by == "containers":
        return {"containers": [{**main_container, "resources": {"limits": dict(amounts)}}]}
    containers = [{**main_container, "resources": {"limits": devices}}]
    if requested_by == "pod":
        second_container = {"name": "beside", "image": "registry.example/x:1"}
        return {"containers": [*containers, second_container], "resources": {"requests": shared, "limits": shared}}
    init_container: Manifest = {"name": "first", "image": "registry.example/x:1", "resources": {"limits": shared}}
    if requested_by == "sidecar":
        init_container["restartPolicy"] = "Always"
    return {"initContainers": [init_container], "containers": containers}


def _affinity(demands: Mapping[str, Any], testbed: Testbed, pod_labels: Mapping[str, str]) -> Manifest:
    required: Manifest = {}
    if "nodeAffinity" in demands:
        required["nodeAffinity"] = {"nodeSelectorTerms": [_term(term, testbed) for term in demands["nodeAffinity"]]}
    for demand, affinity_type in (("together", "podAffinity"), ("apart", "podAntiAffinity")):
        if demand in demands:
            required[affinity_type] = [
                {"topologyKey": testbed.key(term["key"]), "labelSelector": _selector(term, testbed, pod_labels)}
                for term in demands[demand]
            ]
    return {
        affinity_type: {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        for affinity_type, terms in required.items()
    }


def _selector(term: Mapping[str, Any], testbed: Testbed, pod_labels: Mapping[str, str]) -> Manifest:
    """Return the label selector for the groups that a term names, or for the pod's own group."""
    group_names = [testbed.name(*group.split("/")) for group in term.get("groups", ())]
    return {
        "matchExpressions": [
            {"key": labels.CLIQUE, "operator": "In", "values": group_names or [pod_labels[labels.CLIQUE]]}
        ]
    }


def _pod_labels(gang: Gang, group: Group, testbed: Testbed) -> dict[str, str]:
    pod_labels = {labels.GANG: testbed.name(gang.name), labels.CLIQUE: testbed.name(gang.name, group.name)}
    return {**pod_labels, labels.BASE_GANG: testbed.name(gang.base)} if gang.base else pod_labels


def _term(term: Mapping[str, Any], testbed: Testbed) -> Manifest:
    expressions = []
    for expression in term.get("matchExpressions", ()):
        values = [testbed.label(expression["key"], value)[1] for value in expression.get("values", ())]
        requirement = {"key": testbed.key(expression["key"]), "operator": expression["operator"]}
        expressions.append({**requirement, "values": values} if values else requirement)
    return {"matchExpressions": expressions}


def _amounts(resources: Resources) -> dict[str, int]:
    return {_RESOURCES[name]: amount for name, amount in resources.items()}
