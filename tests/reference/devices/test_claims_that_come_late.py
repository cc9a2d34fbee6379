"""Tests that the scheduler decides again about pods whose claims get their names after its first decision."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from reference_impl.scheduler.model import Pod
from tests.kube.leaping import leap
from tests.reference.devices.test_devices_of_killed_schedulers import a_cluster, a_scheduler, judge

MEMBER = "second0"


def pod(item: dict[str, Any]) -> Pod:
    return msgspec.convert(item, Pod, strict=False)


def test_a_pod_whose_claim_gets_its_name_late_is_placed() -> None:
    """The control plane creates a claim before it writes its name into the status of the pod."""

    async def named_late() -> None:
        api = a_cluster()
        named_pod = copy.deepcopy(api.stored["pods", MEMBER])
        api.stored["pods", MEMBER]["status"] = {}
        scheduler: Any = a_scheduler(api)
        await scheduler._cycle()
        judge(api, "first")
        scheduler._changed.clear()
        api.put("pods", named_pod)
        scheduler._pods.on_event("MODIFIED", pod(named_pod))
        assert scheduler._changed.is_set()
        await scheduler._cycle()
        judge(api, "first", "second")

    leap(named_late())
