"""Tells pods why they wait: the condition PodScheduled=False, reason Unschedulable, and an event, as every scheduler
that people know does it. Cluster autoscalers look for it, and `kubectl get pods` shows it.

Each reason is written once. Most pods wait for an instant only, so a pod must have waited for a while first.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from kube.client import STRATEGIC_PATCH, Client
from kube.errors import REQUEST_FAILED, ApiError
from kube.informer import Informer
from kube.objects import Key
from kube.resource import EVENTS, PODS
from reference_impl.control.writer import now, precise_now
from reference_impl.plan import events
from reference_impl.runtime.waiting import passing
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Condition, Pod

log = logging.getLogger(__name__)

PATIENCE_SECONDS, TICK_SECONDS = 5.0, 1.0
"""How long a pod waits before it is told why, and how often that is looked at. Under load, the pods of a gang lose
their gates seconds apart, and the first of them wait for nothing that is worth a write."""
CONDITION, REASON, EVENT = "PodScheduled", "Unschedulable", "FailedScheduling"
AT_ONCE = 16
"""Pods that are written at the same time: bindings come first."""


def reasons(gang: Gang, shortfall: str | None) -> Iterable[tuple[Pod, str]]:
    """The pods of a gang that wait without a gate after a scheduling cycle, each with the reason. `shortfall` says why
    the gang's minimum cannot be placed."""
    for group in gang.groups:
        for pod in group.waiting:
            if shortfall is not None:
                yield pod, f"pod gang {gang.name} waits: {shortfall}"
            elif gang.incomplete:
                yield pod, f"pod gang {gang.name} waits for pods that are missing or have scheduling gates"
            elif gang.minimum_reached:
                yield pod, f"pod gang {gang.name} has its minimum; no node has capacity for more pods of {group.name}"


class Unschedulable:
    """What waiting pods are to be told, and what they have been told."""

    def __init__(self, client: Client, pods: Informer[Pod], controller: str) -> None:
        self._client, self._pods, self._controller = client, pods, controller
        self._wanted: dict[Key, tuple[str, str, float]] = {}
        """Pod → its uid, the reason, and since when it waits, or since when for this reason if it was told one."""
        self._changed = asyncio.Event()

    def replace(self, found: Iterable[tuple[Pod, str]]) -> None:
        """Takes in the waiting pods of a scheduling cycle; any other waits no more."""
        timestamp, before = asyncio.get_running_loop().time(), self._wanted
        self._wanted = {}
        for pod, reason in found:
            known = before.get(pod.metadata.key, ("", "", timestamp))
            # Reasons have numbers in them that change with each pod that is bound elsewhere: only the last one counts.
            same = known[0] == pod.metadata.uid and (known[1] == reason or not _told(pod))
            since = known[2] if same else timestamp
            self._wanted[pod.metadata.key] = (pod.metadata.uid, reason, since)
        if self._wanted:
            self._changed.set()

    async def run(self) -> None:
        """Writes until cancelled."""
        limit = asyncio.Semaphore(AT_ONCE)

        async def one(key: Key, uid: str, reason: str) -> None:
            async with limit:
                await self._tell(key, uid, reason)

        while True:
            await self._changed.wait()
            await asyncio.sleep(TICK_SECONDS)
            self._changed.clear()
            begun = asyncio.get_running_loop().time() - PATIENCE_SECONDS
            due = [(key, uid, reason) for key, (uid, reason, since) in self._wanted.items() if since <= begun]
            if len(due) < len(self._wanted):
                self._changed.set()
            await asyncio.gather(*(one(*each) for each in due))

    async def _tell(self, key: Key, uid: str, reason: str) -> None:
        pod = self._pods.get(*key)
        if pod is None or pod.metadata.uid != uid or not pod.waiting or self._wanted.get(key, ())[:2] != (uid, reason):
            return
        body = patch(pod, reason)
        if body is None:
            return
        try:
            answer = await self._client.patch(PODS, *key, body, content_type=STRATEGIC_PATCH, subresource="status")
            self._pods.observe(self._pods.decode(answer))
            await self._client.create(EVENTS, self._event(pod, reason))
        except REQUEST_FAILED as error:
            if not isinstance(error, ApiError) or not (error.not_found or error.conflict):
                log.info("the reason why %s/%s waits is not written: %s", *key, error)
            if passing(error) or (isinstance(error, ApiError) and error.conflict):  # somebody has written the pod
                self._changed.set()

    def _event(self, pod: Pod, reason: str) -> dict[str, Any]:
        return events.event(
            PODS,
            pod.metadata,
            kind="Warning",
            reason=EVENT,
            action="Scheduling",
            note=reason,
            controller=self._controller,
            timestamp=precise_now(),
        )


def patch(pod: Pod, reason: str) -> dict[str, Any] | None:
    """What to write into the pod's status, as a strategic merge patch; None where it says so already.

    It is for the known version of the pod only: a patch that comes after a binding must not deny the binding."""
    old = _condition(pod)
    if _told(pod) and old is not None and old.message == reason:
        return None
    condition = {"type": CONDITION, "status": "False", "reason": REASON, "message": reason}
    if old is None or old.status != "False":
        condition["lastTransitionTime"] = now()
    metadata = {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version}
    return {"metadata": metadata, "status": {"conditions": [condition]}}


def _told(pod: Pod) -> bool:
    """Whether the pod has been told why it waits, for whatever reason."""
    condition = _condition(pod)
    return condition is not None and (condition.status, condition.reason) == ("False", REASON)


def _condition(pod: Pod) -> Condition | None:
    return next((each for each in pod.status.conditions or () if each.type == CONDITION), None)
