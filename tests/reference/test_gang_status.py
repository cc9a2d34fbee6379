"""Tests of the PodGang status that the scheduler writes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from kube.errors import ApiError
from kube.resource import Resource
from reference_impl.api.models import PodGang
from reference_impl.plan import conditions
from reference_impl.scheduler import gang_status
from reference_impl.scheduler.gang import ConstraintScope, Gang, Group, score
from reference_impl.scheduler.scheduler import GangScheduler
from tests.kube.leaping import leap
from tests.reference.examples import gpu_pod

ITEM = msgspec.convert(
    {"metadata": {"name": "g"}, "spec": {"podgroups": [{"name": "w", "minReplicas": 1, "podReferences": []}]}}, PodGang
)


def gang(bound):
    return Gang("ns/g", [Group("w", 1, [], [(gpu_pod(f"w{i}", 1), f"n{i}") for i in range(bound)])])


def with_new_status(item, bound, **options):
    return msgspec.structs.replace(item, status=gang_status.status(item, gang(bound), {}, None, "now", **options))


def disruption(item):
    condition = conditions.find(item.status.conditions, gang_status.DISRUPTION)
    return condition and (condition.status, condition.reason)


def test_an_evicted_gang_reports_its_eviction_until_it_is_placed_again():
    running = with_new_status(ITEM, 1)
    assert disruption(running) is None
    victim = with_new_status(running, 1, preemptor="ns/high")
    assert disruption(victim) == ("True", "Preempted")
    waiting = with_new_status(victim, 0)
    assert disruption(waiting) == ("True", "Preempted")
    assert disruption(with_new_status(waiting, 1)) == ("False", "MinimumPlaced")


@pytest.mark.parametrize(
    ("racks", "expected"), [({"n0": "a", "n1": "a"}, 1.0), ({"n0": "a", "n1": "b"}, 0.5), ({"n0": "a"}, 0.5)]
)
def test_the_score_is_the_reciprocal_of_the_number_of_used_domains(racks, expected):
    item = gang(2)
    item.scopes = (ConstraintScope((0,), "", "rack"),)
    assert score(item, lambda key, node: racks.get(node, node)) == expected


def test_a_gang_without_preferences_has_the_best_score():
    assert score(gang(1), lambda key, node: node) == 1.0 and score(gang(0), lambda key, node: node) is None


def test_a_preempted_gang_gets_its_condition_although_the_operator_writes_in_between() -> None:
    """Otherwise nothing would ever say why its pods were evicted (GS-33)."""
    written_in_between = json.dumps(
        {
            "metadata": {"name": "g", "namespace": "ns", "uid": "u-g", "resourceVersion": "2"},
            "spec": {"podgroups": [{"name": "p", "podReferences": [], "minReplicas": 1}]},
            "status": {"conditions": [{"type": "Initialized", "status": "True"}]},
        }
    )
    bodies: list[Any] = []

    class Api:
        on_answer: Any = None

        async def patch(self, resource: Resource, namespace: str, name: str, body: Any, **options: Any) -> bytes:
            if body["metadata"]["resourceVersion"] != "2":
                raise ApiError(409, "Conflict", "the object has been modified", {}, None)
            bodies.append(body)
            return written_in_between.encode()

        async def get_or_none(self, resource: Resource, namespace: str, name: str) -> bytes:
            return written_in_between.encode()

    async def preempt() -> None:
        api: Any = Api()
        scheduler: Any = GangScheduler(api, name="gangs")
        outdated = scheduler._gangs.decode(written_in_between.replace('"2"', '"1"').encode())
        scheduler._gangs.observe(outdated)
        scheduler._preemptors_by_gang = {"ns/g": "ns/high"}
        await scheduler._write_status(("ns", "g"))

    leap(preempt())
    (body,) = bodies
    assert [c["reason"] for c in body["status"]["conditions"] if c["type"] == "DisruptionTarget"] == ["Preempted"]
