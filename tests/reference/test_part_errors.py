"""Tests that a set reports each error of its cliques and scaling groups once, regardless of the number of replicas and
retries."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import orjson

from kube.informer import Informer, typed_decoder
from kube.resource import EVENTS, Resource
from reference_impl.api.models import (
    PODCLIQUESETS,
    LastError,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodCliqueStatus,
    ScalingGroupStatus,
    to_json,
)
from reference_impl.control.last_errors import LastErrors, errors_changed
from reference_impl.control.metrics import OperatorMetrics
from reference_impl.control.writer import Writer
from reference_impl.plan import children, part_errors, pods
from reference_impl.plan.reconcile_error import ReconcileError
from tests.reference.examples import disaggregated, standalone

QUOTA = 'pods "{}" is forbidden: exceeded quota: few, requested: pods=1, used: pods={}, limited: pods=4'
KEY = ("ns", "llm")


def _router(pcs: PodCliqueSet, index: int, *descriptions: str) -> PodClique:
    [template] = children.standalone_templates(pcs)
    clique = msgspec.convert(standalone(pcs, index, template), PodClique)
    errors = [LastError("ERR_SYNC_PODS", description, "2026-01-01T00:00:00Z") for description in descriptions]
    return msgspec.structs.replace(clique, status=PodCliqueStatus(last_errors=errors))


def test_an_error_has_the_same_text_for_all_attempts_and_replicas() -> None:
    texts = [
        pods.without_attempt_details(QUOTA.format(f"llm-{index}-router-{suffix}", used), f"llm-{index}-router")
        for index, suffix, used in ((0, "x7k2p", 3), (0, "b9d4q", 4), (1, "zz81m", 4))
    ]
    assert texts[0] == texts[1]
    pcs = disaggregated(replicas=2)
    routers = [_router(pcs, 0, texts[0]), _router(pcs, 1, texts[2])]
    [error] = part_errors.part_errors(pcs, routers)
    reason = 'pods "*-router-*" is forbidden: exceeded quota: few, requested: pods=1, limited: pods=4'
    assert error.description == f"PodClique router: {reason}"


def test_parts_being_deleted_do_not_count_and_errors_are_limited() -> None:
    pcs = disaggregated()
    terminating = _router(pcs, 0, "no")
    terminating.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    unknown = _router(pcs, 0, "no")
    unknown.metadata.name = "llm-0-other"
    assert part_errors.part_errors(pcs, [terminating, unknown, _router(pcs, 0)]) == []
    routers = [_router(pcs, 0, f"claim-{number} is missing") for number in range(part_errors.MAX_ERRORS + 5)]
    assert len(part_errors.part_errors(pcs, routers)) == part_errors.MAX_ERRORS
    manifest = children.scaling_group(pcs, 0, children.group_configs(pcs)[0])
    group = msgspec.convert(manifest, PodCliqueScalingGroup)
    status = ScalingGroupStatus(last_errors=[LastError("ERR_SYNC_PODCLIQUES", "no", "")])
    [error] = part_errors.part_errors(pcs, [msgspec.structs.replace(group, status=status)])
    assert error.description == "PodCliqueScalingGroup workers: no"


def test_the_set_is_triggered_when_errors_appear_or_disappear() -> None:
    pcs = disaggregated()
    healthy, failing = _router(pcs, 0), _router(pcs, 0, "no")
    assert errors_changed(healthy, failing) and errors_changed(failing, healthy) and errors_changed(failing, None)
    assert (
        not errors_changed(failing, failing) and not errors_changed(None, healthy) and not errors_changed(healthy, None)
    )


class CountingClient:
    """A client that accepts and counts events and patches of one set."""

    def __init__(self, pcs: PodCliqueSet) -> None:
        self.stored: dict[str, Any] = to_json(pcs)
        self.events: list[str] = []
        self.patches = 0
        self.on_answer: Any = None

    async def create(self, resource: Resource, manifest: dict[str, Any]) -> bytes:
        assert resource is EVENTS and manifest["type"] == "Warning" and manifest["regarding"]["kind"] == "PodCliqueSet"
        self.events.append(manifest["note"])
        return b"{}"

    async def patch(self, resource: Resource, namespace: str, name: str, body: Any, **options: Any) -> bytes:
        self.patches += 1
        self.stored["metadata"]["resourceVersion"] = str(10 + self.patches)
        self.stored["status"] = body["status"]
        return orjson.dumps(self.stored)


def test_retries_write_nothing_and_resolved_errors_are_removed() -> None:
    client = CountingClient(disaggregated())
    informer = Informer(client, PODCLIQUESETS, typed_decoder(PodCliqueSet))  # type: ignore[arg-type]
    informer.observe(informer.decode(orjson.dumps(client.stored)))
    problems = [ReconcileError("ERR_SYNC_PODS", "PodClique router: no")]
    written = LastErrors(informer, Writer(client, OperatorMetrics()), lambda pcs: problems)  # type: ignore[arg-type]

    async def passes(count: int) -> list[float | None]:
        return [await written.report(KEY, None) for _ in range(count)]

    assert asyncio.run(passes(100)) == [None] * 100, "the cliques wake the set"
    assert (client.patches, client.events) == (1, ["PodClique router: no"])
    problems.append(ReconcileError("ERR_SYNC_PODS", "PodClique decode: no"))
    asyncio.run(passes(3))
    assert (client.patches, client.events[1:]) == (2, ["PodClique decode: no"])
    problems.clear()
    asyncio.run(passes(3))
    assert (client.patches, len(client.events)) == (3, 2)
    assert client.stored["status"]["lastErrors"] is None
