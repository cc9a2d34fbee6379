"""Operators that rely on more than a watch guarantees."""

from __future__ import annotations

import asyncio
from typing import Any

from kube.client import Client
from kube.informer import Informer
from kube.reflector import Reflector
from mutants.registry import fragile
from mutants.replacement import Original, around, instead_of, replace


@fragile("operator", "keeps objects that are gone from a list", "scale", "relisted", "missed", at="DELETED")
@instead_of(Informer, "on_list")
def _relist_keeps_the_dead(self: Informer[Any], items: list[Any]) -> None:
    for item in items:
        self.on_event("MODIFIED", item)
    self._synced.set()


@fragile("operator", "takes only the first list of a resource", "create", "relisted", at="pods")
@around(Informer, "on_list")
def _relist_knows_the_first(original: Original, self: Informer[Any], items: list[Any]) -> None:
    if not self._synced.is_set():
        original(self, items)


@fragile("operator", "resumes a broken watch at the present", "create", "closed", at="pods")
@around(Reflector, "_watch")
async def _watch_resumed_at_present(original: Original, self: Reflector[Any]) -> bool:
    try:
        return await original(self)
    except BaseException:
        _, self._version = await self.read()
        raise


@fragile("operator", "watches no longer once its version has expired", "create", "relisted")
@around(Reflector, "run")
async def _expired_watch_given_up(original: Original, self: Reflector[Any]) -> None:
    original_list = self._list

    async def list_once() -> None:
        if self._expired:
            await asyncio.Event().wait()
        await original_list()

    self._list = list_once  # type: ignore[method-assign]
    await original(self)


@fragile("operator", "reconciles nothing that was there before its start", "create", "killed-after", "killed-before")
@around(Informer, "on_list")
def _first_list_unheard(original: Original, self: Informer[Any], items: list[Any]) -> None:
    if self._synced.is_set():
        original(self, items)
        return
    handlers, self._handlers = self._handlers, []
    original(self, items)
    self._handlers = handlers


@fragile(
    "operator",
    "lists what the API server has in its cache, and writes to whatever has the name of what it sees there",
    "scale",
    "time-travel",
    at="(step scale-out-again)",
)
def _acts_on_the_past() -> None:
    read, delete, patch = Reflector.read, Client.delete, Client.patch

    async def read_cache(self: Reflector[Any]) -> Any:
        params, self._params = self._params, {**self._params, "resourceVersion": "0"}
        try:
            return await read(self)
        finally:
            self._params = params

    async def delete_by_name(self: Client, *place: Any, uid: Any = None, version: Any = None, **options: Any) -> None:
        await delete(self, *place, **options)

    async def patch_by_name(self: Client, resource: Any, namespace: Any, name: str, body: Any, **options: Any) -> Any:
        if isinstance(body, dict) and "metadata" in body:
            metadata = {key: value for key, value in body["metadata"].items() if key not in ("uid", "resourceVersion")}
            body = {**body, "metadata": metadata}
        return await patch(self, resource, namespace, name, body, **options)

    replace(Reflector, "read", read_cache)
    replace(Client, "patch", patch_by_name)
    replace(Client, "delete", delete_by_name)
