"""A small test environment: the operator on an in-memory API server, a set of F, P and D, and its observable state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from reference_impl.api.models import PodGangMap
from reference_impl.control.features import Features
from reference_impl.control.operator import Operator
from reference_impl.plan import labels
from reference_impl.plan.epochs import sort_key
from tests.reference.coherent.small_api import NEVER_READY, SmallApi, SmallClient

PATIENCE_SECONDS = 120.0
SOON_SECONDS = 2.0
"""The time in seconds after which planned work of the operator, such as a gang termination, no longer prevents rest."""
Shape = list[str]
"""The contents of gangs in order of creation, such as `F2 P0 D0`."""


def the_set(
    tags: dict[str, str] | str = "v0",
    strategy: str = "Coherent",
    replicas: int = 1,
    broken: bool = False,
    **sizes: tuple[int, ...],
) -> dict[str, Any]:
    """Return a set of the standalone clique F and of scaling groups such as P and D, which have one clique each.

    The sizes are (replicas, minAvailable[, maxUnavailable]); `tags` are the image tags.
    """
    cliques, groups = [], []
    for name, size in sizes.items():
        component, standalone = name.lower(), name == "F"
        tag = tags if isinstance(tags, str) else tags.get(name, "v0")
        containers = [{"name": "main", "image": f"x:{tag}"}]
        count, minimum = (size[0], size[1]) if standalone else (1, 1)
        spec = {
            "roleName": component,
            "replicas": count,
            "minAvailable": minimum,
            "podSpec": {"containers": containers},
        }
        clique = {"name": component if standalone else f"{component}w", "spec": spec}
        if broken:
            clique["annotations"] = {NEVER_READY: "yes"}
        budget = {"rollingUpdate": {"maxUnavailable": size[2]}} if len(size) > 2 else {}
        cliques.append(clique | budget if standalone else clique)
        if not standalone:
            groups.append(
                {"name": component, "cliqueNames": [f"{component}w"], "replicas": size[0], "minAvailable": size[1]}
                | budget
            )
    return {
        "metadata": {"name": "s"},
        "spec": {
            "replicas": replicas,
            "updateStrategy": {"type": strategy},
            "template": {"cliques": cliques, "podCliqueScalingGroups": groups},
        },
    }


class World:
    def __init__(self) -> None:
        self.api = SmallApi()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._operator: Operator | None = None

    async def start(self) -> None:
        operator = Operator(SmallClient(self.api), scheduler_name="gangs", features=Features(maps=True))
        self._tasks["operator"] = asyncio.create_task(operator.run())
        await operator.ready.wait()
        self._operator = operator

    async def stop(self, role: str = "operator") -> None:
        task = self._tasks.pop(role)
        self._operator = None if role == "operator" else self._operator
        task.cancel()
        with suppress(asyncio.CancelledError, BaseExceptionGroup):
            await task

    async def create(self, body: dict[str, Any]) -> None:
        await self.api.create("podcliquesets", "ns", body)

    async def change(self, body: dict[str, Any]) -> None:
        await self.api.patch(("podcliquesets", "ns", "s"), {"spec": body["spec"]}, "merge", False)

    async def scale(self, plural: str, name: str, replicas: int) -> None:
        await self.api.patch((plural, "ns", name), {"spec": {"replicas": replicas}}, "merge", False)

    async def until(self, predicate: Callable[[], Any], expectation: str = "") -> None:
        """Wait until the predicate holds, and then until the environment is at rest. The predicate must still hold
        then."""
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE_SECONDS
        while not predicate():
            for task in self._tasks.values():
                if task.done():
                    task.result()
            assert loop.time() < end, f"{expectation}: {self.gangs()} {self.progress()} {self.ready()}"
            await asyncio.sleep(0.02)
        while not self.at_rest():
            assert loop.time() < end, f"{expectation}: no rest: {self.api.writes[-5:]}"
            await asyncio.sleep(0.02)
        assert predicate(), f"{expectation}: no longer so: {self.gangs()} {self.progress()} {self.ready()}"

    def at_rest(self) -> bool:
        """Return whether nothing more happens, because pods have started and the operator has processed all events and
        has nothing to do."""
        idle = self._operator is None or self._operator.is_idle(SOON_SECONDS)
        return idle and self.api.all_seen() and self.api.pods_started()

    async def soon(self, predicate: Callable[[], bool]) -> None:
        """Wait for a state that may be temporary."""
        for _ in range(round(PATIENCE_SECONDS / 0.005)):
            if predicate():
                return
            await asyncio.sleep(0.005)
        raise AssertionError(f"never seen: {self.gangs()} {self.progress()}")

    # -- state

    def gangs(self, index: int = 0) -> Shape:
        gang_map = self.api.get("podgangmaps", f"s-{index}")
        return [] if gang_map is None else shape(gang_map)

    def map(self, index: int = 0) -> list[dict[str, Any]]:
        """Return the entries of a map that have members."""
        entries = (self.api.get("podgangmaps", f"s-{index}") or {"spec": {"entries": []}})["spec"]["entries"]
        return [entry for entry in entries if entry.get("podCliques") or entry.get("pcsgReplicaIndices")]

    def status(self) -> dict[str, Any]:
        pcs = self.api.get("podcliquesets", "s")
        return (pcs or {}).get("status") or {}

    def progress(self) -> dict[str, Any]:
        return self.status().get("updateProgress") or {}

    def pods(self, clique: str = "") -> list[dict[str, Any]]:
        return [
            pod
            for pod in self.api.all("pods")
            if clique in pod["metadata"]["labels"][labels.PODCLIQUE] and "deletionTimestamp" not in pod["metadata"]
        ]

    def uids(self, clique: str = "") -> set[str]:
        return {pod["metadata"]["uid"] for pod in self.pods(clique)}

    def images(self, clique: str = "") -> set[str]:
        return {pod["spec"]["containers"][0]["image"] for pod in self.pods(clique)}

    def ready(self, clique: str = "") -> tuple[int, int]:
        pods = self.pods(clique)
        return sum(bool(pod["status"].get("conditions")) for pod in pods), len(pods)

    def serving(self, pods: int) -> bool:
        return self.ready() == (pods, pods)

    def ended(self) -> bool:
        ready, all_of = self.ready()
        return "updateEndedAt" in self.progress() and ready == all_of and "currentlyUpdating" not in self.progress()

    def pods_by_gang(self) -> dict[str, dict[str, int]]:
        """Return the number of pods by gang and clique, according to the pods' labels."""
        result: dict[str, dict[str, int]] = {}
        for pod in self.pods():
            tags = pod["metadata"]["labels"]
            counts = result.setdefault(tags[labels.PODGANG], {})
            counts[tags[labels.PODCLIQUE]] = counts.get(tags[labels.PODCLIQUE], 0) + 1
        return result

    def mixed(self) -> list[str]:
        """Return the gangs that had pods of one clique in two versions at any time."""
        by_clique: dict[tuple[str, str], set[str]] = {}
        for plural, _, item in self.api.history:
            if plural == "pods":
                tags = item["metadata"]["labels"]
                template_hashes = by_clique.setdefault((tags[labels.PODGANG], tags[labels.PODCLIQUE]), set())
                template_hashes.add(tags[labels.TEMPLATE_HASH])
        return [f"{gang} {clique}" for (gang, clique), hashes in by_clique.items() if len(hashes) > 1]


def shape(gang_map: dict[str, Any] | PodGangMap) -> Shape:
    entries = gang_map["spec"]["entries"]  # type: ignore[index]
    result = []
    for entry in sorted(entries, key=lambda entry: sort_key(entry["epoch"])):
        parts = [f"{name.upper()}{count}" for name, count in sorted((entry.get("podCliques") or {}).items())]
        groups = sorted((entry.get("pcsgReplicaIndices") or {}).items(), reverse=True)
        parts += [f"{name.upper()}{index}" for name, indices in groups for index in indices]
        result += [" ".join(parts)] if entry["role"] == "Anchor" else parts
    return result


@asynccontextmanager
async def world(body: dict[str, Any], pods: int) -> AsyncIterator[World]:
    """Yield a world in which the set has been deployed with this number of pods."""
    w = World()
    w._tasks["pods"] = asyncio.create_task(w.api.run_pods())
    await w.start()
    try:
        await w.create(body)
        await w.until(lambda: w.serving(pods) and w.status().get("availableReplicas"), "made")
        yield w
    finally:
        for name in list(w._tasks):
            await w.stop(name)
