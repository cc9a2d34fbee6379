"""Operators that keep state in memory although it belongs only in the API server."""

from __future__ import annotations

from typing import Any

from kube.informer import Informer
from mutants.registry import fragile
from mutants.replacement import Original, around, replace
from reference_impl.api.models import PodGang
from reference_impl.control.layouts import Layouts
from reference_impl.control.podclique import CliqueReconciler
from reference_impl.control.podgang import GangReconciler
from reference_impl.control.writer import Writer

_seen_uids: set[str] = set()
"""The UIDs of objects whose creation this process has seen in a watch."""


def _record_seen_uids() -> None:
    original = Informer.on_event

    def on_event(self: Informer[Any], kind: str, item: Any) -> None:
        if self._synced.is_set():
            _seen_uids.add(item.metadata.uid)
        original(self, kind, item)

    replace(Informer, "on_event", on_event)


@fragile("operator", "releases only what it has seen come into being", "delete", "killed-after", "killed-before")
def _finalizers_of_former_lives() -> None:
    original = Writer.remove_finalizer
    _record_seen_uids()

    async def remove_finalizer(self: Writer, informer: Any, item: Any, finalizer: str) -> None:
        if item.metadata.uid in _seen_uids:
            await original(self, informer, item, finalizer)

    replace(Writer, "remove_finalizer", remove_finalizer)


@fragile("operator", "ungates only pods that it has created itself", "create", "killed-after")
def _gates_of_former_lives() -> None:
    original = CliqueReconciler._ungate
    _record_seen_uids()

    async def ungate(self: CliqueReconciler, pod: Any) -> None:
        if pod.metadata.uid in _seen_uids:
            await original(self, pod)

    replace(CliqueReconciler, "_ungate", ungate)


@fragile("operator", "initializes only gangs that it has created itself", "create", "killed-after")
def _gangs_of_former_lives() -> None:
    original = GangReconciler._write_initialized
    _record_seen_uids()

    async def write(self: GangReconciler, gang: PodGang, *, is_complete: bool) -> None:
        if gang.metadata.uid in _seen_uids:
            await original(self, gang, is_complete=is_complete)

    replace(GangReconciler, "_write_initialized", write)


@fragile("operator", "writes a new map where it has not written the present one", "create", "killed-after")
@around(Layouts, "stored", memory=set)
def _layouts_of_former_lives(
    original: Original, written: set[tuple[str, int]], self: Layouts, pcs: Any, index: int
) -> Any:
    current = original(self, pcs, index)
    if current is None:
        written.add((pcs.metadata.uid, index))
    return current if (pcs.metadata.uid, index) in written else None
