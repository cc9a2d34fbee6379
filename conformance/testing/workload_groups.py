"""Objects of Kubernetes' Workload API: groups, trees of groups, and their pods. The functions are pure.

The scheduler reads only PodGroups and CompositePodGroups, never Workloads (WL-B01). No Workload is created, because the
API server accepts a reference to a Workload that does not exist (WL37-V03).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.grove.restricted import restricted

API_GROUP = "scheduling.k8s.io"
POD_GROUPS, COMPOSITE_POD_GROUPS = f"{API_GROUP}/v1beta1", f"{API_GROUP}/v1alpha3"
"""The API versions of Kubernetes 1.37 (WL37-E01)."""
OLD_POD_GROUPS = f"{API_GROUP}/v1alpha2"
"""The API version of Kubernetes 1.36, which has no CompositePodGroups."""
POD_LABEL = "conformance.grove.io/pod"
"""The label that holds a pod's own name."""
GATE = "conformance.grove.io/wait"
"""The scheduling gate of pods that wait for the last pod of their gang, as Grove's pods do."""

Object = dict[str, Any]


@dataclass(frozen=True)
class Leaf:
    """A PodGroup with its pods. `minimum` is its minCount, 0 for the basic policy. `gpus` is the number of GPUs that
    each pod requests. `key` is the label key of its required topology domain. `priority` is the PriorityClass of the
    group; `pod_priority` is the PriorityClass of its pods if it differs. `disruption` is `all` or `single`."""

    name: str
    pods: int
    minimum: int = 0
    gpus: int = 1
    key: str = ""
    priority: str = ""
    pod_priority: str | None = None
    disruption: str = ""
    scheduler: str = ""
    """The scheduler name of its pods; empty for the name of the judged implementation."""

    @property
    def leaves(self) -> list[Leaf]:
        """Return this PodGroup, its only leaf."""
        return [self]


@dataclass(frozen=True)
class Tree:
    """A CompositePodGroup with its children. `minimum` is its minGroupCount, 0 for the basic policy."""

    name: str
    children: Sequence[Leaf | Tree]
    minimum: int = 0
    key: str = ""
    priority: str = ""
    disruption: str = ""

    @property
    def leaves(self) -> list[Leaf]:
        """Return the PodGroups below this group, in order."""
        return [leaf for child in self.children for leaf in child.leaves]


Root = Leaf | Tree


@dataclass(frozen=True)
class WorkloadTarget:
    """Where the objects go: their namespace, the prefix of their names, and the fields that pods need to run on the
    nodes."""

    namespace: str
    prefix: str
    scheduler: str
    labels: Mapping[str, str] = field(default_factory=dict)
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Mapping[str, str]] = ()
    pod_groups: str = POD_GROUPS

    def name(self, *parts: str | int) -> str:
        """Return the name of a group or a pod."""
        return "-".join([self.prefix, *map(str, parts)])

    def metadata(self, name: str) -> Object:
        """Return the metadata of an object."""
        return {"name": name, "namespace": self.namespace, "labels": dict(self.labels)}


def groups(root: Root, target: WorkloadTarget, parent: str = "") -> Iterator[Object]:
    """Yield the groups of a tree, parents before children (WL37, section 3)."""
    yield group(root, target, parent)
    if isinstance(root, Tree):
        for child in root.children:
            yield from groups(child, target, root.name)


def group(root: Root, target: WorkloadTarget, parent: str = "") -> Object:
    """Return one PodGroup or CompositePodGroup, without the groups below it."""
    tree = isinstance(root, Tree)
    spec: Object = {"schedulingPolicy": _policy(root)}
    if parent:
        spec["parentCompositePodGroupName"] = target.name(parent)
    if parent or tree:  # a reference is required (WL37-V01, V04)
        spec["workloadRef"] = {"workloadName": target.prefix, "templateName": root.name}
    if root.key:
        spec["schedulingConstraints"] = {"topology": [{"key": root.key}]}
    if root.priority:
        spec["priorityClassName"] = root.priority
    if root.disruption:
        spec["disruptionMode"] = {root.disruption: {}}
    return {
        "apiVersion": COMPOSITE_POD_GROUPS if tree else target.pod_groups,
        "kind": "CompositePodGroup" if tree else "PodGroup",
        "metadata": target.metadata(target.name(root.name)),
        "spec": spec,
    }


def pods(
    leaf: Leaf, target: WorkloadTarget, first: int = 0, count: int | None = None, *, gated: bool = False
) -> list[Object]:
    """Return `count` pods of a group, starting at index `first`. By default, return all pods of the group."""
    indices = range(first, first + (leaf.pods if count is None else count))
    return [_pod(leaf, target, index, gated) for index in indices]


def plain_pod(name: str, target: WorkloadTarget, gpus: int = 1, priority: str = "", node: str = "") -> Object:
    """Return a pod that belongs to no group. With `node`, the pod is already bound to that node."""
    spec = _spec(target, gpus, priority, "")
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(target, target.name(name)), "spec": spec}


def _metadata(target: WorkloadTarget, name: str) -> Object:
    """Return the metadata of a pod, with a unique label for selectors."""
    metadata = target.metadata(name)
    return {**metadata, "labels": {**metadata["labels"], POD_LABEL: name}}


def _policy(root: Root) -> Object:
    if not root.minimum:
        return {"basic": {}}
    return {"gang": {"minGroupCount" if isinstance(root, Tree) else "minCount": root.minimum}}


def _pod(leaf: Leaf, target: WorkloadTarget, index: int, gated: bool) -> Object:
    priority = leaf.priority if leaf.pod_priority is None else leaf.pod_priority
    spec = _spec(target, leaf.gpus, priority, leaf.scheduler)
    spec["schedulingGroup"] = {"podGroupName": target.name(leaf.name)}
    if gated:
        spec["schedulingGates"] = [{"name": GATE}]
    metadata = _metadata(target, target.name(leaf.name, index))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _spec(target: WorkloadTarget, gpus: int, priority: str, scheduler: str) -> Object:
    requests = {"cpu": "10m", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    spec: Object = {
        "schedulerName": scheduler or target.scheduler,
        "nodeSelector": dict(target.selector),
        "tolerations": [dict(toleration) for toleration in target.tolerations],
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {"name": "c", "image": "registry.example/x:1", "resources": {"requests": requests, "limits": requests}}
        ],
    }
    if priority:
        spec["priorityClassName"] = priority
    return restricted(spec)
