"""The `status.lastErrors` of the objects of one kind, which is written when a reconcile fails and cleared when a
reconcile succeeds again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kube.errors import ApiError
from kube.informer import Informer
from kube.objects import Key
from reference_impl.api.models import to_json
from reference_impl.control.writer import Writer
from reference_impl.plan.reconcile_error import ReconcileError, last_errors
from reference_impl.runtime.clock import now

RETRY_SECONDS = 5.0
"""The delay before a retry, in seconds. The cause may be an object that is not in any cache, so that no event reports
its removal."""
EVENT = "FailedSync"
"""Reason of the Warning event about an error."""


class LastErrors:
    """Writes `status.lastErrors` of the objects of one kind."""

    def __init__(
        self,
        informer: Informer[Any],
        writer: Writer,
        of_parts: Callable[[Any], list[ReconcileError]] | None = None,
    ) -> None:
        """`of_parts` returns the errors of an object's parts, for the kind that users inspect first. The object reports
        these errors like its own errors, and each new error is also posted as a Warning event. A retry that fails in
        the same way as before causes neither a status write nor an event."""
        self._informer, self._writer, self._errors_of_parts = informer, writer, of_parts
        self.failed_keys: set[Key] = set()
        """The objects whose last reconcile failed."""

    async def report_refusal(self, key: Key, code: str, error: ApiError, message: str = "") -> None:
        """Report a write that the API server refused. A conflict is not reported, because it only means that the cache
        lagged, and an event will trigger the next reconcile. `message` replaces the error's text if that differs in
        each attempt."""
        if not error.conflict:
            await self.report(key, ReconcileError(code, message or str(error)))

    async def report(self, key: Key, problem: ReconcileError | None) -> float | None:
        """Record the result of a reconcile. Return the requeue delay in seconds, or None if no retry is needed."""
        self.failed_keys.discard(key)
        if problem is not None:
            self.failed_keys.add(key)
        item = self._informer.get(*key)
        if item is not None:
            old = (item.status.last_errors if item.status else None) or []
            problems = [
                *([problem] if problem else ()),
                *(self._errors_of_parts(item) if self._errors_of_parts else ()),
            ]
            errors = last_errors(old, problems, now())
            if errors != (old or None):
                await self._writer.patch(self._informer, item, {"status": {"lastErrors": to_json(errors)}}, status=True)
                for error in errors or () if self._errors_of_parts else ():
                    if error not in old:
                        await self._writer.warn(self._informer.resource, item, EVENT, error.description)
        return RETRY_SECONDS if problem else None


def errors_changed(old: Any, item: Any) -> bool:
    """Return whether two states of an object differ in `lastErrors`. None stands for an object that does not exist."""
    old_errors, new_errors = (
        state.status and state.status.last_errors if state is not None else None for state in (old, item)
    )
    return (old_errors or None) != (new_errors or None)


def differs_only_in_errors(old: Any, item: Any) -> bool:
    """Return whether two states of an object differ only in `lastErrors`. Such a change is our own record of a failed
    reconcile. If it triggered the reconciler, each failure would cause the next attempt at once, without back-off."""
    if old is None or old.status is None or item.status is None or old.status.last_errors == item.status.last_errors:
        return False
    metadata = msgspec.structs.replace(old.metadata, resource_version=item.metadata.resource_version)
    status = msgspec.structs.replace(old.status, last_errors=item.status.last_errors)
    return bool(metadata == item.metadata and status == item.status and old.spec == item.spec)


def shortest_wait(*waits: float | None) -> float | None:
    """Return the shortest of several waits, or None if there is no wait."""
    return min((wait for wait in waits if wait is not None), default=None)
