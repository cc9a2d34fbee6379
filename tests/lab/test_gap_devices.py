"""Tests of instances with devices: the nodes, the claims of pods in each form, and outcomes that devices make wrong."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformance.cluster import gpu_devices
from conformance.history.view import View
from conformance.lab.gaps import device_claims, results
from conformance.lab.gaps.forms import FORMS, SETS, Form
from conformance.lab.gaps.instances import GapInstance, NodeGroup, ServiceComponent
from conformance.lab.gaps.playing import GapOutcome, devices_are_published
from conformance.lab.gaps.plays import InstanceRun
from conformance.lab.gaps.sets import SetInstanceRun
from tests.history.story import Story
from tests.lab.test_gaps import environment_recording

WORKER = ServiceComponent("worker", 1, pods=2, gpus=0, device="1g.2gb")
SHARED = [ServiceComponent(name, 1, gpus=0, device="gpu", shared=True, cpu=3) for name in ("prefill", "decode")]
INSTANCE = GapInstance("x", ("DRA-41",), (NodeGroup(profile="tiny", faulty=1),), (WORKER, *SHARED), "nothing")


def run_of(form: Form) -> tuple[InstanceRun, list[dict[str, Any]]]:
    created: list[dict[str, Any]] = []
    run_class = SetInstanceRun if form.api == SETS else InstanceRun
    env = environment_recording(created)
    env.acts = []
    env.dry_run = SimpleNamespace(create=dict, ask=lambda request: SimpleNamespace(accepted=False))
    return run_class(env, form, INSTANCE), created


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_pods_claim_their_devices_in_each_form(form: Form) -> None:
    run, created = run_of(form)
    run.create()
    bench = run.bench.name
    assert [(claim["kind"], claim["metadata"]["name"]) for claim in created[:2]] == [
        ("ResourceClaimTemplate", f"{bench}-worker"),
        ("ResourceClaim", f"{bench}-shared"),
    ]
    if form.api == SETS:
        specs = [clique["spec"]["podSpec"] for clique in created[-1]["spec"]["template"]["cliques"]]
    else:
        specs = [pod["spec"] for pod in run.pods()[1:]]
    template, shared = {"resourceClaimTemplateName": f"{bench}-worker"}, {"resourceClaimName": f"{bench}-shared"}
    assert [spec["resourceClaims"] for spec in specs] == [[{"name": "gpu", **s}] for s in (template, shared, shared)]
    assert [spec["containers"][0]["resources"]["limits"] for spec in specs] == [{"cpu": cpu} for cpu in ("1", "3", "3")]


def test_nodes_offer_devices_instead_of_gpus_and_some_have_failed() -> None:
    [node] = run_of(FORMS[0])[0].nodes()
    annotations, story = node["metadata"]["annotations"], Story()
    assert gpu_devices.GPU not in node["status"]["allocatable"]
    assert [bool(taints) for taints in gpu_devices.device_taints(annotations).values()] == [True, False]
    is_published = devices_are_published([node])
    assert not is_published(view(story))
    for item in gpu_devices.slice_manifests(node["metadata"]["name"], "uid", annotations):
        story.record("resourceslices", item["metadata"]["name"], item)
    assert is_published(view(story)) is True


@pytest.mark.parametrize(
    ("bound", "allocated", "problem"),
    [
        (True, True, ""),
        (True, False, "a pod is bound without the devices of x-shared"),
        (False, True, "it holds 1 devices while it waits"),
        (False, False, ""),
    ],
)
def test_bound_pods_have_devices_and_others_have_none(bound: bool, allocated: bool, problem: str) -> None:
    pod: dict[str, Any] = {"spec": {"resourceClaims": [{"name": "gpu", "resourceClaimName": "x-shared"}]}}
    story, devices = Story(), {"results": [{"request": "gpu", "driver": "d", "pool": "p", "device": "gpu-0"}]}
    story.record("resourceclaims", "x-shared", {"status": {"allocation": {"devices": devices}} if allocated else {}})
    assert device_claims.find_violation(view(story), "x", [pod] if bound else []) == problem
    assert device_claims.count_allocated(view(story), "x") == allocated


def test_outcomes_say_how_many_devices_are_allocated() -> None:
    document, counts = results.document({}, FORMS, 1), {"worker": [2], "prefill": [0], "decode": [0]}
    results.add(document, GapOutcome(FORMS[0], INSTANCE, 1, counts, "expected: nothing", 3))
    [entry] = results.outcomes(document, FORMS[0], INSTANCE)
    assert results.describe_outcomes([entry]) == "{2, 0, 0} on 3 devices ✗"


def view(story: Story) -> View:
    result = View()
    for record in story.history.records():
        result.apply(record)
    return result
