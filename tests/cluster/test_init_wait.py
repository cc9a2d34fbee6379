"""Tests of the simulated init container that waits: its arguments, its statuses, and when the wait ends."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from conformance.cluster.kubelet_sim import init_wait
from conformance.cluster.kubelet_sim.init_wait import Container, MalformedError, SimulatedPod
from conformance.cluster.kubelet_sim.process import GangReadiness

THEN, NOW = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"


def document(
    name: str = "c-1",
    *args: str,
    clique: str = "p-0-c",
    gang: str = "p-0",
    ready: bool = False,
    containers: list[dict[str, Any]] | None = None,
    statuses: list[dict[str, Any]] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """Return a pod that is bound to a node. With `args` it has a waiting init container, and waits unless `ready`."""
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
    return msgspec.convert(document(*args, **arguments), SimulatedPod)


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
def test_both_options_in_every_spelling(args: list[str], expected: dict[str, int]) -> None:
    assert init_wait.parents(container(*args)) == expected


@pytest.mark.parametrize("args", [[], ["run"], ["-p", "/data"], ["-process", "x"], ["--podclique=a:1"]])
def test_other_init_containers_are_not_taken_for_it(args: list[str]) -> None:
    assert init_wait.parents(container(*args)) is None


@pytest.mark.parametrize("args", [["-p", "8080:80"], ["-p", "tcp:http"], ["--podcliques=a:1"]])
def test_a_native_sidecar_never_waits(args: list[str]) -> None:
    sidecar = {"name": "proxy", "image": "i", "args": args, "restartPolicy": "Always"}
    assert init_wait.parents(Container(args=args, restart_policy="Always")) is None
    waiting = pod("c-1", "--podcliques=a:1", containers=[sidecar])
    assert patch_of(waiting, set())[0] == ["running", "running"]
    assert patch_of(waiting, {"grove-initc"})[1] == "True"


@pytest.mark.parametrize("value", ["x", "x:0", "x:y", ":1", "x:-1", "x:1:2", "x:1.5", "x:"])
def test_what_the_program_refuses_is_malformed(value: str) -> None:
    with pytest.raises(MalformedError):
        init_wait.parents(container(f"--podcliques={value}"))


def test_an_option_without_its_value_is_malformed() -> None:
    with pytest.raises(MalformedError):
        init_wait.parents(container("--podcliques=a:1", "-p"))


def patch_of(waiting: SimulatedPod, done: set[str]) -> tuple[list[str], str]:
    """Return the states of the init containers and the status of Initialized that the patch sets."""
    change = init_wait.patch(waiting, done, NOW) or {}
    states = [
        f"{next(iter(s['state']))} {next(iter(s['state'].values())).get('reason', '')}".strip()
        for s in change.get("initContainerStatuses", [])
    ]
    return states, next((c["status"] for c in change.get("conditions", [])), "")


OTHER_CONTAINERS = [{"name": "first", "image": "i"}, {"name": "side", "image": "i", "restartPolicy": "Always"}]


def test_containers_before_it_are_through_and_sidecars_serve() -> None:
    waiting = pod("c-1", "--podcliques=a:1", containers=OTHER_CONTAINERS)
    assert patch_of(waiting, set()) == (["terminated Completed", "running", "running"], "")
    assert patch_of(waiting, {"grove-initc"}) == (["terminated Completed", "running", "terminated Completed"], "True")


def test_containers_behind_it_wait_and_a_second_one_waits_in_its_turn() -> None:
    first = {"name": "one", "image": "i", "args": ["-p", "a:1"]}
    waiting = pod("c-1", "--podcliques=b:1", containers=[first, {"name": "two", "image": "i"}])
    assert patch_of(waiting, set()) == (["running", "waiting PodInitializing", "waiting PodInitializing"], "")
    assert patch_of(waiting, {"grove-initc"})[1] == ""
    assert patch_of(waiting, {"one"}) == (["terminated Completed", "terminated Completed", "running"], "")


def test_it_keeps_when_it_started_and_says_nothing_twice() -> None:
    running = {"name": "grove-initc", "state": {"running": {"startedAt": THEN}}, "ready": False, "restartCount": 0}
    waiting = pod("c-1", "--podcliques=a:1", statuses=[running])
    assert init_wait.patch(waiting, set(), NOW) is None
    change = init_wait.patch(waiting, {"grove-initc"}, NOW)
    assert change is not None
    [status] = change["initContainerStatuses"]
    assert status["state"]["terminated"] == {
        "exitCode": 0,
        "reason": "Completed",
        "startedAt": THEN,
        "finishedAt": NOW,
    }
    assert status["ready"] and not status["started"]


def test_malformed_arguments_crash_and_are_told_once() -> None:
    waiting = pod("c-1", "--podcliques=x:0")
    change = init_wait.patch(waiting, set(), NOW)
    assert change is not None and set(change) == {"initContainerStatuses"}
    [status] = change["initContainerStatuses"]
    assert status["state"]["waiting"]["reason"] == "CrashLoopBackOff" and status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 1
    restarted = pod("c-1", "--podcliques=x:0", statuses=change["initContainerStatuses"])
    assert init_wait.patch(restarted, set(), NOW) is None
    assert init_wait.finished_waits(waiting, lambda clique: 9) == set()


def test_malformed_arguments_of_a_pod_that_never_restarts_fail_it() -> None:
    change = init_wait.patch(pod("c-1", "--podcliques=x:0", restartPolicy="Never"), set(), NOW)
    assert change is not None and change["phase"] == "Failed"
    assert change["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 1


def test_one_that_the_stage_took_for_it_wrongly_goes_on() -> None:
    waiting = pod("c-1", "-p", "/data")
    assert patch_of(waiting, set()) == (["terminated Completed"], "True")


class Watch:
    """A watch of pods, whose events go to the simulation of init containers."""

    def __init__(self) -> None:
        self.play = GangReadiness(lambda key: None)
        self.pods: dict[str, SimulatedPod] = {}

    def update(self, *args: Any, **arguments: Any) -> None:
        now = pod(*args, **arguments)
        old = self.pods.get(now.metadata.name)
        self.play.see("ADDED" if old is None else "MODIFIED", old, now)
        self.pods[now.metadata.name] = now

    def delete(self, name: str) -> None:
        last = self.pods.pop(name)
        self.play.see("DELETED", last, last)

    def released(self, name: str) -> bool:
        return "grove-initc" in self.play.done(self.pods[name])


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_the_wait_is_over_at_the_count_and_not_before(watch: Watch) -> None:
    """Scenario OBJ-S76 of the specification."""
    watch.update("c-1", "--podcliques=p-0-a:2")
    watch.update("a-1", clique="p-0-a", ready=True)
    watch.update("a-2", clique="p-0-a")
    watch.update("a-3", clique="p-0-a", gang="p-1", ready=True)
    assert not watch.released("c-1")
    watch.update("a-2", clique="p-0-a", ready=True)
    assert watch.released("c-1")


def test_a_parent_that_loses_readiness_before_the_others_have_it_counts_no_more(watch: Watch) -> None:
    watch.update("c-1", "--podcliques=p-0-a:1", "--podcliques=p-0-b:1")
    watch.update("a-1", clique="p-0-a", ready=True)
    watch.update("a-1", clique="p-0-a")
    watch.update("b-1", clique="p-0-b", ready=True)
    assert not watch.released("c-1")
    watch.update("a-1", clique="p-0-a", ready=True)
    assert watch.released("c-1")


def test_what_held_once_is_done(watch: Watch) -> None:
    watch.update("c-1", "--podcliques=p-0-a:1")
    watch.update("a-1", clique="p-0-a", ready=True)
    watch.delete("a-1")
    assert watch.released("c-1")
    watch.delete("c-1")
    watch.update("c-1", "--podcliques=p-0-a:1")
    assert not watch.released("c-1"), "a pod that is made anew waits again"


def test_a_clique_is_told_by_its_label_and_not_by_the_beginning_of_a_name(watch: Watch) -> None:
    """Scenario OBJ-S77 of the specification."""
    watch.update("c-1", "--podcliques=p-0-a:1", "--podcliques=p-0-ab:1")
    for number in range(2):
        watch.update(f"p-0-ab-{number}", clique="p-0-ab", ready=True)
    assert not watch.released("c-1")
    watch.update("p-0-a-0", clique="p-0-a", ready=True)
    assert watch.released("c-1")


def test_a_held_pod_is_left_alone(watch: Watch) -> None:
    held_pod = document("c-1", "--podcliques=p-0-a:1")
    held_pod["metadata"]["annotations"] = {init_wait.HOLD: "yes"}
    assert not msgspec.convert(held_pod, SimulatedPod).waits


def test_nothing_is_kept_of_pods_that_are_gone(watch: Watch) -> None:
    watch.update("c-1", "--podcliques=p-0-a:1")
    watch.update("a-1", clique="p-0-a", ready=True)
    watch.delete("c-1")
    watch.delete("a-1")
    assert not watch.play._ready and not watch.play._waiting and not watch.play._passed
