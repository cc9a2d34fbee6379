"""Tests that the scheduler runs where the API server has no ResourceClaims."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kube.errors import ApiError
from reference_impl.scheduler.devices import claim_store


class Server:
    """An API server that answers discovery with an HTTP status."""

    def __init__(self, status: int) -> None:
        self.status = status

    async def request(self, method: str, path: str) -> bytes:
        assert (method, path) == ("GET", "/apis/resource.k8s.io/v1")
        if self.status != 200:
            raise ApiError(self.status, "NotFound" if self.status == 404 else "Forbidden", "", {}, None)
        return b"{}"


@pytest.mark.parametrize(("status", "served"), [(200, True), (404, False)])
def test_a_missing_group_is_not_served(status: int, served: bool) -> None:
    server: Any = Server(status)
    assert asyncio.run(claim_store.is_served(server)) is served


def test_another_error_is_raised() -> None:
    server: Any = Server(403)
    with pytest.raises(ApiError):
        asyncio.run(claim_store.is_served(server))
