"""Tests that the reference reaches its usual state despite each fault, and that an operator that does not tolerate
faults is detected."""

from __future__ import annotations

from pathlib import Path

import aiohttp
import pytest

from conformance.cluster.progress import report_nothing
from conformance.errors import UsageError
from conformance.implementation import deployment
from conformance.implementation.descriptor import Role
from conformance.nemesis import campaign, catalog, scenario
from conformance.nemesis import play as playing
from conformance.nemesis.bed import FaultTestbed, open_testbed
from conformance.nemesis.play import FaultVerdict, learn, play
from conformance.nemesis.points import FaultPlan, FaultPoint

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

CREATE = scenario.load("create")


def find_point(points: list[FaultPoint], text: str) -> FaultPoint:
    return next(point for point in points if text in str(point))


@pytest.mark.thorough
def test_the_reference_reaches_the_same_state_as_without_the_fault(tmp_path: Path) -> None:
    implementation, supplier = deployment.load("reference", {})
    with open_testbed(implementation, supplier, Role.OPERATOR, report_nothing) as testbed:
        faultless_runs = learn(testbed, CREATE)
        points = list(faultless_runs.points)
        assert {point.kind for point in points} == {"write", "event"} and faultless_runs.rests["create"].taken_down == 0
        pods, event = find_point(points, "create pods"), find_point(points, "event ADDED pods")
        for fault, point in (("killed-after", pods), ("lost-answer", pods), ("conflict", pods), ("relisted", event)):
            outcome = play(testbed, CREATE, faultless_runs, FaultPlan("create", fault, point))
            assert outcome.verdict is FaultVerdict.SAME, (fault, outcome.lines)
        unused_point = FaultPoint("create", "write", "delete", "nodes")
        assert (
            play(testbed, CREATE, faultless_runs, FaultPlan("create", "conflict", unused_point)).verdict
            is FaultVerdict.NOT_STRUCK
        )
        _assert_a_campaign_continues(testbed, tmp_path / "tried.jsonl")
        _assert_the_proxy_refuses_other_clients(testbed)


def _assert_a_campaign_continues(testbed: FaultTestbed, path: Path) -> None:
    faults = catalog.select(["lost-answer"])
    counts = []
    for _ in range(2):
        fault_campaign = campaign.Campaign(
            [testbed], campaign.Journal(path), report_nothing, lambda outcome: None, point_text="create services"
        )
        fault_campaign.run([CREATE], faults, 60)
        counts.append([(results.plans, len(results.tried)) for results in fault_campaign.results])
    assert counts == [[(1, 1)]] * 2 and len(path.read_bytes().splitlines()) == 1


def _assert_the_proxy_refuses_other_clients(testbed: FaultTestbed) -> None:
    async def send_request() -> None:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://127.0.0.1:{testbed.proxy.port}/api", ssl=False) as answer,
        ):
            await answer.read()

    with pytest.raises(aiohttp.ClientError):
        testbed.loop.run(send_request())


def test_an_operator_that_repeats_lost_creations_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "FINAL_REST_SECONDS", 5.0)
    implementation, supplier = deployment.load("reference", {"mutant": "lost-creations-repeated"})
    with open_testbed(implementation, supplier, Role.OPERATOR, report_nothing) as testbed:
        faultless_runs = learn(testbed, CREATE)
        point = find_point(list(faultless_runs.points), "create pods")
        outcome = play(testbed, CREATE, faultless_runs, FaultPlan("create", "lost-answer", point))
        assert outcome.verdict is FaultVerdict.DIFFERENT and outcome.place == "create"
        assert any("pod-index" in line or line.startswith("INV-025") for line in outcome.lines), outcome.lines


@pytest.mark.thorough
def test_an_operator_that_bypasses_the_proxy_is_reported(tmp_path: Path) -> None:
    descriptor = tmp_path / "other.yaml"
    idle_process = f'{{argv: ["{Path(__file__).parent / "idle.sh"}"], ready: {{log: ready, within: 10}}}}'
    descriptor.write_text(f"""
apiVersion: conformance.grove.io/v1alpha1
kind: Implementation
name: other
version: "1"
roles: [operator, gang-scheduler]
schedulerName: other
processes: {{operator: {idle_process}, gang-scheduler: {idle_process}}}
""")
    implementation, supplier = deployment.load(str(descriptor), {})
    with (
        pytest.raises(UsageError, match=r"sent nothing through the proxy.*HTTP/1\.1"),
        open_testbed(implementation, supplier, Role.OPERATOR, report_nothing),
    ):
        pass
