"""Tests of an operator's error messages about a cluster that lacks what the operator needs."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kube.errors import ApiError
from reference_impl.control.features import EARLIER_TOPOLOGIES, Features, unmet, with_form
from reference_impl.plan.lines import MAPS, NAMES
from reference_impl.plan.workload_api.mode import Form, Mode

NOT_FOUND = ApiError(404, "NotFound", "", {}, None)


class Answers:
    """A client that returns these responses by the last part of the path; everything else is not found."""

    def __init__(self, **answers: object) -> None:
        self._answers = answers

    async def request(self, method: str, path: str, **options: Any) -> bytes:
        answer = self._answers.get(path.rpartition("/")[2].partition(".")[0])
        if answer is None:
            raise NOT_FOUND
        return orjson.dumps(answer)


async def complaint_about(features: Features, **answers: object) -> str:
    return await unmet(Answers(**answers), features, NAMES)  # type: ignore[arg-type]


async def test_nothing_is_needed_where_nothing_is_switched_on():
    assert await complaint_about(Features()) == ""


async def test_a_missing_kind_is_named():
    assert "computedomains" in await complaint_about(Features(mnnvl=True))
    assert "clustertopologybindings" in await complaint_about(Features(topology=True))
    assert (
        await complaint_about(Features(topology=True, mnnvl=True), clustertopologybindings={}, computedomains={}) == ""
    )


async def test_the_crd_of_an_earlier_version_that_is_in_the_way_is_named():
    complaint = await complaint_about(Features(topology=True), clustertopologies={"metadata": {}})
    assert EARLIER_TOPOLOGIES in complaint
    assert f"kubectl delete crd {EARLIER_TOPOLOGIES}" in complaint
    assert "kubectl get" in complaint  # the user is to save the objects first


# -- gangs on kube-scheduler (WL37-E01, WL37-E05, WL-H13, WL-H14) ------------------------------------------------------

ON = Features(workload_api=Mode())


class Versions:
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
async def test_the_form_is_what_the_cluster_can_express(served: tuple[str, ...], form: Form, missing: str):
    client: Any = Versions(*served)
    features = await with_form(client, ON)
    assert features.workload_api is not None and features.workload_api.form is form
    complaint = await unmet(client, features, NAMES)
    assert (missing in complaint) if missing else complaint == ""
    if missing:
        assert all(gate in complaint for gate in ("GenericWorkload", "TopologyAware", "CompositePodGroup"))
        assert "gangScheduling: false" in complaint and "\n" not in complaint


async def test_without_the_api_the_operator_does_not_start():
    client: Any = Versions()
    assert "does not serve" in await unmet(client, await with_form(client, ON), NAMES)


async def test_without_gang_scheduling_nothing_is_asked():
    client: Any = Versions()
    assert await with_form(client, Features()) == Features() and await unmet(client, Features(), NAMES) == ""


async def test_the_line_of_maps_needs_podgangmaps() -> None:
    complaint = await unmet(Answers(), Features(), MAPS)  # type: ignore[arg-type]
    assert "serves no podgangmaps" in complaint and "--contract names" in complaint
    assert await unmet(Answers(), Features(maps=True), MAPS) == ""  # type: ignore[arg-type]
