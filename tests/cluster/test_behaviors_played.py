"""Tests of pod behaviors on a real control plane. Each file in behaviors/ has a pod (input) and its states (output)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_delay, wait_fixed

from conformance import documents
from conformance.cluster import nodes, pod_behaviors
from conformance.cluster.controlplane import Cluster
from conformance.cluster.kubelet_sim.init_wait import LOST
from conformance.cluster.pod_behaviors import PREFIX
from conformance.cluster.settings import ClusterSettings
from conformance.cluster.state import StateRoot
from conformance.data import PROJECT
from kube.client import Client
from kube.informer import Informer
from kube.objects import Envelope, envelope
from kube.resource import NODES, PODS

pytestmark = pytest.mark.cluster
Document = dict[str, Any]
FILES = {
    path.stem: documents.read(path, PROJECT / "tests/cluster/behaviors/behaviors.schema.json").value
    for path in sorted((PROJECT / "tests" / "cluster" / "behaviors").glob("*.yaml"))
}
CONTAINERS = [{"name": "main", "image": "registry.example/main:1"}]
TOLERATION = {"operator": "Exists", "effect": "NoExecute"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster.up("behaviors", state=StateRoot(tmp_path_factory.mktemp("state") / "root"))
    yield cluster
    cluster.down()


class Watched:
    """Records all states of all pods of the default namespace, in watch order."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.now: dict[str, Document] = {}
        self.states: dict[str, list[Document]] = {}
        self.informer: Informer[Envelope] = Informer(client, PODS, envelope, namespace="default")
        self.informer.add_handler(self._see)

    def _see(self, event_type: str, old: Envelope | None, pod: Envelope) -> None:
        document: Document = msgspec.json.decode(pod.raw)
        name = pod.metadata.name
        if event_type == "DELETED":
            self.now.pop(name, None)
            return
        self.now[name] = document
        states = self.states.setdefault(name, [])
        if document["status"].get("containerStatuses") and (not states or shape(states[-1]) != shape(document)):
            states.append(document)

    async def until(self, condition: Callable[[], object], seconds: float = 120) -> None:
        async def missing() -> bool:
            try:
                return not condition()
            except (KeyError, IndexError):
                return True

        wait = AsyncRetrying(retry=retry_if_result(bool), wait=wait_fixed(0.02), stop=stop_after_delay(seconds))
        try:
            await wait(missing)
        except RetryError:
            pytest.fail(f"not seen: {condition.__code__.co_names}, but {[shape(one) for one in self.now.values()]}")

    async def create(self, name: str, behavior: dict[str, str], labels: dict[str, str], **spec: Any) -> None:
        metadata = {"name": name, "namespace": "default", "labels": labels}
        metadata["annotations"] = {PREFIX + key: value for key, value in behavior.items()}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": CONTAINERS, **spec}}
        await self.client.create(PODS, body)

    async def annotate(self, name: str, **values: str | None) -> None:
        change = {PREFIX + key.replace("_", "-"): value for key, value in values.items()}
        await self.client.patch(PODS, "default", name, {"metadata": {"annotations": change}})

    async def empty(self) -> None:
        for name in list(self.now):
            await self.client.delete(PODS, "default", name)
        await self.until(lambda: not self.now)


@asynccontextmanager
async def watching(cluster: Cluster) -> Any:
    """Yield a watch of the pods, with two nodes for them; delete the pods and the nodes at the end of the block."""
    async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="behaviors-test/1") as client:
        fleet = nodes.manifests("tiny", 2)
        names = [node["metadata"]["name"] for node in fleet]
        await nodes.create_nodes(client, fleet)
        await nodes.wait_until_schedulable(client, names)
        watched = Watched(client)
        task = asyncio.create_task(watched.informer.run())
        try:
            await watched.informer.wait_until_synced()
            yield watched
            await watched.empty()
            await nodes.delete_nodes(client, names)
        finally:
            task.cancel()


def shape(pod: Document) -> Document:
    """Return a pod's status without times and addresses, in the form of the files."""
    status = pod["status"]
    conditions = {
        entry["type"]: " ".join(filter(None, (entry["status"], entry.get("reason"))))
        for entry in status.get("conditions", [])
        if entry["type"] != "PodScheduled"
    }
    result = {"phase": status["phase"], "conditions": conditions}
    for field, key in (("init", "initContainerStatuses"), ("containers", "containerStatuses")):
        if status.get(key):
            result[field] = [_container(entry) for entry in status[key]]
    return result


def _container(entry: Document) -> Document:
    result = {key: entry[key] for key in ("name", "ready", "started", "restartCount") if key in entry}
    for key in ("state", "lastState"):
        for word, detail in (entry.get(key) or {}).items():
            details = {
                name: value for name, value in detail.items() if not name.endswith("At") and name != "containerID"
            }
            result[key] = {word: details} if details else word
    return result


def instant(pod: Document) -> float:
    """Return the latest time in a pod's status, in seconds since the epoch."""

    def instants(value: Any) -> Iterator[str]:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if key in ("lastTransitionTime", "startedAt", "finishedAt"):
                yield item
            elif isinstance(item, dict | list):
                yield from instants(item)

    return max(datetime.fromisoformat(text).timestamp() for text in instants(pod["status"]))


def condition(pod: Document, condition_type: str) -> str:
    return next((c["status"] for c in pod["status"].get("conditions", []) if c["type"] == condition_type), "")


def ready(pod: Document) -> bool:
    return condition(pod, "Ready") == "True"


def waiting(pod: Document) -> str:
    return str(pod["status"]["containerStatuses"][0]["state"].get("waiting", {}).get("reason"))


def test_every_life_is_as_its_file_says(cluster: Cluster) -> None:
    async def play() -> None:
        async with watching(cluster) as watched:
            for name, case in FILES.items():
                await watched.create(name, case["annotations"], case.get("labels", {}), **case.get("spec", {}))
            await watched.until(
                lambda: all(len(watched.states[name]) >= len(case["states"]) for name, case in FILES.items())
            )
            for name, case in FILES.items():
                states = watched.states[name]
                expected = [{key: value for key, value in state.items() if key != "after"} for state in case["states"]]
                assert [shape(state) for state in states] == expected, name
                for before, after, state in zip(states, states[1:], case["states"][1:], strict=False):
                    assert instant(after) - instant(before) >= state.get("after", 0), (name, state)

    asyncio.run(play())


def test_pods_that_name_no_behavior_live_as_they_draw(tmp_path: Path) -> None:
    mix = pod_behaviors.load().mixes["realistic"]

    def failure(pod: Document) -> str:
        drawn = mix.failure(pod["metadata"]["uid"])
        return drawn.behavior if drawn is not None else ""

    async def play(cluster: Cluster) -> None:
        async with watching(cluster) as watched:
            await watched.create("own", {"behavior": "never-ready"}, {})
            names: list[str] = []
            while "crash-loop" not in {failure(watched.now[name]) for name in names}:
                plain_pods = [f"plain-{len(names) + number}" for number in range(8)]
                for name in plain_pods:
                    await watched.create(name, {"running-after": "0s"} if name == "plain-0" else {}, {})
                await watched.until(lambda plain_pods=plain_pods: set(plain_pods) <= set(watched.now))
                names += plain_pods
            await watched.until(lambda: all(ready(watched.now[name]) for name in names))
            for name in names:
                if failure(watched.now[name]) == "exit":  # it may have been restarted by now
                    continue
                times = mix.seconds(watched.now[name]["metadata"]["uid"])
                if name == "plain-0":
                    times["running-after"] = 0
                before, running, *_, last = watched.states[name]
                assert instant(running) - instant(before) >= times["running-after"], name
                assert instant(last) - start_time(last) >= times["ready-after"], name
                (container,) = last["status"]["containerStatuses"]
                assert container["restartCount"] == (failure(last) == "crash-loop"), name
            assert watched.now["own"]["status"]["phase"] == "Running" and not ready(watched.now["own"])

    cluster = Cluster.up("lives", settings=ClusterSettings(pods="realistic"), state=StateRoot(tmp_path / "root"))
    try:
        asyncio.run(play(cluster))
    finally:
        cluster.down()


def start_time(pod: Document) -> float:
    """Return the time at which the container of a pod was started, in seconds."""
    return datetime.fromisoformat(pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]).timestamp()


def test_pods_change_their_life_and_nobody_else_can_delay_them(cluster: Cluster) -> None:
    async def play() -> None:
        async with watching(cluster) as watched:
            await watched.create("plain", {}, {})
            await watched.create("chatty", {"behavior": "realistic", "running-after": "0s", "ready-after": "3s"}, {})
            await watched.create("held", {"behavior": "never-ready", "hold-ready": "yes", "hold-deletion": "yes"}, {})
            await watched.until(lambda: ready(watched.now["plain"]) and waiting(watched.now["held"]))
            # A running pod gets a behavior, and the behavior is removed again.
            await watched.annotate("plain", behavior="crash-loop", restart_after="100s")
            await watched.until(lambda: waiting(watched.now["plain"]) == "CrashLoopBackOff")
            assert not ready(watched.now["plain"])
            await watched.annotate("plain", behavior=None)
            await watched.until(lambda: ready(watched.now["plain"]))
            # Changes of a pod do not delay its next state (FC-046).
            start, number = asyncio.get_running_loop().time(), 0
            while not ready(watched.now["chatty"]):
                number += 1
                await watched.client.patch(PODS, "default", "chatty", {"metadata": {"labels": {"n": str(number)}}})
                await watched.until(lambda n=str(number): watched.now["chatty"]["metadata"]["labels"]["n"] == n)
                assert asyncio.get_running_loop().time() - start < 30
            # A held pod makes no progress before hold-ready is removed, and is not deleted before hold-deletion is.
            assert waiting(watched.now["held"]) == "ContainerCreating"
            await watched.annotate("held", hold_ready=None)
            await watched.until(lambda: watched.now["held"]["status"]["phase"] == "Running")
            await watched.client.delete(PODS, "default", "held")
            await watched.client.delete(PODS, "default", "plain")
            await watched.until(lambda: "plain" not in watched.now)
            assert watched.now["held"]["metadata"]["deletionTimestamp"]
            await watched.annotate("held", hold_deletion=None)
            await watched.until(lambda: "held" not in watched.now)

    asyncio.run(play())


def test_a_node_is_lost_and_comes_back(cluster: Cluster) -> None:
    async def play() -> None:
        async with watching(cluster) as watched:
            here = {"nodeSelector": {nodes.HOSTNAME: "tiny-0"}, "tolerations": [TOLERATION]}
            behavior = {"behavior": "crash-loop", "restarts": "1000", "restart-after": "1s"}
            await watched.create("stays", {}, {}, **here)
            await watched.create("goes", {}, {}, **here)
            await watched.create("loops", behavior, {}, **here)
            await watched.create("evicted", {}, {}, **{**here, "tolerations": [{**TOLERATION, "tolerationSeconds": 1}]})
            await watched.create("elsewhere", {}, {}, nodeSelector={nodes.HOSTNAME: "tiny-1"})
            plain = ("stays", "goes", "evicted", "elsewhere")
            await watched.until(lambda: all(ready(watched.now[name]) for name in plain))

            async def label(value: str | None) -> None:
                await watched.client.patch(NODES, None, "tiny-0", {"metadata": {"labels": {LOST: value}}})

            async def see(holds: Callable[[Document], bool]) -> None:
                async def missing() -> bool:
                    return not holds(msgspec.json.decode(await watched.client.get(NODES, None, "tiny-0")))

                wait = AsyncRetrying(retry=retry_if_result(bool), wait=wait_fixed(0.05), stop=stop_after_delay(120))
                await wait(missing)

            # Once the node is Unknown, nothing happens on it: new pods do not start, and deleted pods do not terminate.
            await label("yes")
            await see(lambda node: condition(node, "Ready") == "Unknown")
            await watched.client.delete(PODS, "default", "goes")
            await watched.create("comes", {}, {}, nodeName="tiny-0", tolerations=[TOLERATION])
            await watched.until(lambda: watched.now["goes"]["metadata"]["deletionTimestamp"])
            await watched.until(lambda: condition(watched.now["comes"], LOST) == "True")
            still = watched.now["loops"]["metadata"]["resourceVersion"]
            await watched.until(lambda: not any(ready(watched.now[name]) for name in plain[:3]))
            await see(lambda node: {t["effect"] for t in node["spec"].get("taints", [])} == {"NoSchedule", "NoExecute"})
            await watched.until(lambda: watched.now["evicted"]["metadata"]["deletionTimestamp"])
            assert ready(watched.now["elsewhere"]) and "goes" in watched.now
            assert watched.now["comes"]["status"]["phase"] == "Pending"
            assert watched.now["loops"]["metadata"]["resourceVersion"] == still

            await label(None)
            await see(lambda node: condition(node, "Ready") == "True" and not node["spec"].get("taints"))
            await watched.until(lambda: ready(watched.now["stays"]) and ready(watched.now["comes"]))
            await watched.until(lambda: not {"goes", "evicted"} & set(watched.now))
            await watched.until(lambda: watched.now["loops"]["metadata"]["resourceVersion"] != still)
            assert not any(condition(one, LOST) for one in watched.now.values())

    asyncio.run(play())
