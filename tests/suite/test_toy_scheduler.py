"""Tests of a gang scheduler with two processes on one cluster: its installation, and how its failures are reported."""

from __future__ import annotations

import asyncio
import gzip
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from faked import Faked
from real import RealRun

from conformance.cluster.controlplane import Cluster
from conformance.errors import HarnessError
from conformance.implementation import deployment, loading
from conformance.implementation.descriptor import Role
from conformance.implementation.driver import Driver, NotStarted
from kube.client import Client
from kube.errors import ApiError
from kube.resource import NAMESPACES, PODS, Resource

pytestmark = pytest.mark.cluster

TOY = str(Path(__file__).with_name("toy_scheduler") / "toy-scheduler.yaml")
PROCESSES = ["gang-scheduler-decide", "gang-scheduler-bind"]
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DISPOSABLE = {"metadata": {"labels": {"conformance.grove.io/disposable": "true"}}}

Ask = Callable[[Callable[[Client], Any]], Any]


@pytest.fixture
def ask(bare_cluster: Cluster) -> Ask:
    """A function that runs a coroutine function with a client of the cluster."""

    def ask(question: Callable[[Client], Any]) -> Any:
        async def main() -> Any:
            async with Client.from_kubeconfig(bare_cluster.kubeconfig, user_agent="test") as client:
                return await question(client)

        return asyncio.run(main())

    return ask


@pytest.fixture
def drive(bare_cluster: Cluster) -> Iterator[Callable[..., Driver]]:
    drivers: list[Driver] = []

    def drive(**settings: str) -> Driver:
        facts = deployment.facts_of(bare_cluster)
        drivers.append(Driver(loading.load(TOY, settings), facts, loading.load("reference")))
        return drivers[-1]

    yield drive
    for driver in drivers:
        driver.stop()


def pod(name: str) -> dict[str, Any]:
    spec = {"schedulerName": "toy-scheduler", "containers": [{"name": "c", "image": "registry.example/x:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def test_objects_are_installed_in_order_and_in_effect_when_install_returns(drive: Any, ask: Ask) -> None:
    drive().installer.install()

    async def results(client: Client) -> tuple[Any, Any, str]:
        config = orjson.loads(await client.get(CONFIG_MAPS, "toy-system", "toy"))
        params = {"dryRun": "All"}
        created = orjson.loads(await client.request("POST", PODS.path("default"), params=params, body=pod("a")))
        with pytest.raises(ApiError) as refused:
            await client.request("POST", PODS.path("default"), params=params, body=pod("forbidden"))
        return config, created, refused.value.message

    config, created, refusal = ask(results)
    assert config["data"]["scheduler"] == "toy-scheduler"
    assert re.fullmatch(r"127\.0\.0\.1:\d+", config["data"]["page"])
    assert created["metadata"]["annotations"]["toy.example/seen"] == "yes"
    assert "that name is not for pods" in refusal


def test_an_object_that_is_rejected_is_one_line_with_the_reason_of_the_api_server(drive: Any) -> None:
    with pytest.raises(HarnessError) as caught:
        drive(queue="other", weight="-1").install()
    line = str(caught.value)
    assert "objects.yaml: the API server rejected Queue other: " in line
    assert "spec.weight" in line and "greater than or equal to 0" in line and "\n" not in line


def test_a_process_that_dies_at_its_start_is_named_with_its_output(drive: Any) -> None:
    driver = drive(fault="dies")
    driver.install()
    with pytest.raises(NotStarted) as caught:
        driver.start(Role.GANG_SCHEDULER)
    line = str(caught.value)
    assert line.startswith(
        "toy-scheduler: the process bind of the gang-scheduler exited with code 2 before it was ready; "
        "it says: panic: no queue for me; its log ends with: goroutine 1 [running]:"
    )
    assert "\n" not in line
    assert driver.pids(Role.GANG_SCHEDULER) == {}


def test_processes_start_in_order_and_restart_together(drive: Any) -> None:
    driver = drive()
    driver.install()
    driver.start(Role.GANG_SCHEDULER)
    before = driver.pids(Role.GANG_SCHEDULER)
    assert list(before) == PROCESSES
    os.kill(before[PROCESSES[1]], signal.SIGKILL)
    [binder] = [process for process in driver._runners[Role.GANG_SCHEDULER].processes if process.name == PROCESSES[1]]
    binder.group.wait()
    assert not driver.is_alive(Role.GANG_SCHEDULER)
    [failure] = map(str, driver.failures())
    assert failure.startswith(
        "toy-scheduler: the process bind of the gang-scheduler was ended by SIGKILL; its log ends"
    )
    driver.start(Role.GANG_SCHEDULER)
    restarted = driver.pids(Role.GANG_SCHEDULER)
    assert restarted[PROCESSES[0]] == before[PROCESSES[0]] and restarted[PROCESSES[1]] != before[PROCESSES[1]]
    driver.restart(Role.GANG_SCHEDULER)
    assert list(driver.pids(Role.GANG_SCHEDULER)) == PROCESSES
    assert not set(driver.pids(Role.GANG_SCHEDULER).values()) & set(restarted.values())
    assert len(driver.failures()) == 1


PASSING_AND_KILLED_TESTS = """
    from conformance.grove import pods

    def bound(view):
        listed = view.list("pods")
        return len(listed) == 2 and all(pods.node(pod) for pod in listed) and view

    @requirements("AA-001")
    def test_one(case):
        case.nodes("tiny", 1)
        case.create(case.workload("frontend"))
        case.roles.restart("gang-scheduler")
        view = case.until("AA-001", "both pods are bound", bound, timeout=20)
        placements = {item["spec"]["pod"]: item["spec"]["node"] for item in view.list("placements")}
        nodes = {pod["metadata"]["name"]: pods.node(pod) for pod in view.list("pods")}
        case.expect("AA-001", "placements", nodes, placements)
        both = [*view.list("pods"), *view.list("podgangs")]
        queues = {item["metadata"]["labels"]["toy.example/queue"] for item in both}
        case.expect("AA-001", "queues", {"team-a"}, queues)

    @requirements("AA-002")
    def test_two(case):
        case.nodes("tiny", 1)
        case.create(case.workload("frontend"))
        case.until("AA-002", "both pods are bound", bound, timeout=20)
        [pid] = [pid for name, pid in case.roles._driver.pids("gang-scheduler").items() if name.endswith("bind")]
        os.kill(pid, signal.SIGKILL)
        case.until("AA-002", "what never comes", lambda view: None, timeout=60)

    @requirements("AA-003")
    def test_three(case):
        case.nodes("tiny", 1)
        case.create(case.workload("frontend"))
        case.until("AA-003", "both pods are bound", bound, timeout=20)
"""
DEAF_TEST = """
    @requirements("AA-001")
    def test_one(case):
        case.nodes("tiny", 1)
        case.create(case.workload("frontend"))
        case.until("AA-001", "a pod is bound", lambda view: None, timeout=3, real=True)
"""


@pytest.fixture
def run(real_run: RealRun, faked: Faked, bare_cluster: Cluster, ask: Ask) -> Callable[..., Any]:
    """A function that runs tests with the toy scheduler on the cluster of this module."""
    ask(lambda client: client.patch(NAMESPACES, None, "kube-system", DISPOSABLE))

    def run(name: str, tests: str, ids: int, **parameters: str) -> Any:
        real_run.write(tests, ids)
        registry = faked.folder / "registry" / "core.yaml"
        registry.write_text(registry.read_text().replace("- operator", "- gang-scheduler"))
        options: dict[str, Any] = {
            "cluster": "existing",
            "kubeconfig": str(bare_cluster.kubeconfig),
            "workers": 0,
            "run": name,
        }
        return real_run.run(implementation=TOY, parameters=parameters, roles=["gang-scheduler"], **options)

    return run


def test_a_run_adds_labels_records_placements_and_survives_the_death_of_one_process(run: Any) -> None:
    result = run("good", PASSING_AND_KILLED_TESTS, 3)
    assert result.outcomes == {"AA-001": "passed", "AA-002": "harness-error", "AA-003": "passed"}, (
        result.out + result.err
    )
    assert "the process bind of the gang-scheduler was ended by SIGKILL; its log ends with: " in result.out
    [bundle] = (result.folder / "bundles").iterdir()
    assert {f"{name}.log" for name in PROCESSES} <= {path.name for path in (bundle / "logs").iterdir()}
    assert '"placements"' in gzip.decompress((bundle / "history.jsonl.gz").read_bytes()).decode()


@pytest.mark.thorough
def test_a_scheduler_that_never_binds_is_named_with_the_end_of_its_logs(run: Any) -> None:
    result = run("deaf", DEAF_TEST, 1, fault="deaf")
    assert result.outcomes == {"AA-001": "failed"}, result.out + result.err
    lines = [line for line in result.out.splitlines() if "has not bound any pod" in line]
    assert lines and all("the queue is closed" in line for line in lines), result.out
