"""Variants of an operator's reactions to a cordoned or drained node."""

from __future__ import annotations

import asyncio
from typing import Any

from kube.client import MERGE_PATCH, Client
from kube.informer import Informer, typed_decoder
from kube.resource import NODES, PODS
from mutants.profiles.nodes import Node, create_budgets
from mutants.registry import variant
from mutants.replacement import Original, around
from reference_impl.api.pods import Pod
from reference_impl.control.operator import Operator

CORDON_ANNOTATION = "conformance.grove.io/node-is-cordoned"


@variant("operator", "notes on the pods of a cordoned node that it is cordoned", "NODE-005")
@around(Operator, "run")
async def _cordon_noted(original: Original, self: Operator, *rest: Any, **options: Any) -> None:
    nodes: Informer[Node] = Informer(self._client, NODES, typed_decoder(Node))
    tasks = set[asyncio.Task[None]]()

    def see(kind: str, old: Node | None, node: Node) -> None:
        if node.spec.unschedulable and not (old and old.spec.unschedulable):
            for pod in self.cache.pods:
                if pod.spec.node_name == node.metadata.name:
                    tasks.add(asyncio.create_task(_note(self._client, pod)))

    nodes.add_handler(see)
    async with asyncio.TaskGroup() as group:
        group.create_task(nodes.run())
        await original(self, *rest, **options)


async def _note(client: Client, pod: Pod) -> None:
    note = {"metadata": {"annotations": {CORDON_ANNOTATION: "true"}}}
    await client.patch(PODS, pod.metadata.namespace, pod.metadata.name, note, content_type=MERGE_PATCH)


@variant(
    "operator",
    "creates disruption budgets that permit one eviction at a time",
    "NODE-006",
    "NODE-009",
    time_scale=1.0,
    conflict="its budgets stand in the way of other tests that evict or preempt",
)
def _one_eviction_at_a_time() -> None:
    create_budgets(minAvailable=1)
