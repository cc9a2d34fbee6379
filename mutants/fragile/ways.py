"""Operators whose behavior depends on earlier desired states. They behave correctly even when something fails, as long
as the desired state changes only once. `nemesis change` finds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mutants.registry import CHANGES, fragile
from mutants.replacement import Original, around, replace
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.control.writer import Writer
from reference_impl.plan import template_drift, update_set_replicas


@fragile("operator", "does not return to a version that a set has had before", CHANGES)
@around(update_set_replicas, "advanced_progress", memory=dict)
def _versions_updated_once(
    original: Original,
    known_generations: dict[str, set[str]],
    pcs: Any,
    progress: Any,
    generation: str,
    observed: Any,
    now: str,
) -> Any:
    generations = known_generations.setdefault(
        pcs.metadata.uid, {pcs.status.current_generation_hash if pcs.status else ""}
    )
    if progress.update_ended_at is None and generation in generations:
        return type(progress)(update_started_at=now, update_ended_at=now)
    result = original(pcs, progress, generation, observed, now)
    if result.update_ended_at is not None:
        generations.add(generation)
    return result


@fragile("operator", "gives cliques as many pods as their namesakes had", CHANGES)
def _sizes_of_former_sets() -> None:
    sizes: dict[tuple[str, str], int] = {}
    original, create = SetReconciler._clique_writes, Writer.create

    def clique(self: SetReconciler, pcs: Any, index: int, template: Any, existing: Any, current: Any) -> Iterator[Any]:
        if existing is not None:
            sizes[existing.metadata.key] = existing.spec.replicas
        return original(self, pcs, index, template, existing, current)

    async def with_size(self: Writer, informer: Any, manifest: Any) -> Any:
        key = manifest["metadata"].get("namespace", ""), manifest["metadata"].get("name", "")
        if manifest["kind"] == "PodClique" and key in sizes:
            manifest["spec"]["replicas"] = sizes[key]
        return await create(self, informer, manifest)

    replace(SetReconciler, "_clique_writes", clique)
    replace(Writer, "create", with_size)


@fragile("operator", "gives cliques the size of their template when images change", CHANGES)
@around(template_drift, "clique_patch", memory=dict)
def _updates_reset_sizes(original: Original, generations: dict[str, str], template: Any, existing: Any) -> Any:
    change = original(template, existing)
    image = template.spec.pod_spec["containers"][0]["image"]
    if generations.setdefault(existing.metadata.uid, image) != image:
        generations[existing.metadata.uid] = image
        change = {**(change or {}), "spec": {**(change or {}).get("spec", {}), "replicas": template.spec.replicas}}
    return change
