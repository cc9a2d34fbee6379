"""Tests of an operator's error messages about a cluster that lacks a required API."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kube.errors import ApiError
from reference_impl.control.features import EARLIER_TOPOLOGIES, Features, missing_api, with_form
from reference_impl.plan.lines import MAPS, NAMES
from reference_impl.plan.workload_api.mode import Form, Mode

NOT_FOUND = ApiError(404, "NotFound", "", {}, None)


class CannedClient:
    """A client that returns canned responses by the last part of the path, or NotFound for other paths."""

    def __init__(self, **answers: object) -> None:
        self._answers = answers

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        answer = self._answers.get(path.rpartition("/")[2].partition(".")[0])
        if answer is None:
            raise NOT_FOUND
        return orjson.dumps(answer)


async def missing_api_message(features: Features, **answers: object) -> str:
    return await missing_api(CannedClient(**answers), features, NAMES)  # type: ignore[arg-type]


async def test_nothing_is_required_without_features():
    assert await missing_api_message(Features()) == ""


async def test_a_missing_kind_is_reported_by_name():
    assert "computedomains" in await missing_api_message(Features(mnnvl=True))
    assert "clustertopologybindings" in await missing_api_message(Features(topology=True))
    assert (
        await missing_api_message(Features(topology=True, mnnvl=True), clustertopologybindings={}, computedomains={})
        == ""
    )


async def test_a_conflicting_crd_of_an_earlier_version_is_reported_by_name():
    message = await missing_api_message(Features(topology=True), clustertopologies={"metadata": {}})
    assert EARLIER_TOPOLOGIES in message
    assert f"kubectl delete crd {EARLIER_TOPOLOGIES}" in message
    assert "kubectl get" in message  # the user is to save the objects first


# -- gangs on kube-scheduler (WL37-E01, WL37-E05, WL-H13, WL-H14) ------------------------------------------------------

ON = Features(workload_api=Mode())


class VersionedClient:
    """A client of a cluster that serves these resources of scheduling.k8s.io, each as `version/plural`."""

    def __init__(self, *served: str) -> None:
        self._served = {f"/apis/scheduling.k8s.io/{version}" for version in served}

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        if path not in self._served:
            raise NOT_FOUND
        return b"{}"


BETA = ("v1beta1/workloads", "v1beta1/podgroups")
OLD = ("v1alpha2/workloads", "v1alpha2/podgroups")


@pytest.mark.parametrize(
    ("served", "form", "missing"),
    [
        ((*BETA, "v1alpha3/compositepodgroups"), Form.TREE, ""),
        ((*BETA, *OLD, "v1alpha3/compositepodgroups"), Form.TREE, ""),
        (OLD, Form.FLAT, ""),
        ((), Form.TREE, "workloads.scheduling.k8s.io (v1beta1), compositepodgroups"),
        (BETA, Form.TREE, "compositepodgroups.scheduling.k8s.io (v1alpha3)"),
        (("v1alpha3/compositepodgroups",), Form.TREE, "workloads.scheduling.k8s.io (v1beta1), podgroups"),
        (("v1beta1/workloads", "v1alpha3/compositepodgroups"), Form.TREE, "podgroups.scheduling.k8s.io (v1beta1)"),
        ((*BETA, *OLD), Form.TREE, "compositepodgroups.scheduling.k8s.io (v1alpha3)"),
        (("v1alpha2/workloads",), Form.TREE, "workloads.scheduling.k8s.io (v1beta1)"),
    ],
)
async def test_the_form_depends_on_the_served_resources(served: tuple[str, ...], form: Form, missing: str):
    client: Any = VersionedClient(*served)
    features = await with_form(client, ON)
    assert features.workload_api is not None and features.workload_api.form is form
    message = await missing_api(client, features, NAMES)
    assert (missing in message) if missing else message == ""
    if missing:
        assert all(gate in message for gate in ("GenericWorkload", "TopologyAware", "CompositePodGroup"))
        assert "gangScheduling: false" in message and "\n" not in message


async def test_the_operator_does_not_start_without_the_api():
    client: Any = VersionedClient()
    assert "does not serve" in await missing_api(client, await with_form(client, ON), NAMES)


async def test_nothing_is_requested_without_gang_scheduling():
    client: Any = VersionedClient()
    assert await with_form(client, Features()) == Features() and await missing_api(client, Features(), NAMES) == ""


async def test_the_release_line_maps_requires_podgangmaps() -> None:
    message = await missing_api(CannedClient(), Features(), MAPS)  # type: ignore[arg-type]
    assert "serves no podgangmaps" in message and "--contract names" in message
    assert await missing_api(CannedClient(), Features(maps=True), MAPS) == ""  # type: ignore[arg-type]
