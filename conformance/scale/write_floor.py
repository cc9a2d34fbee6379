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
from conformance.cluster.audit import READS
from conformance.cluster.audit_bodies import Write
from conformance.errors import HarnessError
from conformance.grove.kinds import PODCLIQUESETS
from conformance.scale.environment import AGENT, ScaleEnvironment
from conformance.scale.floor import IN_FLIGHT
from conformance.scale.phases import TIME_LIMIT
from conformance.scale.play import NAMESPACE
from conformance.scale.replay import Replay, counted
from conformance.scale.requests import CONTROL_PLANE, NOT_COUNTED, of_implementation
from conformance.scale.scenario import LoadScenario
from conformance.scale.tracker import Tracker
from kube.errors import ApiError

CONFIGURATIONS = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")
GONE_WITHIN = 120.0


@dataclass(frozen=True)
class RecordedWrites:
    """The set as the API server stored it, and the writes that followed."""

    stored: dict[str, Any]
    writes: Sequence[Write]


async def record(env: ScaleEnvironment, scenario: LoadScenario, scheduler_name: str | None) -> RecordedWrites:
    """Deploy the set of a scenario, and return the writes of the implementation until no more requests are sent."""
    await env.namespace(NAMESPACE)
    tracker, pods = Tracker(env.recorder, NAMESPACE), scenario.replicas * scenario.pods_per_replica
    await env.quiet()
    mark = env.audit.mark()
    response = await env.client.create(PODCLIQUESETS, scenario.pod_clique_set(NAMESPACE, scheduler_name))

    def ended(now: Tracker) -> bool:
        return now.ready == pods and now.status.available_replicas == scenario.replicas

    await env.follow(tracker, "recording of writes", ended, pods, TIME_LIMIT)
    await env.quiet()
    writes = [
        write
        for write in audit_bodies.writes(env.cluster.audit_log, NAMESPACE, mark)
        if of_implementation(write.user, write.program, NOT_COUNTED | CONTROL_PLANE)
    ]
    return RecordedWrites(orjson.loads(response), writes)


async def measure(env: ScaleEnvironment, recorded: RecordedWrites, pods: int) -> dict[str, Any]:
    """Replay recorded writes without the implementation, and return times, counts and CPU usage. Raises HarnessError if
    the API server did not receive the same writes."""
    env.driver.stop()
    stored = recorded.stored
    metadata = {"name": stored["metadata"]["name"], "namespace": NAMESPACE}
    fresh = {**{name: value for name, value in stored.items() if name != "status"}, "metadata": metadata}
    await _prepare(env, fresh)
    await env.quiet()
    tracker = Tracker(env.recorder, NAMESPACE)
    mark, meter, start = env.audit.mark(), env.meter(), env.now()
    tracker.mark({"pods-created": lambda now: now.present >= pods, "pods-ready": lambda now: now.ready >= pods}, start)
    created = orjson.loads(await env.client.create(PODCLIQUESETS, fresh))
    uids = {stored["metadata"]["uid"]: created["metadata"]["uid"]}
    replay = Replay(env.client, recorded.writes, uids, IN_FLIGHT)
    replay_task = asyncio.ensure_future(replay.all())
    await env.follow(
        tracker, "write floor", lambda now: now.ready >= pods or _has_failed(replay_task), pods, TIME_LIMIT
    )
    await replay_task
    ended_at = env.now()
    cost = {"processes": meter.read(), "machine": meter.machine()}
    await env.quiet()
    _compare(counted(recorded.writes), _sent_counts(env, mark))
    times = {name: round(at - start, 3) for name, at in tracker.times.items()}
    return {"markers": {**times, "all-written": round(ended_at - start, 3)}, "writes": len(recorded.writes), **cost}


def _has_failed(sending: asyncio.Future[None]) -> bool:
    return sending.done() and sending.exception() is not None


def _sent_counts(env: ScaleEnvironment, mark: int) -> Counter[tuple[str, str]]:
    """Count the writes of the replay, without the creation of the set itself."""
    counts: Counter[tuple[str, str]] = Counter()
    for key, count in env.audit.requests(mark).items():
        if key.verb not in READS and key.program == AGENT and key.code < 300:
            counts[key.verb, key.resource] += count
    counts["create", PODCLIQUESETS.plural] -= 1
    return +counts


def _compare(recorded: Counter[tuple[str, str]], sent: Counter[tuple[str, str]]) -> None:
    if wrong := [
        f"{sent[key]} instead of {recorded[key]} {' '.join(key)}"
        for key in sorted(recorded.keys() | sent.keys())
        if sent[key] != recorded[key]
    ]:
        raise HarnessError(f"the write floor did not repeat the recorded writes: {'; '.join(wrong)}")


async def _prepare(env: ScaleEnvironment, fresh: dict[str, Any]) -> None:
    """Delete the webhooks, which no longer have a server, and create the namespace; return when the set can be created.
    Raises HarnessError."""
    for plural in CONFIGURATIONS:
        await env.client.request("DELETE", f"/apis/admissionregistration.k8s.io/v1/{plural}")

    async def trial() -> None:
        path = PODCLIQUESETS.path(NAMESPACE)
        await env.client.request("POST", path, params={"dryRun": "All"}, body=fresh)

    await env.namespace(NAMESPACE)
    attempts = AsyncRetrying(
        retry=retry_if_exception_type(ApiError),
        wait=wait_fixed(0.5),
        stop=stop_after_delay(GONE_WITHIN),
        reraise=True,
    )
    try:
        async for attempt in attempts:
            with attempt:
                await trial()
    except ApiError as error:
        raise HarnessError(f"the webhooks are still called after {GONE_WITHIN:.0f} s: {error}") from error
