"""`status.lastErrors` of the objects of one kind: written when a reconcile fails, cleared when it succeeds again."""

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
"""The cause may be an object that no cache follows, so that its removal is no event."""


class LastErrors:
    """Writes `status.lastErrors` of the objects of one kind."""

    def __init__(self, informer: Informer[Any], writer: Writer) -> None:
        self._informer, self._writer = informer, writer
        self.keys: set[Key] = set()
        """The objects whose last reconcile failed."""

    async def refused(self, key: Key, code: str, error: ApiError, message: str = "") -> None:
        """Report a write that the API server refused, except for a conflict: that only means that the cache was behind,
        and an event will trigger the next reconcile. `message` replaces the error's text if that differs each time."""
        if not error.conflict:
            await self.tell(key, ReconcileError(code, message or str(error)))

    async def tell(self, key: Key, problem: ReconcileError | None) -> float | None:
        """Record the result of a reconcile; returns after how many seconds to repeat it, None for never."""
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
    """Whether two states of an object differ in `lastErrors` only. That is our own record of a failed reconcile: if it
    triggered the reconciler, each failure would cause the next attempt at once, without back-off."""
    if old is None or old.status is None or item.status is None or old.status.last_errors == item.status.last_errors:
        return False
    metadata = msgspec.structs.replace(old.metadata, resource_version=item.metadata.resource_version)
    status = msgspec.structs.replace(old.status, last_errors=item.status.last_errors)
    return bool(metadata == item.metadata and status == item.status and old.spec == item.spec)


def earliest(*waits: float | None) -> float | None:
    """The shortest of several waits; None if there is none."""
    return min((wait for wait in waits if wait is not None), default=None)
