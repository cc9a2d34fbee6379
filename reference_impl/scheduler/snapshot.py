"""The input of a scheduling cycle, built from the informer caches."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reference_impl.api.models import GangTopology, PodGang
from reference_impl.plan import gangs, labels
from reference_impl.scheduler.cycle import OtherPods
from reference_impl.scheduler.gang import ConstraintScope, Gang, Group, scopes
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.requests import Resources


def used_resources(pods: Iterable[Pod], assumed_nodes: dict[str, str]) -> dict[str, Resources]:
    """Return the used resources of each node. `assumed_nodes` holds the nodes of pods (by uid) whose binding request
    has been sent."""
    used_by_node: dict[str, Resources] = {}
    for pod in pods:
        node = pod.spec.node_name or assumed_nodes.get(pod.metadata.uid)
        if node and pod.holds_resources:
            total = used_by_node.setdefault(node, {})
            for name, amount in pod.usage.items():
                total[name] = total.get(name, 0) + amount
    return used_by_node


def other_pods(pods: Iterable[Pod], gangs: Collection[str], preemptors: Collection[str]) -> OtherPods:
    """Return the other pods on the nodes: pods that do not belong to any of `gangs`, and terminating pods."""
    evictable, terminating = [], []
    for pod in pods:
        if not pod.spec.node_name or not pod.holds_resources:
            continue
        if pod.metadata.deletion_timestamp is not None:
            terminating.append((pod, pod.spec.node_name))
        elif f"{pod.metadata.namespace}/{pod.metadata.label(labels.PODGANG)}" not in gangs and _evictable(pod):
            evictable.append((pod, pod.spec.node_name))
    return OtherPods(evictable, terminating, preemptors)


def _evictable(pod: Pod) -> bool:
    """Return whether a pod may be evicted by itself: it belongs to no gang, and its owner is not a node or a DaemonSet,
    whose pods would be recreated at once."""
    owner = pod.metadata.controller
    return not pod.metadata.label(labels.PODGANG) and (owner is None or owner.kind not in ("Node", "DaemonSet"))


def gang(
    item: PodGang, pods: Iterable[Pod], scheduler_name: str, assumed_nodes: dict[str, str], levels: tuple[str, ...] = ()
) -> Gang:
    """Return a gang with the existing pods that its groups refer to. Its priority is the highest priority of its pods,
    which the API server has resolved from the priority class (GS-49). `levels` are the levels of the gang's topology
    binding."""
    pods_by_name = {pod.metadata.name: pod for pod in pods if pod.metadata.deletion_timestamp is None}
    groups, priority, base, preempts = [], None, "", True
    for group in item.spec.podgroups:
        gang_group = Group(group.name, group.min_replicas, [])
        for ref in group.pod_references:
            pod = pods_by_name.get(ref.name)
            if pod is None or not pod.holds_resources:
                continue
            priority = pod.spec.priority if priority is None else max(priority, pod.spec.priority)
            base = base or pod.metadata.label(labels.BASE_PODGANG)
            preempts = preempts and pod.spec.preemption_policy != "Never"
            node = pod.spec.node_name or assumed_nodes.get(pod.metadata.uid)
            if node:
                gang_group.members.append((pod, node))
            elif pod.waiting and pod.spec.scheduler_name == scheduler_name:
                gang_group.waiting.append(pod)
        groups.append(gang_group)
    name = f"{item.metadata.namespace}/{item.metadata.name}"
    if base:
        base = f"{item.metadata.namespace}/{base}"
    return Gang(name, groups, _scopes(item), priority or 0, base, levels, preempts)


def _scopes(item: PodGang) -> tuple[ConstraintScope, ...]:
    """Return the constraints of all three levels, broadest first."""
    spec = item.spec
    names = [group.name for group in spec.podgroups]
    return scopes(
        names,
        (names, *_keys(spec.topology_constraint)),
        *((c.pod_group_names, *_keys(c.topology_constraint)) for c in spec.topology_constraint_group_configs or ()),
        *(([group.name], *_keys(group.topology_constraint)) for group in spec.podgroups),
    )


def _keys(constraint: GangTopology | None) -> tuple[str, str]:
    pack = constraint.pack_constraint if constraint else None
    return (pack.required or "", pack.preferred or "") if pack else ("", "")


def unbound_pods(pods: Iterable[Pod], scheduler_name: str, assumed_nodes: Collection[str]) -> set[str]:
    """Return the UIDs of this scheduler's unbound pods, except pods whose binding request has been sent (the keys of
    `assumed_nodes`)."""
    return {
        pod.metadata.uid for pod in pods if pod.spec.scheduler_name == scheduler_name and not pod.spec.node_name
    }.difference(assumed_nodes)


def is_responsible(item: PodGang, scheduler_name: str) -> bool:
    """Return whether this scheduler is responsible for a gang: the gang names it or no scheduler, is not being deleted,
    and has been marked as initialized by the operator (GS-08)."""
    is_named = item.metadata.label(labels.SCHEDULER_NAME) in ("", scheduler_name)
    return is_named and item.metadata.deletion_timestamp is None and gangs.is_initialized(item)
