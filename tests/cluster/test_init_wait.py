"""Tests of the simulated waiting init container: its arguments, its statuses, and the end of its wait."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conformance.cluster.kubelet_sim import init_wait
from conformance.cluster.kubelet_sim.init_wait import Container, MalformedError, SimulatedPod
from conformance.cluster.kubelet_sim.process import GangReadiness

STARTED_AT, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"


def pod_document(
    name: str = "c-1",
    *args: str,
    clique: str = "p-0-c",
    gang: str = "p-0",
    ready: bool = False,
    containers: list[dict[str, Any]] | None = None,
    statuses: list[dict[str, Any]] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a pod that is bound to a node. With `args`, the pod has a waiting init container, which has finished if
    the pod is `ready`."""
    waiter = [{"name": "grove-initc", "image": "i", "args": list(args)}] if args else []
    conditions = [
        {"type": "Initialized", "status": str(ready or not args)},
        {"type": "Ready", "status": str(ready)},
    ]
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"u-{name}",
            "resourceVersion": "1",
            "labels": {"grove.io/podgang": gang, "grove.io/podclique": clique},
        },
        "spec": {"initContainers": [*(containers or []), *waiter], "nodeName": "n", **spec},
        "status": {"phase": "Pending", "conditions": conditions, "initContainerStatuses": statuses or []},
    }


def pod(*args: Any, **arguments: Any) -> SimulatedPod:
    return msgspec.convert(pod_document(*args, **arguments), SimulatedPod)


def container(*args: str) -> Container:
    return Container(name="x", image="i", args=list(args))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--podcliques=a:1"], {"a": 1}),
        (["--podcliques", "a:1"], {"a": 1}),
        (["-p", "a:1", "-p=b:2", "-pc:3"], {"a": 1, "b": 2, "c": 3}),
        (["--podcliques=a:1", "--podcliques=b:2"], {"a": 1, "b": 2}),
        (["--podcliques=a:1", "--podcliques=a:3"], {"a": 3}),
        (["--podcliques= a : +2 ", "--podcliques=  "], {"a": 2}),
        (["--podcliques="], {}),
        (["--verbose", "--podcliques=a:1"], {"a": 1}),
    ],
)
def test_both_options_are_parsed_in_every_spelling(args: list[str], expected: dict[str, int]) -> None:
    assert init_wait.parent_counts(container(*args)) == expected


@pytest.mark.parametrize("args", [[], ["run"], ["-p", "/data"], ["-process", "x"], ["--podclique=a:1"]])
def test_other_init_containers_are_not_taken_for_waiting_ones(args: list[str]) -> None:
    assert init_wait.parent_counts(container(*args)) is None


@pytest.mark.parametrize("args", [["-p", "8080:80"], ["-p", "tcp:http"], ["--podcliques=a:1"]])
def test_a_native_sidecar_never_waits(args: list[str]) -> None:
    sidecar = {"name": "proxy", "image": "i", "args": args, "restartPolicy": "Always"}
    assert init_wait.parent_counts(Container(args=args, restart_policy="Always")) is None
    waiting_pod = pod("c-1", "--podcliques=a:1", containers=[sidecar])
    assert patched_states(waiting_pod, set())[0] == ["running", "running"]
    assert patched_states(waiting_pod, {"grove-initc"})[1] == "True"


@pytest.mark.parametrize("value", ["x", "x:0", "x:y", ":1", "x:-1", "x:1:2", "x:1.5", "x:"])
def test_values_that_the_program_refuses_are_malformed(value: str) -> None:
    with pytest.raises(MalformedError):
        init_wait.parent_counts(container(f"--podcliques={value}"))


def test_an_option_without_its_value_is_malformed() -> None:
    with pytest.raises(MalformedError):
        init_wait.parent_counts(container("--podcliques=a:1", "-p"))


def patched_states(waiting_pod: SimulatedPod, finished_containers: set[str]) -> tuple[list[str], str]:
    """Return the states of the init containers and the status of Initialized that the patch sets."""
    change = init_wait.status_patch(waiting_pod, finished_containers, NOW) or {}
    states = [
        f"{next(iter(s['state']))} {next(iter(s['state'].values())).get('reason', '')}".strip()
        for s in change.get("initContainerStatuses", [])
    ]
    return states, next((c["status"] for c in change.get("conditions", [])), "")


OTHER_CONTAINERS = [{"name": "first", "image": "i"}, {"name": "side", "image": "i", "restartPolicy": "Always"}]


def test_earlier_containers_have_completed_and_sidecars_run() -> None:
    waiting_pod = pod("c-1", "--podcliques=a:1", containers=OTHER_CONTAINERS)
    assert patched_states(waiting_pod, set()) == (["terminated Completed", "running", "running"], "")
    assert patched_states(waiting_pod, {"grove-initc"}) == (
        ["terminated Completed", "running", "terminated Completed"],
        "True",
    )


def test_later_containers_wait_and_a_second_waiting_container_follows() -> None:
    first_waiter = {"name": "one", "image": "i", "args": ["-p", "a:1"]}
    waiting_pod = pod("c-1", "--podcliques=b:1", containers=[first_waiter, {"name": "two", "image": "i"}])
    assert patched_states(waiting_pod, set()) == (["running", "waiting PodInitializing", "waiting PodInitializing"], "")
    assert patched_states(waiting_pod, {"grove-initc"})[1] == ""
    assert patched_states(waiting_pod, {"one"}) == (["terminated Completed", "terminated Completed", "running"], "")


def test_a_patch_keeps_the_start_time_and_is_not_repeated() -> None:
    running_status = {
        "name": "grove-initc",
        "state": {"running": {"startedAt": STARTED_AT}},
        "ready": False,
        "restartCount": 0,
    }
    waiting_pod = pod("c-1", "--podcliques=a:1", statuses=[running_status])
    assert init_wait.status_patch(waiting_pod, set(), NOW) is None
    change = init_wait.status_patch(waiting_pod, {"grove-initc"}, NOW)
    assert change is not None
    [status] = change["initContainerStatuses"]
    assert status["state"]["terminated"] == {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": STARTED_AT,
        "finishedAt": NOW,
    }
    assert status["ready"] and not status["started"]


def test_malformed_arguments_crash_a_container_and_are_reported_once() -> None:
    waiting_pod = pod("c-1", "--podcliques=x:0")
    change = init_wait.status_patch(waiting_pod, set(), NOW)
    assert change is not None and set(change) == {"initContainerStatuses"}
    [status] = change["initContainerStatuses"]
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff" and status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 1
    restarted_pod = pod("c-1", "--podcliques=x:0", statuses=change["initContainerStatuses"])
    assert init_wait.status_patch(restarted_pod, set(), NOW) is None
    assert init_wait.finished_waits(waiting_pod, lambda clique: 9) == set()


def test_malformed_arguments_fail_a_pod_that_never_restarts() -> None:
    change = init_wait.status_patch(pod("c-1", "--podcliques=x:0", restartPolicy="Never"), set(), NOW)
    assert change is not None and change["phase"] == "Failed"
    assert change["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 1


def test_a_container_that_the_stage_wrongly_holds_completes() -> None:
    waiting_pod = pod("c-1", "-p", "/data")
    assert patched_states(waiting_pod, set()) == (["terminated Completed"], "True")


class PodWatch:
    """A simulated watch of pods that passes its events to the simulation of init containers."""

    def __init__(self) -> None:
        self.simulation = GangReadiness(lambda key: None)
        self.pods: dict[str, SimulatedPod] = {}

    def update(self, *args: Any, **arguments: Any) -> None:
        pod_after = pod(*args, **arguments)
        pod_before = self.pods.get(pod_after.metadata.name)
        self.simulation.on_pod("ADDED" if pod_before is None else "MODIFIED", pod_before, pod_after)
        self.pods[pod_after.metadata.name] = pod_after

    def delete(self, name: str) -> None:
        deleted_pod = self.pods.pop(name)
        self.simulation.on_pod("DELETED", deleted_pod, deleted_pod)

    def is_released(self, name: str) -> bool:
        return "grove-initc" in self.simulation.finished_waits(self.pods[name])


@pytest.fixture
def watch() -> PodWatch:
    return PodWatch()


def test_the_wait_ends_once_enough_parents_are_ready(watch: PodWatch) -> None:
    """Scenario OBJ-S76 of the specification."""
    watch.update("c-1", "--podcliques=p-0-a:2")
    watch.update("a-1", clique="p-0-a", ready=True)
    watch.update("a-2", clique="p-0-a")
    watch.update("a-3", clique="p-0-a", gang="p-1", ready=True)
    assert not watch.is_released("c-1")
    watch.update("a-2", clique="p-0-a", ready=True)
    assert watch.is_released("c-1")


def test_a_parent_that_loses_readiness_before_the_others_are_ready_no_longer_counts(watch: PodWatch) -> None:
    watch.update("c-1", "--podcliques=p-0-a:1", "--podcliques=p-0-b:1")
    watch.update("a-1", clique="p-0-a", ready=True)
    watch.update("a-1", clique="p-0-a")
    watch.update("b-1", clique="p-0-b", ready=True)
    assert not watch.is_released("c-1")
    watch.update("a-1", clique="p-0-a", ready=True)
    assert watch.is_released("c-1")


def test_a_wait_that_has_ended_does_not_start_again(watch: PodWatch) -> None:
    watch.update("c-1", "--podcliques=p-0-a:1")
    watch.update("a-1", clique="p-0-a", ready=True)
    watch.delete("a-1")
    assert watch.is_released("c-1")
    watch.delete("c-1")
    watch.update("c-1", "--podcliques=p-0-a:1")
    assert not watch.is_released("c-1"), "a pod that is recreated waits again"


def test_a_clique_is_identified_by_its_label_and_not_by_a_name_prefix(watch: PodWatch) -> None:
    """Scenario OBJ-S77 of the specification."""
    watch.update("c-1", "--podcliques=p-0-a:1", "--podcliques=p-0-ab:1")
    for number in range(2):
        watch.update(f"p-0-ab-{number}", clique="p-0-ab", ready=True)
    assert not watch.is_released("c-1")
    watch.update("p-0-a-0", clique="p-0-a", ready=True)
    assert watch.is_released("c-1")


def test_a_held_pod_does_not_wait(watch: PodWatch) -> None:
    held_pod = pod_document("c-1", "--podcliques=p-0-a:1")
    held_pod["metadata"]["annotations"] = {init_wait.HOLD_ANNOTATION: "yes"}
    assert not msgspec.convert(held_pod, SimulatedPod).is_waiting


def test_deleted_pods_are_forgotten(watch: PodWatch) -> None:
    watch.update("c-1", "--podcliques=p-0-a:1")
    watch.update("a-1", clique="p-0-a", ready=True)
    watch.delete("c-1")
    watch.delete("a-1")
    assert not watch.simulation._ready and not watch.simulation._waiting and not watch.simulation._finished_by_uid
