"""A kind that an API server goes on serving is described by what still shows it."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.errors import ClusterTooSlow
from conformance.grove.kinds import COMPUTE_DOMAINS
from conformance.suite.scenes.unserved import unserved
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
    ("keeps_crd", "lists", "left"),
    [
        (True, True, "the CRD exists (CustomResource deletion is in progress), discovery names it, its objects can be"),
        (False, False, "deleted: discovery names it"),
    ],
)
def test_what_still_shows_a_kind_is_named(keeps_crd: bool, lists: bool, left: str) -> None:
    api: Any = SlowApi(keeps_crd, lists)
    with pytest.raises(ClusterTooSlow) as slow, unserved(api, str(COMPUTE_DOMAINS), 0.1):
        raise AssertionError("the kind is still served")
    assert left in str(slow.value)
