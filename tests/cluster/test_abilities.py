"""Tests that the suite finds out within seconds which behaviors a cluster can simulate, even if the suite did not start
the cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from conformance.cluster import abilities
from conformance.cluster.abilities import Ability
from conformance.cluster.controlplane import Cluster
from conformance.errors import UsageError
from conformance.grove import workloads
from kube.client import Client
from kube.resource import NODES, PODS
from tests.cluster.foreign import foreign_cluster

NULL_SCHEDULING_GATES = {"spec": {"schedulingGates": None}}


@pytest.mark.parametrize(
    ("obj", "expected_abilities"),
    [
        (workloads.load("frontend"), set()),
        (workloads.load("chain"), {Ability.STARTUP}),
        (workloads.load("chain", {"startup": "CliqueStartupTypeAnyOrder"}), set()),
        ({"metadata": {"annotations": {"conformance.grove.io/behavior": "slow"}}}, {Ability.BEHAVIORS}),
        ({"metadata": {"annotations": {"conformance.grove.io/hold-ready": None}}}, {Ability.BEHAVIORS}),
        ([{"metadata": {"annotations": {"conformance.grove.io/ready-after": "1s"}}}], {Ability.BEHAVIORS}),
        ({"metadata": {"labels": {"conformance.grove.io/lost": "yes"}}}, {Ability.NODE_FAILURES}),
        ({"metadata": {"labels": {"conformance.grove.io/pool": "mine"}}}, set()),
        (NULL_SCHEDULING_GATES, set()),
    ],
)
def test_needed_abilities_are_read_from_an_object(obj: object, expected_abilities: set[Ability]) -> None:
    assert abilities.required_abilities(obj) == expected_abilities


@pytest.fixture(scope="module")
def foreign_kwok(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A KWOK cluster with KWOK's own stages and without the suite's additional process."""
    with foreign_cluster(tmp_path_factory.mktemp("state"), by_api=False) as cluster:
        yield cluster


def find_missing_abilities(cluster: Cluster, timeout: float) -> dict[Ability, str]:
    async def ask() -> tuple[dict[Ability, str], list[Any]]:
        async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="test") as client:
            try:
                result = await abilities.find_missing_abilities(client, timeout)
            finally:
                leftovers = [*await client.list(NODES), *await client.list(PODS)]
            return result, leftovers

    result, leftovers = asyncio.run(ask())
    assert leftovers == []
    return result


@pytest.mark.cluster
def test_a_cluster_of_the_suite_has_all_abilities(bare_cluster: Cluster) -> None:
    started_at = time.monotonic()
    assert find_missing_abilities(bare_cluster, 30) == {}
    assert time.monotonic() - started_at < 9, "a crash is seen before its restart, which comes after 10 s"


@pytest.mark.cluster
def test_a_foreign_cluster_simulates_only_plain_pods(foreign_kwok: Cluster) -> None:
    started_at = time.monotonic()
    missing_abilities = find_missing_abilities(foreign_kwok, 4)
    assert time.monotonic() - started_at < 10, "4 s, and the requests of a busy machine"
    assert missing_abilities == {
        Ability.BEHAVIORS: "a pod with conformance.grove.io/behavior: crash-loop does not crash",
        Ability.STARTUP: "a pod with a waiting init container is Ready",
        Ability.NODE_FAILURES: "a node with the label conformance.grove.io/lost stays Ready",
    }


@pytest.mark.cluster
def test_a_cluster_without_a_running_kwok_is_refused_in_one_line(foreign_kwok: Cluster) -> None:
    kwok = foreign_kwok.monitor.process("kwok-controller")
    assert kwok is not None
    kwok.suspend()
    try:
        with pytest.raises(UsageError, match=r"a fake node is not Ready after 0.5 s: KWOK does not run"):
            find_missing_abilities(foreign_kwok, 0.5)
    finally:
        kwok.resume()
