"""Mutants of large sets, which behave correctly up to a hundred replicas."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import msgspec

from kube.informer import Informer
from kube.objects import Object
from mutants.registry import mutant
from mutants.replacement import Original, around, note_calls, replace
from reference_impl.api.models import LastError, PodCliqueSet, PodCliqueSetStatus
from reference_impl.control import last_errors as written_errors
from reference_impl.control.maps import MapWriter
from reference_impl.control.podcliqueset import SetReconciler
from reference_impl.control.writer import Writer
from reference_impl.plan import reconcile_error, statuses
from reference_impl.plan.hashing import canonical
from reference_impl.scheduler import cycle
from reference_impl.scheduler.gang import Gang

MAX_CORRECT = 100
"""The number of replicas above which the mutants misbehave. Proofs use 125 replicas, which is a quarter of 500."""


@mutant("gang-scheduler", "considers the hundred oldest gangs only", "LOAD-001")
@around(cycle, "plan")
def _first_gangs_only(original: Original, gangs: Iterable[Gang], *rest: Any) -> cycle.Plan:
    return original(list(gangs)[:MAX_CORRECT], *rest)


@mutant("operator", "creates one replica too many of a large set", "LOAD-002")
def _one_replica_beyond() -> None:
    children, mapped = SetReconciler._sync_children, MapWriter._mapped_replicas

    def larger(pcs: PodCliqueSet) -> PodCliqueSet:
        size = pcs.spec.replicas
        spec = msgspec.structs.replace(pcs.spec, replicas=size + 1 if size > MAX_CORRECT else size)
        return msgspec.structs.replace(pcs, spec=spec)

    replace(SetReconciler, "_sync_children", lambda self, pcs: children(self, larger(pcs)))
    replace(MapWriter, "_mapped_replicas", lambda self, pcs: mapped(self, larger(pcs)))


@mutant("operator", "reports at most a hundred available replicas", "LOAD-003")
@around(statuses, "set_status")
def _first_replicas_counted(original: Original, *given: Any) -> PodCliqueSetStatus:
    result = original(*given)
    return msgspec.structs.replace(result, available_replicas=min(result.available_replicas, MAX_CORRECT))


@mutant("operator", "creates each hundredth pod twice and deletes one of the two", "LOAD-004")
def _some_pods_twice() -> None:
    original, created = Writer.create, 0

    async def create(self: Writer, informer: Informer[Any], manifest: dict[str, Any]) -> None:
        nonlocal created
        await original(self, informer, manifest)
        if manifest["kind"] == "Pod":
            created += 1
            if created % MAX_CORRECT == 0:
                await original(self, informer, manifest)

    replace(Writer, "create", create)


@mutant("operator", "counts nothing of a set whose annotations have changed", "LOAD-005")
@around(statuses, "set_status")
def _annotated_sets_unavailable(original: Original, pcs: PodCliqueSet, *rest: Any) -> PodCliqueSetStatus:
    result = original(pcs, *rest)
    touched = "grove.io/reconcile-trigger" in (pcs.metadata.annotations or {})
    return msgspec.structs.replace(result, available_replicas=0) if touched else result


@mutant("operator", "replaces pods when their ports change places", "LOAD-006")
def _ports_in_their_order() -> None:
    del canonical._CONTAINER_LIST_KEYS["ports"]
    note_calls(canonical, "_with_sorted_lists")


@mutant("operator", "keeps its finalizer on a deleted set of many replicas", "LOAD-007")
@around(Writer, "remove_finalizer")
async def _large_sets_kept(
    original: Original, self: Writer, informer: Informer[Any], item: Object, finalizer: str
) -> None:
    if not isinstance(item, PodCliqueSet) or item.spec.replicas <= MAX_CORRECT:
        await original(self, informer, item, finalizer)


@mutant("operator", "reports an error with each object that it reconciles later", "LOAD-008")
def _errors_after_a_while() -> None:
    original, calls = reconcile_error.last_errors, itertools.count()
    busy = LastError(code="ERR_BUSY", description="it was busy", observed_at="2026-01-01T00:00:00Z")

    def last_errors(old: Any, problems: Any, now: str) -> Any:
        return [busy] if not problems and next(calls) > MAX_CORRECT else original(old, problems, now)

    replace(written_errors, "last_errors", last_errors)
