"""Mutants whose mistakes do not show in small scenes. The rules about all histories catch them."""

from __future__ import annotations

import asyncio
from typing import Any

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.api.pods import Pod
from reference_impl.control.podclique import CliqueContext, CliqueReconciler
from reference_impl.control.writer import Writer
from reference_impl.plan import gangs, labels, names, pods
from reference_impl.plan.children import Manifest


def _replica(metadata: Manifest) -> int:
    """Return the replica index of a gang, which is part of its name on both release lines of the contract."""
    return int(names.replica_index_in_name(metadata["labels"][labels.PART_OF], metadata["name"]))


def _pods_first(least: int) -> None:
    """From replica index `least` on, create pods without waiting for their gangs, which are created late."""
    original, create = CliqueReconciler._may_create, Writer.create

    def may_create(self: CliqueReconciler, place: CliqueContext, name: str) -> bool:
        return place.index >= least or original(self, place, name)

    async def create_late(self: Writer, informer: Any, manifest: Manifest) -> Any:
        if manifest["kind"] == "PodGang" and _replica(manifest["metadata"]) >= least:
            await asyncio.sleep(0.5)
        return await create(self, informer, manifest)

    replace(CliqueReconciler, "_may_create", may_create)
    replace(Writer, "create", create_late)


@mutant("operator", "creates pods without waiting for their gang", "GANG-024")
def _pods_before_gang() -> None:
    _pods_first(0)


@mutant("operator", "creates pods of added replicas without waiting for their gang", "GANG-024")
def _new_pods_before_gang() -> None:
    _pods_first(1)


@mutant("operator", "refers to pods by names that they do not have yet", "GANG-023")
@around(gangs, "manifest")
def _references_made_up(original: Original, *arguments: Any, **named: Any) -> Manifest:
    result: Manifest = original(*arguments, **named)
    for group in result["spec"]["podgroups"]:
        reference = {"namespace": result["metadata"]["namespace"], "name": f"{group['name']}-first"}
        group["podReferences"] = [reference]
    return result


@mutant("operator", "gives a new pod the number of existing pods as its index", "INV-025")
@instead_of(pods, "free_indices")
def _index_by_count(active: list[Pod], count: int) -> list[int]:
    return list(range(len(active), len(active) + count))


@mutant("operator", "recreates standalone cliques with 0 replicas", "TERM-012")
@around(Writer, "create", memory=set)
async def _recreated_empty(create: Original, created: set[str], self: Writer, informer: Any, manifest: Manifest) -> Any:
    metadata = manifest["metadata"]
    if manifest["kind"] == "PodClique" and labels.SCALING_GROUP not in metadata["labels"]:
        key = f"{metadata['namespace']}/{metadata['name']}"
        if key in created:
            manifest = {**manifest, "spec": {**manifest["spec"], "replicas": 0}}
        created.add(key)
    return await create(self, informer, manifest)
