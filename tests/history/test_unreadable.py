"""Tests of a resource that no client can list, for example because its conversion webhook fails."""

from __future__ import annotations

import asyncio

from conformance.history.recorder import Recorder, Watched
from kube.errors import ApiError
from kube.resource import SERVICES

ANSWER = "conversion webhook for example/v1, Kind=Service failed"


class Refusing:
    """A client whose lists all fail."""

    async def request(self, *arguments: object, **options: object) -> bytes:
        raise ApiError(500, "InternalError", ANSWER, {}, None)


def test_a_lagging_resource_is_named_with_the_response_of_the_api_server() -> None:
    [feed] = Recorder("kubeconfig", watched=[Watched(SERVICES)])._feeds

    async def ask() -> None:
        asking = asyncio.create_task(feed.pass_list(Refusing(), "space"))  # type: ignore[arg-type]
        await asyncio.wait([asking], timeout=0.1)
        asking.cancel()

    assert feed.lagging == "services"
    asyncio.run(ask())
    assert feed.lagging == f"services (500 InternalError: {ANSWER})"
