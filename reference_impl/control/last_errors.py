"""`status.lastErrors` of the objects of one kind: written when a reconcile cannot go on, cleared when it can again."""

from __future__ import annotations

from typing import Any

import msgspec

from kube.errors import ApiError
from kube.informer import Informer
from kube.objects import Key
from reference_impl.api.models import wire
from reference_impl.control.writer import Writer
from reference_impl.plan.reconcile_error import ReconcileError, last_errors
from reference_impl.runtime.clock import now

RETRY_SECONDS = 5.0
"""What stands in the way may be an object that the cache doesn't follow: its end is no event."""


class LastErrors:
    def __init__(self, informer: Informer[Any], writer: Writer) -> None:
        self._informer, self._writer = informer, writer
        self.keys: set[Key] = set()
        """The objects that are in trouble."""

    async def refused(self, key: Key, code: str, error: ApiError, message: str = "") -> None:
        """Notes that the API server has refused a write, unless it was a conflict: that only means that the cache was
        behind, and the next pass is on its way. `message` replaces the error's text where that differs each time."""
        if not error.conflict:
            await self.tell(key, ReconcileError(code, message or str(error)))

    async def tell(self, key: Key, problem: ReconcileError | None) -> float | None:
        """Notes how a reconcile ended; returns after how many seconds it is to be repeated, None for never."""
        self.keys.discard(key)
        if problem is not None:
            self.keys.add(key)
        item = self._informer.get(*key)
        if item is not None:
            old = item.status.last_errors if item.status else None
            errors = last_errors(old, problem, now())
            if errors != (old or None):
                await self._writer.patch(self._informer, item, {"status": {"lastErrors": wire(errors)}}, status=True)
        return RETRY_SECONDS if problem else None


def only_errors(old: Any, item: Any) -> bool:
    """Whether nothing but `lastErrors` differs between two states of an object. That is our own note of a failed
    reconcile: if it woke the reconciler, each failure would cause the next attempt at once, without back-off."""
    if old is None or old.status is None or item.status is None or old.status.last_errors == item.status.last_errors:
        return False
    metadata = msgspec.structs.replace(old.metadata, resource_version=item.metadata.resource_version)
    status = msgspec.structs.replace(old.status, last_errors=item.status.last_errors)
    return bool(metadata == item.metadata and status == item.status and old.spec == item.spec)


def earliest(*waits: float | None) -> float | None:
    """The shortest of several waits, None where there is none."""
    return min((wait for wait in waits if wait is not None), default=None)
