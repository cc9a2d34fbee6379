"""The raw floor: the same pods without an operator, created and deleted by one client and bound by kube-scheduler.

Times are only meaningful relative to a raw floor of the same run. The raw floor is measured before and after the
phases, so that a change in the speed of the machine is noticed (docs/scale.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from conformance.scale.environment import ScaleEnvironment
from conformance.scale.tracker import Tracker
from kube.resource import PODS

IN_FLIGHT = 32
"""Number of concurrent requests (spec OBS-23)."""


async def measure(env: ScaleEnvironment, namespace: str, pods: list[dict[str, Any]], timeout: float) -> dict[str, Any]:
    """Create these pods and wait until all are Ready, then delete them and wait until all are gone; return times and
    CPU usage. Each of the two steps may take `timeout` seconds.

    The namespace remains, empty: its deletion would continue in the background during the next measurement.
    """
    await env.create_namespace(namespace)
    tracker, total = Tracker(env.recorder, namespace), len(pods)

    async def create(pod: dict[str, Any]) -> None:
        await env.client.create(PODS, pod)

    async def delete(pod: dict[str, Any]) -> None:
        await env.client.delete(PODS, namespace, pod["metadata"]["name"])

    meter, start = env.meter(), env.now()
    tracker.mark(
        {"pods-created": lambda now: now.present >= total, "pods-ready": lambda now: now.ready >= total}, start
    )
    creation_task = asyncio.ensure_future(_for_each(create, pods))
    await env.wait_for_pods(tracker, namespace, lambda now: now.ready >= total, total, timeout)
    await creation_task
    times = {name: round(time - start, 3) for name, time in tracker.times.items()}
    creation = {"processes": meter.read(), "machine": meter.machine()}
    await env.wait_for_quiet()

    meter, start = env.meter(), env.now()
    tracker.mark({"pods-deleted": lambda now: not now.present}, start)
    deletion_task = asyncio.ensure_future(_for_each(delete, pods))
    await env.wait_for_pods(tracker, namespace, lambda now: not now.present, 0, timeout)
    await deletion_task
    times["pods-deleted"] = round(tracker.times["pods-deleted"] - start, 3)
    deletion = {"processes": meter.read(), "machine": meter.machine()}
    await env.wait_for_quiet()
    env.recorder.forget(namespace)
    return {"markers": times, "creation": creation, "deletion": deletion}


async def _for_each(action: Callable[[dict[str, Any]], Awaitable[None]], items: Iterable[dict[str, Any]]) -> None:
    semaphore = asyncio.Semaphore(IN_FLIGHT)

    async def limited_action(item: dict[str, Any]) -> None:
        async with semaphore:
            await action(item)

    await asyncio.gather(*(limited_action(item) for item in items))
