"""Tests that all objects of a kind are deleted, and that a kind which stays served is reported with its traces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from conformance.errors import ClusterTooSlow
from conformance.grove.kinds import COMPUTE_DOMAINS
from conformance.suite.scenes.unserved import clear, unserved
from kube.errors import ApiError
from kube.resource import Resource

TERMINATING = {"type": "Terminating", "message": "CustomResource deletion is in progress"}


class SlowApi:
    """An API server that keeps a deleted CRD, or just its name in discovery."""

    def __init__(self, keeps_crd: bool, lists: bool) -> None:
        self._keeps_crd, self._lists, self._deleted = keeps_crd, lists, False

    def of_plural(self, plural: str) -> Resource:
        return COMPUTE_DOMAINS

    def get(self, plural: str, namespace: str | None, name: str) -> dict[str, Any]:
        if self._deleted and not self._keeps_crd:
            raise ApiError.of(404, b"", None)
        return {"metadata": {"name": name}, "spec": {}, "status": {"conditions": [TERMINATING]}}

    def delete(self, plural: str, namespace: str | None, names: list[str]) -> None:
        self._deleted = True

    def discover(self) -> dict[str, Resource]:
        return {str(COMPUTE_DOMAINS): COMPUTE_DOMAINS}

    def work(self, work: object) -> bool:
        return self._lists


@pytest.mark.parametrize(
    ("keeps_crd", "lists", "traces"),
    [
        (True, True, "the CRD exists (CustomResource deletion is in progress), discovery names it, its objects can be"),
        (False, False, "deleted: discovery names it"),
    ],
)
def test_the_remaining_traces_of_a_kind_are_named(keeps_crd: bool, lists: bool, traces: str) -> None:
    api: Any = SlowApi(keeps_crd, lists)
    with pytest.raises(ClusterTooSlow) as slow, unserved(api, str(COMPUTE_DOMAINS), 0.1):
        raise AssertionError("the kind is still served")
    assert traces in str(slow.value)


class TerminatingDomains:
    """An API whose objects disappear once they are deleted and have no finalizers. If `stuck`, finalizers stay."""

    def __init__(self, stuck: bool) -> None:
        self._finalizers: dict[str, list[str]] = {"free": [], "held": ["grove.io/domain"]}
        self._stuck = stuck

    def of_plural(self, plural: str) -> Resource:
        return COMPUTE_DOMAINS

    def work(self, action: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        return asyncio.run(action(self))

    async def list(self, resource: Resource) -> list[dict[str, Any]]:
        return [{"metadata": {"namespace": "earlier", "name": name}} for name in self._finalizers]

    async def delete(self, resource: Resource, namespace: str, name: str) -> None:
        if not self._finalizers[name]:
            del self._finalizers[name]

    async def patch(self, resource: Resource, namespace: str, name: str, body: object, content_type: str) -> None:
        if name not in self._finalizers:
            raise ApiError.of(404, b"", None)
        if not self._stuck:
            del self._finalizers[name]


def test_objects_with_finalizers_are_cleared() -> None:
    api: Any = TerminatingDomains(stuck=False)
    clear(api, str(COMPUTE_DOMAINS), 5)
    assert api.work(lambda client: client.list(COMPUTE_DOMAINS)) == []


def test_objects_that_stay_are_named() -> None:
    api: Any = TerminatingDomains(stuck=True)
    with pytest.raises(ClusterTooSlow, match=r"computedomains\.resource\.nvidia\.com: earlier/held exist 0\.1 s after"):
        clear(api, str(COMPUTE_DOMAINS), 0.1)
