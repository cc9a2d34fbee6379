"""A run of a generated history on the operator itself, with an API server in memory.

Pods start immediately. Requests are not validated. Therefore, a scale during an update, which admission would reject,
is skipped. The suite's invariants judge the recorded events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson

from conformance import invariants
from conformance.grove import updates
from conformance.grove.fields import number
from conformance.history.query import History
from tests.coherent.histories import model, reproduction
from tests.coherent.histories.reproduction import HOLD_READY_ANNOTATION, SET
from tests.history.scripted import Scripted
from tests.reference.coherent.small_api import NEVER_READY, SmallApi
from tests.reference.coherent.world import World

NAMESPACE = "ns"
PCS = ("podcliquesets", NAMESPACE, SET)
POLL_SECONDS, WAIT_SECONDS, QUIET_SECONDS = 0.005, 30.0, 10.0
"""The time between two checks, the timeout of a wait, and the time by which the log is extended after its last
event."""


async def run_histories(histories: Sequence[model.GeneratedHistory], concurrency: int = 12) -> list[list[str]]:
    """Run histories in parallel, and return the problems of each history."""
    semaphore = asyncio.Semaphore(concurrency)

    async def run_one(history: model.GeneratedHistory) -> list[str]:
        async with semaphore:
            return await _HistoryRun(history).run()

    return await asyncio.gather(*map(run_one, histories))


class _HistoryRun:
    def __init__(self, history: model.GeneratedHistory) -> None:
        self.history, self.world = history, World()
        self.versions = self._previous_versions = reproduction.initial_versions(history)
        self.excused_uids: set[str] = set()
        self.strategy, self.problems = history.strategy, list[str]()

    async def run(self) -> list[str]:
        world, pods = self.world, asyncio.create_task(self.world.api.run_pods())
        try:
            await world.start()
            body = reproduction.manifest(self.history)
            body["spec"]["template"]["cliques"] = self._cliques()
            await world.create(body)
            if not await self._wait_until_at_rest():
                return ["the set is not deployed"]
            for action in self.history.actions:
                self.versions, self._previous_versions = reproduction.versions_after(
                    self.versions, self._previous_versions, action
                )
                await self._act(action)
            self.versions = reproduction.final_versions(self.history, self.versions)
            await self._patch({"updateStrategy": {"type": model.COHERENT}, "template": {"cliques": self._cliques()}})
            problems = (
                self.problems if await self._wait_until_at_rest() else [*self.problems, "it does not come to rest"]
            )
            await self.world.api.collect_again()
            await self._wait_until_at_rest()
            return problems + self._final_problems() + self._broken_invariants()
        finally:
            await world.stop()
            pods.cancel()

    async def _act(self, action: model.Action) -> None:
        match action:
            case model.Change() | model.Revert():
                await self._patch({"template": {"cliques": self._cliques()}})
            case model.Scale(part=part, replicas=replicas):
                await self._scale(part, replicas)
            case model.LosePod(number=index):
                await self._delete_pods(index, 1)
            case model.FailNode():
                await self._delete_pods(0, 2)
            case model.Restart():
                await self.world.stop()
                await self.world.start()
            case model.SwitchStrategy(strategy=strategy):
                self.strategy = strategy
                await self._patch({"updateStrategy": {"type": strategy}})
            case model.Proceed(steps=steps):
                await self._proceed(steps)
            case model.PauseCollector():
                self.world.api.collects = False
            case model.Replace(pods=pods):
                await self._replace(pods)
            case model.Settle():
                is_at_rest = await self._wait_until_at_rest()
                if all(works for _, works in self.versions.values()):
                    self.problems += self._running_update(is_at_rest)
                for name, version in reproduction.required_versions(self.history, self.strategy, self.versions).items():
                    if (images := self.world.images(f"{SET}-0-{name}")) != {f"registry.example/{name}:{version}"}:
                        self.problems.append(f"pods of {name} have the images {sorted(images)} at rest")

    def _cliques(self) -> list[dict[str, Any]]:
        cliques = reproduction.cliques(self.history, self.versions)
        for clique in cliques:
            if clique.pop("annotations", {}).get(HOLD_READY_ANNOTATION):
                clique["annotations"] = {NEVER_READY: "yes"}
        return cliques

    async def _patch(self, spec: dict[str, Any]) -> None:
        await self.world.api.patch(PCS, {"spec": spec}, "merge", False)

    async def _scale(self, part: str, replicas: int) -> None:
        if updates.is_running(self.world.api.objects[PCS]) or not self._is_observed():
            return
        plural = "podcliquescalinggroups" if self.history.part(part).is_group else "podcliques"
        await self.world.scale(plural, f"{SET}-0-{part}", replicas)

    def _is_observed(self) -> bool:
        pcs = self.world.api.objects[PCS]
        return number(pcs, "status", "observedGeneration") == number(pcs, "metadata", "generation")

    async def _delete_pods(self, index: int, count: int) -> None:
        for _ in range(count):
            if pods := sorted((pod["metadata"]["name"], pod["metadata"]["uid"]) for pod in self.world.pods()):
                pod_name, uid = pods[index % len(pods)]
                self.excused_uids.add(uid)
                await self.world.api.delete(("pods", NAMESPACE, pod_name))

    async def _proceed(self, steps: int) -> None:
        for _ in range(steps):
            gangs_before = self.world.gangs()
            for _ in range(round(WAIT_SECONDS / POLL_SECONDS)):
                if self.world.gangs() != gangs_before or self.world.at_rest():
                    break
                await asyncio.sleep(POLL_SECONDS)

    async def _replace(self, pods: int) -> None:
        def created_pods() -> int:
            return sum((plural, kind) == ("pods", "ADDED") for plural, kind, _ in self.world.api.history)

        expected = created_pods() + pods
        for _ in range(round(WAIT_SECONDS / POLL_SECONDS)):
            if created_pods() >= expected:
                return
            await asyncio.sleep(POLL_SECONDS)
            if self.world.at_rest():
                return

    async def _wait_until_at_rest(self) -> bool:
        """Wait until the set is at rest, and return whether it came to rest within `WAIT_SECONDS`."""
        for _ in range(round(WAIT_SECONDS / POLL_SECONDS)):
            await asyncio.sleep(POLL_SECONDS)
            if self.world.at_rest():
                return True
        return False

    # -- the end ---------------------------------------------------------------------------------------------------

    def _running_update(self, is_at_rest: bool) -> list[str]:
        is_running = not is_at_rest or updates.is_running(self.world.api.objects[PCS]) or not self._is_observed()
        return [f"the update does not end: {self.world.progress()}"] if is_running else []

    def _final_problems(self) -> list[str]:
        world = self.world
        images = {f"registry.example/{name}:{version}" for name, (version, _) in self.versions.items()}
        problems = self._running_update(is_at_rest=True)
        if world.images() != images:
            problems.append(f"pods have the images {sorted(world.images())}, not {sorted(images)}")
        ready, total = world.ready()
        expected = sum(item["spec"]["replicas"] for item in world.api.all("podcliques"))
        if not ready == total == expected:
            problems.append(f"{ready} of {total} pods are Ready, {expected} are expected")
        return problems

    def _broken_invariants(self) -> list[str]:
        history = History(recorded_events(self.world.api), NAMESPACE)
        history.origins.excused = self.excused_uids
        results = invariants.judge(history, model.INVARIANTS)
        return [str(result) for result in results if result.holds is False]


def recorded_events(api: SmallApi) -> Scripted:
    """Return the events of an in-memory API server as a scripted log."""
    log = Scripted()
    for position, (plural, kind, item) in enumerate(api.history):
        log.clock = position / 1000
        meta = item["metadata"]
        log.append(
            kind, plural, namespace=NAMESPACE, name=meta["name"], uid=meta["uid"],
            version=meta["resourceVersion"], raw=orjson.dumps(item),
        )  # fmt: skip
    log.clock += QUIET_SECONDS
    return log
