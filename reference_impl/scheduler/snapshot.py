"""From the watch caches to what a scheduling round works on."""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.api.models import PodGang
from reference_impl.plan import conditions, gangs, labels
from reference_impl.scheduler.fit import Gang, Group
from reference_impl.scheduler.model import Pod, Resources


def used(pods: Iterable[Pod], assumed: dict[str, str]) -> dict[str, Resources]:
    """Per node, what the pods on it take. `assumed` are pods (by uid) that have just been bound to a node."""
    result: dict[str, Resources] = {}
    for pod in pods:
        node = pod.spec.node_name or assumed.get(pod.metadata.uid)
        if node and pod.holds_resources:
            total = result.setdefault(node, {})
            for name, amount in pod.requests.items():
                total[name] = total.get(name, 0) + amount
    return result


def gang(item: PodGang, pods: Iterable[Pod], scheduler_name: str, assumed: dict[str, str]) -> Gang:
    """A gang with its present pods: those that its groups refer to, and that are alive."""
    by_name = {pod.metadata.name: pod for pod in pods if pod.metadata.deletion_timestamp is None}
    result = []
    for group in item.spec.podgroups:
        members = [pod for ref in group.pod_references if (pod := by_name.get(ref.name)) is not None]
        bound = sum(bool(pod.spec.node_name) or pod.metadata.uid in assumed for pod in members)
        waiting = [
            pod
            for pod in members
            if pod.waiting and pod.metadata.uid not in assumed and pod.spec.scheduler_name == scheduler_name
        ]
        result.append(Group(group.name, group.min_replicas, bound, waiting))
    return Gang(f"{item.metadata.namespace}/{item.metadata.name}", result)


def served(item: PodGang, scheduler_name: str) -> bool:
    """Whether this scheduler looks after a gang: it names it, and the operator says that all its pods exist (GS-08)."""
    own = item.metadata.label(labels.SCHEDULER_NAME) in ("", scheduler_name)
    return own and item.metadata.deletion_timestamp is None and gangs.initialized(item)


def is_scheduled(item: PodGang) -> bool:
    return conditions.is_true(item.status.conditions if item.status else None, "Scheduled")
