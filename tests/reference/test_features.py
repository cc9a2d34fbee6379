"""What an operator says of a cluster that cannot do what it is to do."""

from __future__ import annotations

from typing import Any

import orjson

from kube.errors import ApiError
from reference_impl.control.features import EARLIER_TOPOLOGIES, Features, unmet

NOT_FOUND = ApiError(404, "NotFound", "", {}, None)


class Answers:
    """A client that gets these answers, by the end of the path; anything else is not there."""

    def __init__(self, **answers: object) -> None:
        self._answers = answers

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        found = self._answers.get(path.rpartition("/")[2].partition(".")[0])
        if found is None:
            raise NOT_FOUND
        return orjson.dumps(found)


async def said(features: Features, **answers: object) -> str:
    return await unmet(Answers(**answers), features)  # type: ignore[arg-type]


async def test_nothing_is_needed_where_nothing_is_switched_on():
    assert await said(Features()) == ""


async def test_a_missing_kind_is_named():
    assert "computedomains" in await said(Features(mnnvl=True))
    assert "clustertopologybindings" in await said(Features(topology=True))
    assert await said(Features(topology=True, mnnvl=True), clustertopologybindings={}, computedomains={}) == ""


async def test_the_crd_of_an_earlier_version_that_is_in_the_way_is_named():
    complaint = await said(Features(topology=True), clustertopologies={"metadata": {}})
    assert EARLIER_TOPOLOGIES in complaint
    assert f"kubectl delete crd {EARLIER_TOPOLOGIES}" in complaint
    assert "kubectl get" in complaint  # what it holds is to be kept first
