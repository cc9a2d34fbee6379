"""A test driver that kills an operator or a scheduler after its k-th write and restarts it.

A *life* is a namespace in which a story runs: a set is created and changed. In each chapter of the story, the victim
(the operator or the gang scheduler) dies at its k-th write of that chapter; the chapter must end as it does when no
process dies. Lives are independent of each other, and several lives run at a time. Each life has its own operator and
scheduler, which run in this process and see only its namespace.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

from conformance.cluster import nodes
from conformance.cluster.controlplane import Cluster
from conformance.grove import labels
from conformance.grove.fields import label
from conformance.history.query import History, Unmet, WaitTimeout
from conformance.history.record import ADDED, DELETED
from conformance.history.recorder import WATCHED, Recorder, Watched
from conformance.history.view import View
from kube import config
from kube.client import Client
from kube.resource import NAMESPACES, NODES, Resource
from reference_impl.api.models import PODGANGMAPS
from reference_impl.control.features import Features
from reference_impl.control.operator import Operator
from reference_impl.plan.lines import MAPS, Line
from reference_impl.scheduler.scheduler import GangScheduler
from tests.reference.mortal import Mortal, death

SCHEDULER = "grove-gang-scheduler"
CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
PRIORITIES = {"low": 10, "high": 20}
NODE_COUNTS = {"dgx-h100": 2, "tiny": 1}
"""Nodes by profile. Every life uses all of them, because its scheduler does not see the pods of other lives."""
KINDS = ("podcliquesets", "podcliques", "podcliquescalinggroups", "podgangs", "podgangmaps", "services", "pods")
PART, PARTS = map(int, os.environ.get("CHAOS", "1/1").split("/"))
"""The share of all deaths that is tested: part i of n. `make test` runs one part of 48, and `make test CHAOS=1/1` runs
all deaths."""
FEATURES = Features(maps=True)
LIVES = 8
"""The number of lives that run at the same time."""
WAIT_SECONDS, REST_SECONDS = 120.0, 2.0
RANDOM_FIELDS = frozenset(
    {
        *("uid", "resourceVersion", "creationTimestamp", "managedFields", "lastTransitionTime", "generation"),
        *("observedGeneration", "namespace", "nodeName", "nodeSelector", "volumes", "volumeMounts", "startTime"),
        *(
            "startedAt",
            "finishedAt",
            "updateStartedAt",
            "updateEndedAt",
            "lastScheduled",
            "lastReady",
            "grove.io/replaces-pod",
            "podIP",
            "podIPs",
            "hostIP",
            "hostIPs",
            "clusterIP",
            "clusterIPs",
            "resourceClaimStatuses",
            "value",
        ),
    }
)
"""Fields whose values differ from run to run; `value` is the value of environment variables, which contain the
namespace."""

GANG_TIME = re.compile(r"(?<![0-9])[0-9]{19}(?![0-9])")
"""An epoch, either alone or in the name of a gang."""

Role = Literal["operator", "gang-scheduler"]
Predicate = Callable[[View], bool | Unmet]


@dataclass(frozen=True)
class Chapter:
    """An action of a user and the predicate for its completion.

    `ended` is called after `act` and returns the predicate. `killed` is whether the victim dies in this chapter.
    `judge` asserts what must also hold at the end.
    """

    name: str
    act: Callable[[CrashRun], Awaitable[None]]
    ended: Callable[[CrashRun], Predicate]
    killed: bool = True
    judge: Callable[[CrashRun], None] = lambda played: None


@dataclass
class CrashRun:
    """A run of a story in one namespace, with a history, an operator and a scheduler."""

    testbed: Testbed
    namespace: str
    victim: Role
    k: int
    history: History = field(init=False)
    clients: dict[Role, Mortal] = field(default_factory=dict)
    tasks: dict[Role, asyncio.Task[None]] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    """Values that a chapter stores for checks at its end."""
    release_line: Line = MAPS
    """The release line that the next operator to be started follows."""
    armed: int = 0
    """The number of the write at which the next started victim dies, or 0 if it never dies."""

    def __post_init__(self) -> None:
        self.history = History(self.testbed.recorder, self.namespace)

    @property
    def client(self) -> Client:
        """The client for user actions."""
        return self.testbed.client

    def start(self, role: Role) -> None:
        client = Mortal(self.testbed.connection, user_agent=f"{role}-{self.namespace}", namespace=self.namespace)
        self.clients[role] = client
        client.k = self.armed if role == self.victim else 0
        release_line = self.release_line

        async def run() -> None:
            async with client:
                if role == "operator":
                    image = "registry.example/wait:1"
                    options: dict[str, Any] = {"init_image": image, "features": FEATURES, "line": release_line}
                    await Operator(client, scheduler_name=SCHEDULER, **options).run()
                else:
                    await GangScheduler(client, name=SCHEDULER).run()

        self.tasks[role] = asyncio.create_task(run())

    async def replace_operator(self, release_line: Line) -> None:
        """Stop the operator, and start an operator of this release line that takes over."""
        await death(self.tasks.pop("operator"))
        self.release_line = release_line
        self.start("operator")

    async def stop(self) -> None:
        for task in self.tasks.values():
            await death(task)

    async def play_chapter(self, chapter: Chapter, expected: dict[str, dict[str, Any]]) -> int:
        """Run a chapter. Return the victim's number of writes until it died or the chapter ended."""
        self.armed = self.k if chapter.killed else 0
        mortal = self.clients[self.victim]
        mortal.writes, mortal.k = 0, self.armed
        await chapter.act(self)
        mortal = self.clients[self.victim]  # the act may have started another operator
        predicate = chapter.ended(self)
        ended = asyncio.create_task(self._ended(chapter, predicate, expected.get(chapter.name)))
        died = asyncio.create_task(mortal.dead.wait())
        await asyncio.wait({ended, died, *self.tasks.values()}, return_when=asyncio.FIRST_COMPLETED)
        if died.done():
            await self._restart()
        for role, task in self.tasks.items():
            if task.done():
                await task
                raise AssertionError(f"{self._description(chapter.name)}: the {role} has ended")
        final = await ended
        died.cancel()
        mortal.k = 0
        if mortal.dead.is_set() and self.clients[self.victim] is mortal:
            await self._restart()
        differences = list(differences_between(expected.setdefault(chapter.name, final), final))
        assert not differences, f"{self._description(chapter.name)}: {differences[:10]}"
        chapter.judge(self)
        return mortal.writes

    async def _restart(self) -> None:
        """Stop the dead victim, and start a new one."""
        self.armed = 0
        task = self.tasks.pop(self.victim)
        await death(task)
        self.start(self.victim)

    async def _ended(self, chapter: Chapter, predicate: Predicate, expected: dict[str, Any] | None) -> dict[str, Any]:
        """Wait for the final state and return it. This is the known state or, if there is none yet, the state in which
        nothing changes any more."""
        if expected is None:
            await asyncio.to_thread(self.history.wait, self._description(chapter.name), predicate, WAIT_SECONDS)
            await asyncio.to_thread(self.history.quiet, REST_SECONDS, WAIT_SECONDS, resources=KINDS)
        else:
            reached = lambda view: bool(predicate(view)) and normal(view, self.namespace) == expected  # noqa: E731
            with suppress(WaitTimeout):
                await asyncio.to_thread(self.history.wait, chapter.name, reached, WAIT_SECONDS)
            answer = predicate(self.history.view())
            assert answer, f"{self._description(chapter.name)}: it has not come to its end: {answer}"
        return normal(self.history.view(), self.namespace)

    def _description(self, event: str) -> str:
        return f"{event}, {self.namespace}: death of the {self.victim} at write {self.k}"


@dataclass
class Testbed:
    """The objects that all crash runs share."""

    name: str
    connection: config.Connection
    client: Client
    recorder: Recorder


async def play(
    testbed: Testbed, chapters: Sequence[Chapter], victim: Role, k: int, expected: dict[str, Any]
) -> dict[str, int]:
    """Run one life. Return the victim's number of writes in each chapter."""
    played = CrashRun(testbed, f"{testbed.name}-{k}", victim, k)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": played.namespace}}
    await testbed.client.create(NAMESPACES, body)
    played.start("operator")
    played.start("gang-scheduler")
    try:
        return {chapter.name: await played.play_chapter(chapter, expected) for chapter in chapters}
    finally:
        await played.stop()


async def all_deaths(
    cluster: Cluster, name: str, chapters: Sequence[Chapter], victim: Role, lives: int = LIVES
) -> dict[str, int]:
    """Run a story without a death, and then with a death at each write of each chapter. Return the numbers of writes.

    `name` is the prefix of the namespaces' names; up to `lives` lives run at the same time.
    """
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(4 * lives))  # each wait blocks a thread
    async with AsyncExitStack() as stack:
        maps = () if any(watched.resource == PODGANGMAPS for watched in WATCHED) else (Watched(PODGANGMAPS),)
        recorder = Recorder(cluster.kubeconfig, "chaos", (*WATCHED, *maps))
        recorder.start()
        stack.callback(recorder.stop)
        connection = config.load(cluster.kubeconfig)
        client = await stack.enter_async_context(Client(connection, user_agent="test"))
        await _set_up(client)
        testbed, expected_state = Testbed(name, connection, client, recorder), dict[str, Any]()
        writes = await play(testbed, chapters, victim, 0, expected_state)
        killed = {chapter.name: writes[chapter.name] for chapter in chapters if chapter.killed}

        def until_death(k: int) -> list[Chapter]:
            """Return the story without the chapters after the last death."""
            last = max(i for i, chapter in enumerate(chapters) if killed.get(chapter.name, 0) >= k)
            return list(chapters[: last + 1])

        turns = asyncio.Semaphore(lives)

        async def run_life(k: int) -> None:
            async with turns:
                await play(testbed, until_death(k), victim, k, expected_state)

        async with asyncio.TaskGroup() as group:
            for k in range(PART, max(killed.values()) + 1, PARTS):
                group.create_task(run_life(k))
        return killed


def death_count(writes: Mapping[str, int]) -> int:
    """Return the number of deaths in a story with these writes, by chapter."""
    return sum(len(range(PART, count + 1, PARTS)) for count in writes.values())


async def _set_up(client: Client) -> None:
    for name, value in PRIORITIES.items():
        priority_class = {"apiVersion": CLASSES.api_version, "kind": CLASSES.kind, "metadata": {"name": name}}
        if await client.get_or_none(CLASSES, None, name) is None:
            await client.create(CLASSES, {**priority_class, "value": value})
    manifests = [node for profile, count in NODE_COUNTS.items() for node in nodes.manifests(profile, count)]
    node_names = {node["metadata"]["name"] for node in await client.list(NODES)}
    await nodes.create_nodes(client, [node for node in manifests if node["metadata"]["name"] not in node_names])
    await nodes.wait_until_schedulable(client, [node["metadata"]["name"] for node in manifests])


def pods_made(played: CrashRun) -> tuple[int, int]:
    """Return the number of pods created so far, and the number of pods deleted."""
    records = played.history.records("pods")
    deleted = {r.uid for r in records if r.kind == DELETED or r.object["metadata"].get("deletionTimestamp")}
    return len({r.uid for r in records if r.kind == ADDED}), len(deleted)


def normal(view: View, namespace: str) -> dict[str, Any]:
    """Return the parts of the state that are the same in every life, which are all parts except random names, times,
    UIDs and versions."""
    pods = _numbered(view.list("pods"))
    named_by_time = [*(gang["metadata"]["name"] for gang in view.list("podgangs")), *map(str, view.list("podgangmaps"))]
    times = sorted({time for text in named_by_time for time in GANG_TIME.findall(text)})

    def named(text: str) -> str:
        """Replace the epochs in a text, such as a gang's name, by their order, which is the same in every life."""
        text_here = pods.get(text, text).replace(namespace, "HERE")
        return GANG_TIME.sub(lambda match: f"#{times.index(match[0])}" if match[0] in times else match[0], text_here)

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {named(k): plain(v) for k, v in value.items() if k not in RANDOM_FIELDS}
        if isinstance(value, list):
            return [plain(v) for v in value]
        return named(value) if isinstance(value, str) else value

    documents: dict[str, Any] = {}
    for kind in KINDS:
        for item in view.list(kind):
            document = plain({k: item.get(k) for k in ("metadata", "spec", "status")})
            name = item["metadata"]["name"]
            for group in (document["spec"] or {}).get("podgroups") or ():
                group["podReferences"] = sorted(group["podReferences"], key=lambda r: str(r["name"]))
            if kind == "pods":
                document["metadata"]["labels"][labels.POD_INDEX] = pods[name].rpartition("-")[2]
            documents[f"{kind}/{named(name)}"] = document
    return documents


def _numbered(documents: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return, by name and hostname of each pod, the hostname that the pod would have if a clique's pods were numbered
    in the order of their gangs.

    The gang of each pod depends on the pods' ages, and creation timestamps have a resolution of one second.
    """
    entries = [(label(pod, labels.CLIQUE), label(pod, labels.GANG), pod["spec"]["hostname"], pod) for pod in documents]
    in_order = sorted(entries, key=lambda item: item[:3])
    hostnames = sorted((clique, hostname) for clique, _, hostname, _ in entries)
    new = [
        (pod, old_hostname, hostname)
        for (_, _, old_hostname, pod), (_, hostname) in zip(in_order, hostnames, strict=True)
    ]
    return {text: hostname for pod, old_hostname, hostname in new for text in (pod["metadata"]["name"], old_hostname)}


def differences_between(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Yield the differences between two states."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted({*expected, *actual}):
            yield from differences_between(expected.get(key), actual.get(key), f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for i, (expected_value, actual_value) in enumerate(zip(expected, actual, strict=True)):
            yield from differences_between(expected_value, actual_value, f"{path}[{i}]")
    elif expected != actual:
        yield f"{path}: {actual!r} instead of {expected!r}"
