"""Mutants of an operator that accepts sets in which two objects would have the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kube.informer import Informer
from kube.objects import Object
from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.admission.rules import collisions
from reference_impl.control import podcliqueset
from reference_impl.control.cache import Cache
from reference_impl.control.writer import Writer
from reference_impl.plan.reconcile_error import ReconcileError


def accept_collisions() -> None:
    """Make admission accept sets in which two objects would have the same name, as upstream's admission does."""
    replace(collisions, "violations", lambda pcs, old: ())


@mutant("operator", "ignores a clique whose name is taken", "RES-052")
def _collision_unreported() -> None:
    accept_collisions()
    original = Writer._check_existing

    async def look_at(self: Writer, informer: Any, manifest: dict[str, Any]) -> None:
        if manifest["kind"] != "PodClique":
            await original(self, informer, manifest)

    replace(Writer, "_check_existing", look_at)


@mutant("operator", "counts objects by name, whoever owns them", "RES-052")
def _collision_counted() -> None:
    accept_collisions()

    def child(self: Cache, informer: Informer[Any], owner: Object) -> Callable[[str], Any]:
        return lambda name: informer.get(owner.metadata.namespace, name)

    replace(Cache, "child_finder", child)


@mutant("operator", "ignores an autoscaler whose name is taken", "RES-054")
def _autoscaler_collision_unreported() -> None:
    accept_collisions()

    async def refuse(problem: ReconcileError) -> None:
        return None

    replace(podcliqueset, "_raise_problem", refuse)
