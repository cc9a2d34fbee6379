"""Mutants of the reactions to nodes that are cordoned, are drained, or fail."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from kube.client import Client
from kube.informer import Informer, typed_decoder
from kube.objects import Key, ObjectMeta
from kube.resource import NODES, PODS, Resource
from mutants.registry import mutant
from mutants.replacement import Original, around, replace
from reference_impl.api.models import PodClique, PodCliqueSet
from reference_impl.api.pods import Pod
from reference_impl.control.operator import Operator
from reference_impl.control.podclique import CliqueReconciler
from reference_impl.plan import labels, pods, statuses, termination
from reference_impl.plan.pods import PodDifference

BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")


class NodeSpec(msgspec.Struct):
    """The fields of a node's spec that a mutant reads."""

    unschedulable: bool = False


class Node(msgspec.Struct):
    """The fields of a node that a mutant reads."""

    metadata: ObjectMeta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)


def _stuck(pod: Pod) -> bool:
    """Return whether a pod is being deleted but cannot terminate, because its node has failed."""
    return pod.terminating and not pod.ready


@mutant("operator", "replaces pods of failed nodes only once they are gone", "NODE-007")
def _stuck_pods_waited_for() -> None:
    replace(Pod, "active", property(lambda self: not self.finished and (not self.terminating or _stuck(self))))


@mutant("operator", "never reuses the index of a pod on a failed node", "NODE-007")
@around(pods, "difference")
def _stuck_pods_keep_their_index(
    original: Original, shares: Mapping[str, int], members: list[Pod], *rest: Any
) -> PodDifference:
    result = original(shares, members, *rest)
    free = pods.free_indices([pod for pod in members if pod.active or _stuck(pod)], len(result.missing))
    return PodDifference(result.surplus, list(zip(free, (gang for _, gang in result.missing), strict=True)))


@mutant("operator", "gives up a clique whose pods cannot terminate", "NODE-001")
@around(CliqueReconciler, "reconcile", memory=set)
async def _evicted_pods_given_up(
    original: Original, given_up: set[Key], self: CliqueReconciler, key: Key
) -> float | None:
    clique = self._cache.cliques.get(*key)
    if clique is not None and any(pod.terminating and termination._is_lost(pod) for pod in self._cache.pods_of(clique)):
        given_up.add(key)
    return None if key in given_up else await original(self, key)


@mutant("operator", "counts pods that cannot terminate as replicas", "NODE-002")
@around(statuses, "clique_status")
def _stuck_pods_are_replicas(original: Original, clique: PodClique, members: list[Pod], *rest: Any) -> Any:
    status = original(clique, members, *rest)
    return msgspec.structs.replace(status, replicas=(status.replicas or 0) + sum(map(_stuck, members)))


@mutant("operator", "counts pods that cannot terminate as scheduled", "NODE-008")
@around(statuses, "clique_status")
def _stuck_pods_counted(original: Original, clique: PodClique, members: list[Pod], *rest: Any) -> Any:
    status = original(clique, members, *rest)
    stuck = sum(map(_stuck, members))
    return msgspec.structs.replace(status, scheduled_replicas=status.scheduled_replicas + stuck)


@mutant("operator", "removes a terminated clique only once its pods are gone", "NODE-007")
@around(CliqueReconciler, "reconcile")
async def _terminated_when_gone(original: Original, self: CliqueReconciler, key: Key) -> float | None:
    clique = self._cache.cliques.get(*key)
    if clique is not None and clique.metadata.deletion_timestamp is not None:
        remaining_pods = self._cache.pods_of(clique)
        for pod in remaining_pods:
            if not pod.terminating:
                await self._writer.delete(self._cache.pods, pod)
        if remaining_pods:
            return 0.5
    return await original(self, key)


@mutant("operator", "takes pods of a silent node for healthy ones", "NODE-003", "NODE-010")
def _lost_pods_are_healthy() -> None:
    replace(termination, "_is_lost", lambda pod: False)


@mutant("operator", "replaces pods as soon as their node is silent", "NODE-004")
@around(pods, "difference")
def _lost_pods_deleted(original: Original, shares: Mapping[str, int], members: list[Pod], *rest: Any) -> PodDifference:
    result = original(shares, members, *rest)
    lost = [pod for pod in members if pod.active and termination._is_lost(pod)]
    return PodDifference([*result.surplus, *lost], result.missing)


@mutant("operator", "treats pods that were lost once as lost for ever", "NODE-004")
@around(termination, "_is_lost", memory=set)
def _lost_for_good(original: Original, lost_uids: set[str], pod: Pod) -> bool:
    if original(pod):
        lost_uids.add(pod.metadata.uid)
    return pod.metadata.uid in lost_uids


@mutant("operator", "deletes the pods of cordoned nodes", "NODE-005")
@around(Operator, "run")
async def _cordon_evacuates(original: Original, self: Operator, *rest: Any, **options: Any) -> None:
    nodes: Informer[Node] = Informer(self._client, NODES, typed_decoder(Node))
    tasks = set[asyncio.Task[None]]()

    def see(kind: str, old: Node | None, node: Node) -> None:
        if node.spec.unschedulable:
            for pod in self.cache.pods:
                if pod.spec.node_name == node.metadata.name:
                    tasks.add(asyncio.create_task(_delete(self._client, pod)))

    nodes.add_handler(see)
    async with asyncio.TaskGroup() as group:
        group.create_task(nodes.run())
        await original(self, *rest, **options)


async def _delete(client: Client, pod: Pod) -> None:
    await client.delete(PODS, pod.metadata.namespace, pod.metadata.name)


def create_budgets(**permitted: int) -> None:
    """Make the operator create a PodDisruptionBudget with this limit for each new set."""
    original = Operator._on_set
    tasks = set[asyncio.Task[bytes]]()

    def on_set(self: Operator, kind: str, old: PodCliqueSet | None, item: PodCliqueSet) -> None:
        if old is None:
            meta = item.metadata
            budget = {
                "apiVersion": BUDGETS.api_version,
                "kind": BUDGETS.kind,
                "metadata": {"name": meta.name, "namespace": meta.namespace},
                "spec": {**permitted, "selector": {"matchLabels": {labels.PART_OF: meta.name}}},
            }
            tasks.add(asyncio.create_task(self._client.create(BUDGETS, budget)))
        original(self, kind, old, item)

    replace(Operator, "_on_set", on_set)


@mutant("operator", "creates a disruption budget that permits no eviction", "NODE-009")
def _disruption_budget_zero() -> None:
    create_budgets(maxUnavailable=0)


@mutant("operator", "recreates cliques whose pods are evicted", "NODE-006")
def _eviction_recreates_cliques() -> None:
    original_pod, original_reconcile, drained = Operator._on_pod, CliqueReconciler.reconcile, set[Key]()

    def on_pod(self: Operator, kind: str, old: Pod | None, item: Pod) -> None:
        if any(condition.type == "DisruptionTarget" for condition in item.status.conditions or ()):
            drained.add((item.metadata.namespace, item.metadata.label(labels.PODCLIQUE)))
        original_pod(self, kind, old, item)

    async def reconcile(self: CliqueReconciler, key: Key) -> float | None:
        clique = self._cache.cliques.get(*key)
        if clique is not None and key in drained:
            drained.discard(key)
            await self._writer.delete(self._cache.cliques, clique)
        return await original_reconcile(self, key)

    replace(Operator, "_on_pod", on_pod)
    replace(CliqueReconciler, "reconcile", reconcile)
