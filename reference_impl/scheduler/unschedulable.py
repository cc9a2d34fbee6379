"""Reports of the reasons why pods wait: the condition PodScheduled=False with reason Unschedulable, and an event, as
other schedulers write them. Cluster autoscalers act on the condition, and `kubectl get pods` shows it.

Each reason is written once, and only after a delay, because most pods wait for less than a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from kube.client import STRATEGIC_PATCH, Client
from kube.errors import REQUEST_FAILED, ApiError
from kube.informer import Informer
from kube.objects import Key
from kube.resource import PODS
from reference_impl.runtime.clock import now
from reference_impl.runtime.events import EventRecorder
from reference_impl.runtime.waiting import is_temporary
from reference_impl.scheduler.gang import Gang
from reference_impl.scheduler.model import Condition, Pod

log = logging.getLogger(__name__)

PATIENCE_SECONDS, TICK_SECONDS = 5.0, 1.0
"""How long a pod waits before its reason is written, and the interval between checks, in seconds. Under load, the pods
of a gang lose their gates seconds apart, and the first pods only wait for the rest of the gang."""
CONDITION, REASON, EVENT = "PodScheduled", "Unschedulable", "FailedScheduling"
MAX_CONCURRENT_WRITES = 16
"""Maximum number of concurrent writes, so that bindings are not delayed."""


def reasons(gang: Gang, shortfall: str | None, extra_pod_reasons: Mapping[str, str]) -> Iterable[tuple[Pod, str]]:
    """Yield the ungated pods of a gang that wait after a scheduling cycle, each with the reason. `shortfall` is the
    reason why the gang's minimum cannot be placed, and `extra_pod_reasons` are the reasons why pods above the minimum
    (by uid) wait for something other than capacity."""
    for group in gang.groups:
        for pod in group.waiting:
            if shortfall is not None:
                yield pod, f"pod gang {gang.name} waits: {shortfall}"
            elif gang.incomplete:
                yield pod, f"pod gang {gang.name} waits for pods that are missing or have scheduling gates"
            elif gang.minimum_reached:
                reason = (
                    extra_pod_reasons.get(pod.metadata.uid) or f"no node has capacity for more pods of {group.name}"
                )
                yield pod, f"pod gang {gang.name} has its minimum; {reason}"


class Unschedulable:
    """Writes the reasons why pods wait to the pods."""

    def __init__(self, client: Client, pods: Informer[Pod], events: EventRecorder) -> None:
        self._client, self._pods, self._events = client, pods, events
        self._reasons: dict[Key, tuple[str, str, float]] = {}
        """By pod: its uid, the reason, and the time since which the pod waits or, if another reason has been written,
        the time since which this reason applies."""
        self._unposted_events: dict[Key, tuple[str, str]] = {}
        """By pod: its uid and the reason for which the condition is written and the event is not posted yet."""
        self._changed = asyncio.Event()

    def replace(self, waiting_pods: Iterable[tuple[Pod, str]]) -> None:
        """Replace the waiting pods with the waiting pods of the last scheduling cycle. All other pods have stopped
        waiting."""
        timestamp, old_reasons = asyncio.get_running_loop().time(), self._reasons
        self._reasons = {}
        for pod, reason in waiting_pods:
            earlier_reason = old_reasons.get(pod.metadata.key, ("", "", timestamp))
            # Reasons contain numbers that change with each pod that is bound elsewhere, so only the last reason is
            # written.
            is_unchanged = earlier_reason[0] == pod.metadata.uid and (
                earlier_reason[1] == reason or not _is_reported(pod)
            )
            waiting_since = earlier_reason[2] if is_unchanged else timestamp
            self._reasons[pod.metadata.key] = (pod.metadata.uid, reason, waiting_since)
        self._unposted_events = {
            key: unposted for key, unposted in self._unposted_events.items() if key in self._reasons
        }
        if self._reasons:
            self._changed.set()

    async def run(self) -> None:
        """Write reasons until cancelled."""
        limit = asyncio.Semaphore(MAX_CONCURRENT_WRITES)

        async def write_one(key: Key, uid: str, reason: str) -> None:
            async with limit:
                await self._write(key, uid, reason)

        while True:
            await self._changed.wait()
            await asyncio.sleep(TICK_SECONDS)
            self._changed.clear()
            cutoff = asyncio.get_running_loop().time() - PATIENCE_SECONDS
            due_reasons = [
                (key, uid, reason)
                for key, (uid, reason, waiting_since) in self._reasons.items()
                if waiting_since <= cutoff
            ]
            if len(due_reasons) < len(self._reasons):
                self._changed.set()
            await asyncio.gather(*(write_one(*entry) for entry in due_reasons))

    async def _write(self, key: Key, uid: str, reason: str) -> None:
        pod = self._pods.get(*key)
        if pod is None or pod.metadata.uid != uid or not pod.waiting or self._reasons.get(key, ())[:2] != (uid, reason):
            return
        body = status_patch(pod, reason)
        if body is None and self._unposted_events.get(key) != (uid, reason):
            return
        try:
            if body is not None:
                answer = await self._client.patch(PODS, *key, body, content_type=STRATEGIC_PATCH, subresource="status")
                self._pods.observe(self._pods.decode(answer))
                self._unposted_events[key] = (uid, reason)
            await self._events.post(PODS, pod.metadata, "Warning", EVENT, reason, action="Scheduling")
            self._unposted_events.pop(key, None)
        except REQUEST_FAILED as error:
            if not isinstance(error, ApiError) or not (error.not_found or error.conflict):
                log.info("cannot write why pod %s/%s waits: %s", *key, error or repr(error))
            if is_temporary(error) or (
                isinstance(error, ApiError) and error.conflict
            ):  # the pod has changed, so try again
                self._changed.set()
            else:
                self._unposted_events.pop(key, None)


def status_patch(pod: Pod, reason: str) -> dict[str, Any] | None:
    """Return the strategic merge patch for the pod's status, or None if the status already has this reason.

    The patch has the known resource version as a precondition, because a patch that arrives after a binding must not
    contradict the binding.
    """
    old = _condition(pod)
    if _is_reported(pod) and old is not None and old.message == reason:
        return None
    condition = {"type": CONDITION, "status": "False", "reason": REASON, "message": reason}
    if old is None or old.status != "False":
        condition["lastTransitionTime"] = now()
    metadata = {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version}
    return {"metadata": metadata, "status": {"conditions": [condition]}}


def _is_reported(pod: Pod) -> bool:
    """Return whether the pod's status already reports that the pod is unschedulable, for any reason."""
    condition = _condition(pod)
    return condition is not None and (condition.status, condition.reason) == ("False", REASON)


def _condition(pod: Pod) -> Condition | None:
    return next((condition for condition in pod.status.conditions or () if condition.type == CONDITION), None)
