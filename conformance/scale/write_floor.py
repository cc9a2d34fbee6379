"""The write floor: the time that the writes of the implementation take without the implementation.

The writes come from an untimed run on a separate cluster, whose audit log contains their bodies. They are replayed on
another new cluster, after the implementation has been stopped.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from conformance.cluster import audit_bodies
from conformance.cluster.audit import READ_VERBS
from conformance.cluster.audit_bodies import Write
from conformance.errors import HarnessError
from conformance.grove.kinds import PODCLIQUESETS
from conformance.scale.environment import AGENT, ScaleEnvironment
from conformance.scale.floor import IN_FLIGHT
from conformance.scale.phases import TIME_LIMIT
from conformance.scale.play import NAMESPACE
from conformance.scale.replay import Replay, count_writes
from conformance.scale.requests import CONTROL_PLANE, NOT_COUNTED, is_counted
from conformance.scale.scenario import LoadScenario
from conformance.scale.tracker import Tracker
from kube.errors import ApiError

CONFIGURATIONS = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
GONE_SECONDS = 120.0


@dataclass(frozen=True)
class RecordedWrites:
    """The set as the API server stored it, and the writes that followed."""

    stored: dict[str, Any]
    writes: Sequence[Write]


async def record(env: ScaleEnvironment, scenario: LoadScenario, scheduler_name: str | None) -> RecordedWrites:
    """Deploy the set of a scenario, and return the writes of the implementation until no more requests are sent."""
    await env.create_namespace(NAMESPACE)
    tracker, pods = Tracker(env.recorder, NAMESPACE), scenario.replicas * scenario.pods_per_replica
    await env.wait_for_quiet()
    mark = env.audit.mark()
    response = await env.client.create(PODCLIQUESETS, scenario.pod_clique_set(NAMESPACE, scheduler_name))

    def is_complete(now: Tracker) -> bool:
        return now.ready == pods and now.status.available_replicas == scenario.replicas

    await env.wait_for_pods(tracker, "recording of writes", is_complete, pods, TIME_LIMIT)
    await env.wait_for_quiet()
    writes = [
        write
        for write in audit_bodies.writes(env.cluster.audit_log, NAMESPACE, mark)
        if is_counted(write.user, write.program, NOT_COUNTED | CONTROL_PLANE)
    ]
    return RecordedWrites(orjson.loads(response), writes)


async def measure(env: ScaleEnvironment, recording: RecordedWrites, pods: int) -> dict[str, Any]:
    """Replay recorded writes without the implementation, and return times, counts and CPU usage. Raises HarnessError if
    the API server did not receive the same writes."""
    env.driver.stop()
    stored_set = recording.stored
    metadata = {"name": stored_set["metadata"]["name"], "namespace": NAMESPACE}
    new_set = {**{name: value for name, value in stored_set.items() if name != "status"}, "metadata": metadata}
    await _prepare(env, new_set)
    await env.wait_for_quiet()
    tracker = Tracker(env.recorder, NAMESPACE)
    mark, meter, start = env.audit.mark(), env.meter(), env.now()
    tracker.mark({"pods-created": lambda now: now.present >= pods, "pods-ready": lambda now: now.ready >= pods}, start)
    created = orjson.loads(await env.client.create(PODCLIQUESETS, new_set))
    uids = {stored_set["metadata"]["uid"]: created["metadata"]["uid"]}
    replay = Replay(env.client, recording.writes, uids, IN_FLIGHT)
    replay_task = asyncio.ensure_future(replay.send_all())
    await env.wait_for_pods(
        tracker, "write floor", lambda now: now.ready >= pods or _has_failed(replay_task), pods, TIME_LIMIT
    )
    await replay_task
    ended_at = env.now()
    cost = {"processes": meter.read(), "machine": meter.machine()}
    await env.wait_for_quiet()
    _compare(count_writes(recording.writes), _sent_counts(env, mark))
    times = {name: round(time - start, 3) for name, time in tracker.times.items()}
    return {"markers": {**times, "all-written": round(ended_at - start, 3)}, "writes": len(recording.writes), **cost}


def _has_failed(replay_task: asyncio.Future[None]) -> bool:
    return replay_task.done() and replay_task.exception() is not None


def _sent_counts(env: ScaleEnvironment, mark: int) -> Counter[tuple[str, str]]:
    """Count the writes of the replay, without the creation of the set itself."""
    counts: Counter[tuple[str, str]] = Counter()
    for key, count in env.audit.requests(mark).items():
        if key.verb not in READ_VERBS and key.program == AGENT and key.code < 300:
            counts[key.verb, key.resource] += count
    counts["create", PODCLIQUESETS.plural] -= 1
    return +counts


def _compare(recorded: Counter[tuple[str, str]], sent: Counter[tuple[str, str]]) -> None:
    if differences := [
        f"{sent[key]} instead of {recorded[key]} {' '.join(key)}"
        for key in sorted(recorded.keys() | sent.keys())
        if sent[key] != recorded[key]
    ]:
        raise HarnessError(f"the write floor did not repeat the recorded writes: {'; '.join(differences)}")


async def _prepare(env: ScaleEnvironment, new_set: dict[str, Any]) -> None:
    """Delete the webhooks, which no longer have a server, and create the namespace; return when the set can be created.
    Raises HarnessError if the webhooks are still called after GONE_SECONDS."""
    for plural in CONFIGURATIONS:
        await env.client.request("DELETE", f"/apis/admissionregistration.k8s.io/v1/{plural}")

    async def try_creation() -> None:
        path = PODCLIQUESETS.path(NAMESPACE)
        await env.client.request("POST", path, params={"dryRun": "All"}, body=new_set)

    await env.create_namespace(NAMESPACE)
    attempts = AsyncRetrying(
        retry=retry_if_exception_type(ApiError),
        wait=wait_fixed(0.5),
        stop=stop_after_delay(GONE_SECONDS),
        reraise=True,
    )
    try:
        async for attempt in attempts:
            with attempt:
                await try_creation()
    except ApiError as error:
        raise HarnessError(f"the webhooks are still called after {GONE_SECONDS:.0f} s: {error}") from error
