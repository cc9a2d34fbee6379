"""Operators that do not retry failed requests, or that retry the wrong requests."""

from __future__ import annotations

from typing import Any

import aiohttp

from kube.client import Client
from kube.errors import ApiError
from kube.informer import Informer
from kube.workqueue import WorkQueue
from mutants.registry import fragile
from mutants.replacement import Original, around, replace
from reference_impl.control.last_errors import LastErrors
from reference_impl.control.writer import Writer


@fragile("operator", "drops a key whose reconcile failed", "create", "broken", "unavailable")
def _failed_keys_dropped() -> None:
    replace(WorkQueue, "retry", lambda self, key: None)


def _swallow_errors(name: str, swallow: Any) -> None:
    """Make a method of Writer ignore the errors for which `swallow` returns True."""
    original = getattr(Writer, name)

    async def swallowing(self: Writer, *arguments: Any, **named: Any) -> Any:
        try:
            return await original(self, *arguments, **named)
        except Exception as error:
            if swallow(error):
                return None
            raise

    replace(Writer, name, swallowing)


def _has_status(*codes: int) -> Any:
    return lambda error: isinstance(error, ApiError) and error.status in codes


@fragile("operator", "takes a refused patch for done after a conflict", "create", "conflict")
def _conflicts_taken_for_done() -> None:
    _swallow_errors("_send_patch", _has_status(409))


@fragile("operator", "skips a patch that is throttled", "create", "throttled", at="patch pod")
def _throttled_patches_skipped() -> None:
    _swallow_errors("_send_patch", _has_status(429))


@fragile("operator", "takes a patch for done while the API server is away", "create", "unavailable", at="patch pod")
def _outages_taken_for_done() -> None:
    _swallow_errors("_send_patch", _has_status(503))


@fragile("operator", "gives up an object whose creation has failed once", "create", "broken")
@around(Writer, "create", memory=set)
async def _failed_creations_given_up(
    original: Original, given_up: set[tuple[str, str]], self: Writer, informer: Informer[Any], manifest: dict[str, Any]
) -> None:
    key = informer.resource.kind, str(manifest["metadata"].get("name"))
    if key in given_up:
        return
    try:
        await original(self, informer, manifest)
    except ApiError as error:
        if "name" in manifest["metadata"] and error.status == 500:
            given_up.add(key)
        raise


@fragile("operator", "creates an object again when it hears no answer", "create", "lost-answer", at="create pods")
@around(Client, "create")
async def _lost_creations_repeated(original: Original, self: Client, resource: Any, body: Any, **named: Any) -> bytes:
    try:
        return await original(self, resource, body, **named)
    except (aiohttp.ClientError, TimeoutError):
        return await original(self, resource, body, **named)


@fragile("operator", "gives up a deletion that has failed once", "scale", "broken", "unavailable", at="delete")
@around(Writer, "_delete", memory=set)
async def _failed_deletions_given_up(
    original: Original, given_up: set[str], self: Writer, informer: Informer[Any], item: Any, *rest: Any
) -> None:
    if item.metadata.uid in given_up:
        return
    try:
        await original(self, informer, item, *rest)
    except ApiError:
        given_up.add(item.metadata.uid)
        raise


@fragile("operator", "does not see its own creations before the watch shows them", "create", "late", at="ADDED pods")
def _own_writes_unseen() -> None:
    replace(Informer, "observe", lambda self, item: None)


@fragile("operator", "reports an error in lastErrors for ever", "create", "broken", at="create pods")
@around(LastErrors, "report")
async def _errors_never_withdrawn(original: Original, self: LastErrors, key: Any, problem: Any) -> float | None:
    return await original(self, key, problem) if problem is not None else None
