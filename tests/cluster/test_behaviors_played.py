"""Tests of pod behaviors on a real control plane. Each file in behaviors/ has a pod (input) and its states (output)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, structs
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_delay, wait_fixed

from conformance import formats
from conformance.cluster import nodes, pod_behaviors
from conformance.cluster.controlplane import Cluster
from conformance.cluster.kubelet_sim.init_wait import LOST
from conformance.cluster.pod_behaviors import PREFIX
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import StateRoot
from conformance.data import PROJECT
from conformance.formats import Format, Text
from kube.client import Client
from kube.informer import Informer
from kube.objects import Envelope, envelope
from kube.resource import NODES, PODS

pytestmark = pytest.mark.cluster
Document = dict[str, Any]


class PodState(Format, frozen=True, omit_defaults=True):
    """A state of a pod. `after` is the minimum of seconds since the previous state, by the timestamps in the status.
    Conditions are their status, and reason if they have one; containers are statuses without image and times."""

    phase: str
    conditions: dict[str, str]
    containers: list[Document]
    init: list[Document] | None = None
    after: int = 0


class BehaviorCase(Format, frozen=True):
    """A pod, by its annotations without conformance.grove.io/, its labels and the fields of its spec besides its
    container; and every state that its status goes through."""

    about: Text
    annotations: dict[str, str]
    states: Annotated[list[PodState], Meta(min_length=1)]
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    spec: Document = msgspec.field(default_factory=dict)


BEHAVIOR_CASES = {
    path.stem: formats.read(path, BehaviorCase)[1]
    for path in sorted((PROJECT / "tests" / "cluster" / "behaviors").glob("*.yaml"))
}
CONTAINERS = [{"name": "main", "image": "registry.example/main:1"}]
TOLERATION = {"operator": "Exists", "effect": "NoExecute"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster.up("behaviors", state=StateRoot(tmp_path_factory.mktemp("state") / "root"))
    yield cluster
    cluster.down()


class PodRecorder:
    """Records all states of all pods of the default namespace, in watch order."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.current_pods: dict[str, Document] = {}
        self.states: dict[str, list[Document]] = {}
        self.informer: Informer[Envelope] = Informer(client, PODS, envelope, namespace="default")
        self.informer.add_handler(self._record)

    def _record(self, event_type: str, old: Envelope | None, pod: Envelope) -> None:
        document: Document = msgspec.json.decode(pod.raw)
        name = pod.metadata.name
        if event_type == "DELETED":
            self.current_pods.pop(name, None)
            return
        self.current_pods[name] = document
        states = self.states.setdefault(name, [])
        if document["status"].get("containerStatuses") and (
            not states or comparable_status(states[-1]) != comparable_status(document)
        ):
            states.append(document)

    async def wait_until(self, condition: Callable[[], object], seconds: float = 120) -> None:
        async def is_unmet() -> bool:
            try:
                return not condition()
            except (KeyError, IndexError):
                return True

        wait = AsyncRetrying(retry=retry_if_result(bool), wait=wait_fixed(0.02), stop=stop_after_delay(seconds))
        try:
            await wait(is_unmet)
        except RetryError:
            statuses = [comparable_status(pod) for pod in self.current_pods.values()]
            pytest.fail(f"not seen: {condition.__code__.co_names}, but {statuses}")

    async def create(self, name: str, behavior: dict[str, str], labels: dict[str, str], **spec: Any) -> None:
        metadata = {"name": name, "namespace": "default", "labels": labels}
        metadata["annotations"] = {PREFIX + key: value for key, value in behavior.items()}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": CONTAINERS, **spec}}
        await self.client.create(PODS, body)

    async def annotate(self, name: str, **values: str | None) -> None:
        change = {PREFIX + key.replace("_", "-"): value for key, value in values.items()}
        await self.client.patch(PODS, "default", name, {"metadata": {"annotations": change}})

    async def delete_all(self) -> None:
        for name in list(self.current_pods):
            await self.client.delete(PODS, "default", name)
        await self.wait_until(lambda: not self.current_pods)


@asynccontextmanager
async def record_pods(cluster: Cluster) -> Any:
    """Yield a recorder of pods, with two nodes for the pods; delete the pods and the nodes at the end of the block."""
    async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="behaviors-test/1") as client:
        node_manifests = nodes.manifests("tiny", 2)
        names = [node["metadata"]["name"] for node in node_manifests]
        await nodes.create_nodes(client, node_manifests)
        await nodes.wait_until_schedulable(client, names)
        recorder = PodRecorder(client)
        task = asyncio.create_task(recorder.informer.run())
        try:
            await recorder.informer.wait_until_synced()
            yield recorder
            await recorder.delete_all()
            await nodes.delete_nodes(client, names)
        finally:
            task.cancel()


def comparable_status(pod: Document) -> Document:
    """Return a pod's status without times and addresses, in the format of the files."""
    status = pod["status"]
    conditions = {
        entry["type"]: " ".join(filter(None, (entry["status"], entry.get("reason"))))
        for entry in status.get("conditions", [])
        if entry["type"] != "PodScheduled"
    }
    result = {"phase": status["phase"], "conditions": conditions}
    for field, key in (("init", "initContainerStatuses"), ("containers", "containerStatuses")):
        if status.get(key):
            result[field] = [_comparable_container(entry) for entry in status[key]]
    return result


def _comparable_container(entry: Document) -> Document:
    result = {key: entry[key] for key in ("name", "ready", "started", "restartCount") if key in entry}
    for key in ("state", "lastState"):
        for state, detail in (entry.get(key) or {}).items():
            details = {
                name: value for name, value in detail.items() if not name.endswith("At") and name != "containerID"
            }
            result[key] = {state: details} if details else state
    return result


def latest_time(pod: Document) -> float:
    """Return the latest time in a pod's status, in seconds since the epoch."""

    def find_times(value: Any) -> Iterator[str]:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if key in ("lastTransitionTime", "startedAt", "finishedAt"):
                yield item
            elif isinstance(item, dict | list):
                yield from find_times(item)

    return max(datetime.fromisoformat(text).timestamp() for text in find_times(pod["status"]))


def condition_status(pod: Document, condition_type: str) -> str:
    return next((c["status"] for c in pod["status"].get("conditions", []) if c["type"] == condition_type), "")


def is_ready(pod: Document) -> bool:
    return condition_status(pod, "Ready") == "True"


def waiting_reason(pod: Document) -> str:
    return str(pod["status"]["containerStatuses"][0]["state"].get("waiting", {}).get("reason"))


def test_pods_pass_through_the_states_in_their_files(cluster: Cluster) -> None:
    async def run_test() -> None:
        async with record_pods(cluster) as recorder:
            for name, case in BEHAVIOR_CASES.items():
                await recorder.create(name, case.annotations, case.labels, **case.spec)
            await recorder.wait_until(
                lambda: all(len(recorder.states[name]) >= len(case.states) for name, case in BEHAVIOR_CASES.items())
            )
            for name, case in BEHAVIOR_CASES.items():
                states = recorder.states[name]
                expected = [msgspec.to_builtins(structs.replace(state, after=0)) for state in case.states]
                assert [comparable_status(state) for state in states] == expected, name
                for state_before, state_after, state in zip(states, states[1:], case.states[1:], strict=False):
                    assert latest_time(state_after) - latest_time(state_before) >= state.after, (name, state)

    asyncio.run(run_test())


def test_pods_without_a_behavior_follow_the_behavior_that_they_draw(tmp_path: Path) -> None:
    mix = pod_behaviors.load().mixes["realistic"]

    def failure(pod: Document) -> str:
        drawn_failure = mix.failure(pod["metadata"]["uid"])
        return drawn_failure.behavior if drawn_failure is not None else ""

    async def run_test(cluster: Cluster) -> None:
        async with record_pods(cluster) as recorder:
            await recorder.create("own", {"behavior": "never-ready"}, {})
            names: list[str] = []
            while "crash-loop" not in {failure(recorder.current_pods[name]) for name in names}:
                plain_pods = [f"plain-{len(names) + number}" for number in range(8)]
                for name in plain_pods:
                    await recorder.create(name, {"running-after": "0s"} if name == "plain-0" else {}, {})
                await recorder.wait_until(lambda plain_pods=plain_pods: set(plain_pods) <= set(recorder.current_pods))
                names += plain_pods
            await recorder.wait_until(lambda: all(is_ready(recorder.current_pods[name]) for name in names))
            for name in names:
                if failure(recorder.current_pods[name]) == "exit":  # it may have been restarted by now
                    continue
                times = mix.seconds(recorder.current_pods[name]["metadata"]["uid"])
                if name == "plain-0":
                    times["running-after"] = 0
                first_state, running_state, *_, last_state = recorder.states[name]
                assert latest_time(running_state) - latest_time(first_state) >= times["running-after"], name
                assert latest_time(last_state) - container_start_time(last_state) >= times["ready-after"], name
                (container,) = last_state["status"]["containerStatuses"]
                assert container["restartCount"] == (failure(last_state) == "crash-loop"), name
            assert recorder.current_pods["own"]["status"]["phase"] == "Running" and not is_ready(
                recorder.current_pods["own"]
            )

    cluster = Cluster.up("lives", settings=ClusterSettings(pods="realistic"), state=StateRoot(tmp_path / "root"))
    try:
        asyncio.run(run_test(cluster))
    finally:
        cluster.down()


def container_start_time(pod: Document) -> float:
    """Return the time at which the container of a pod was started, in seconds."""
    return datetime.fromisoformat(pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]).timestamp()


def test_pods_follow_changed_behaviors_and_other_changes_do_not_delay_them(cluster: Cluster) -> None:
    async def run_test() -> None:
        async with record_pods(cluster) as recorder:
            await recorder.create("plain", {}, {})
            await recorder.create("chatty", {"behavior": "realistic", "running-after": "0s", "ready-after": "3s"}, {})
            await recorder.create("held", {"behavior": "never-ready", "hold-ready": "yes", "hold-deletion": "yes"}, {})
            await recorder.wait_until(
                lambda: is_ready(recorder.current_pods["plain"]) and waiting_reason(recorder.current_pods["held"])
            )
            # A running pod gets a behavior, and the behavior is removed again.
            await recorder.annotate("plain", behavior="crash-loop", restart_after="100s")
            await recorder.wait_until(lambda: waiting_reason(recorder.current_pods["plain"]) == "CrashLoopBackOff")
            assert not is_ready(recorder.current_pods["plain"])
            await recorder.annotate("plain", behavior=None)
            await recorder.wait_until(lambda: is_ready(recorder.current_pods["plain"]))
            # Changes to a pod do not delay its next state (FC-046).
            start, number = asyncio.get_running_loop().time(), 0
            while not is_ready(recorder.current_pods["chatty"]):
                number += 1
                await recorder.client.patch(PODS, "default", "chatty", {"metadata": {"labels": {"n": str(number)}}})
                await recorder.wait_until(
                    lambda n=str(number): recorder.current_pods["chatty"]["metadata"]["labels"]["n"] == n
                )
                assert asyncio.get_running_loop().time() - start < 30
            # A held pod makes no progress before hold-ready is removed, and is not deleted before hold-deletion is.
            assert waiting_reason(recorder.current_pods["held"]) == "ContainerCreating"
            await recorder.annotate("held", hold_ready=None)
            await recorder.wait_until(lambda: recorder.current_pods["held"]["status"]["phase"] == "Running")
            await recorder.client.delete(PODS, "default", "held")
            await recorder.client.delete(PODS, "default", "plain")
            await recorder.wait_until(lambda: "plain" not in recorder.current_pods)
            assert recorder.current_pods["held"]["metadata"]["deletionTimestamp"]
            await recorder.annotate("held", hold_deletion=None)
            await recorder.wait_until(lambda: "held" not in recorder.current_pods)

    asyncio.run(run_test())


def test_a_node_fails_and_recovers(cluster: Cluster) -> None:
    async def run_test() -> None:
        async with record_pods(cluster) as recorder:
            node_selection = {"nodeSelector": {nodes.HOSTNAME: "tiny-0"}, "tolerations": [TOLERATION]}
            behavior = {"behavior": "crash-loop", "restarts": "1000", "restart-after": "1s"}
            await recorder.create("stays", {}, {}, **node_selection)
            await recorder.create("goes", {}, {}, **node_selection)
            await recorder.create("loops", behavior, {}, **node_selection)
            await recorder.create(
                "evicted", {}, {}, **{**node_selection, "tolerations": [{**TOLERATION, "tolerationSeconds": 1}]}
            )
            await recorder.create("elsewhere", {}, {}, nodeSelector={nodes.HOSTNAME: "tiny-1"})
            plain_names = ("stays", "goes", "evicted", "elsewhere")
            await recorder.wait_until(lambda: all(is_ready(recorder.current_pods[name]) for name in plain_names))

            async def set_lost_label(value: str | None) -> None:
                await recorder.client.patch(NODES, None, "tiny-0", {"metadata": {"labels": {LOST: value}}})

            async def wait_for_node(condition: Callable[[Document], bool]) -> None:
                async def is_unmet() -> bool:
                    return not condition(msgspec.json.decode(await recorder.client.get(NODES, None, "tiny-0")))

                wait = AsyncRetrying(retry=retry_if_result(bool), wait=wait_fixed(0.05), stop=stop_after_delay(120))
                await wait(is_unmet)

            # Once the node is Unknown, nothing happens on it: new pods do not start, and deleted pods do not terminate.
            await set_lost_label("yes")
            await wait_for_node(lambda node: condition_status(node, "Ready") == "Unknown")
            await recorder.client.delete(PODS, "default", "goes")
            await recorder.create("comes", {}, {}, nodeName="tiny-0", tolerations=[TOLERATION])
            await recorder.wait_until(lambda: recorder.current_pods["goes"]["metadata"]["deletionTimestamp"])
            await recorder.wait_until(lambda: condition_status(recorder.current_pods["comes"], LOST) == "True")
            frozen_version = recorder.current_pods["loops"]["metadata"]["resourceVersion"]
            await recorder.wait_until(
                lambda: not any(is_ready(recorder.current_pods[name]) for name in plain_names[:3])
            )
            await wait_for_node(
                lambda node: {t["effect"] for t in node["spec"].get("taints", [])} == {"NoSchedule", "NoExecute"}
            )
            await recorder.wait_until(lambda: recorder.current_pods["evicted"]["metadata"]["deletionTimestamp"])
            assert is_ready(recorder.current_pods["elsewhere"]) and "goes" in recorder.current_pods
            assert recorder.current_pods["comes"]["status"]["phase"] == "Pending"
            assert recorder.current_pods["loops"]["metadata"]["resourceVersion"] == frozen_version

            await set_lost_label(None)
            await wait_for_node(
                lambda node: condition_status(node, "Ready") == "True" and not node["spec"].get("taints")
            )
            await recorder.wait_until(
                lambda: is_ready(recorder.current_pods["stays"]) and is_ready(recorder.current_pods["comes"])
            )
            await recorder.wait_until(lambda: not {"goes", "evicted"} & set(recorder.current_pods))
            await recorder.wait_until(
                lambda: recorder.current_pods["loops"]["metadata"]["resourceVersion"] != frozen_version
            )
            assert not any(condition_status(pod, LOST) for pod in recorder.current_pods.values())

    asyncio.run(run_test())
