"""Runs the phases of a scenario: changes the PodCliqueSet, follows it until the phase is over, and records the
results."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from conformance.grove import labels
from conformance.grove.kinds import PODCLIQUESETS
from conformance.implementation.additions import with_additions
from conformance.scale import final_check
from conformance.scale.environment import RunFailed, ScaleEnvironment
from conformance.scale.markers import MARKERS, Target, conditions, is_over, markers_of
from conformance.scale.phases import Action, LoadPhase, Until
from conformance.scale.requests import count_throttled, summarize
from conformance.scale.scenario import LoadScenario
from conformance.scale.tracker import PodTimes, Tracker, percentiles
from kube.resource import PODS

NAMESPACE = "scale"
JSON_PATCH = "application/json-patch+json"
STATES = ("ungated", "bound", "running", "ready")
"""The states of a new pod in their order. Percentiles are of the time since the creation of the pod."""


class PhaseRunner:
    """The phases of one scenario on one cluster. `results` has the results of the phases so far, even after a
    failure."""

    def __init__(self, env: ScaleEnvironment, scenario: LoadScenario, scheduler_name: str | None) -> None:
        self.results: list[dict[str, Any]] = []
        self._env, self._scenario = env, scenario
        self._manifest = with_additions(env.driver.descriptor, scenario.pod_clique_set(NAMESPACE, scheduler_name))
        self._tracker = Tracker(env.recorder, NAMESPACE)
        self._generation = 0

    async def run_all(self) -> None:
        """Run all phases. Raises RunFailed at the first phase that does not reach its end."""
        await self._env.create_namespace(NAMESPACE)
        for phase in self._scenario.phases:
            await self._run_phase(phase)

    async def _run_phase(self, phase: LoadPhase) -> None:
        env, tracker = self._env, self._tracker
        tracker.read()
        started_at, storage_before, meter, start = datetime.now(UTC), env.storage_size(), env.meter(), env.now()
        existing_uids, deleted_before, uncertain_before = set(tracker.pods), tracker.deleted, tracker.uncertain_records
        failure_reason = ""
        await self._apply(phase)
        target = self._target(phase, len(existing_uids), deleted_before)
        tracker.mark(conditions(phase, target), start)
        try:
            await env.wait_for_pods(
                tracker, phase.name, lambda now: _is_over(phase, now, target), target.pods, phase.within
            )
        except RunFailed as failure:
            failure_reason = str(failure)
        ended_at = env.now()
        if phase.hold and not failure_reason and not _has_changed_pods(phase, tracker, target):
            await asyncio.sleep(phase.hold)
        result: dict[str, Any] = {
            "name": phase.name,
            "action": phase.action.value,
            "until": phase.until.value,
            "startedAt": started_at.isoformat(),
            "seconds": round(ended_at - start, 3),
            "holdSeconds": phase.hold,
            "processes": meter.read(),
            "machine": meter.machine(),
        }
        await env.wait_for_quiet()
        tracker.read()
        result |= _observations(phase, tracker, start, [tracker.pods[uid] for uid in set(tracker.pods) - existing_uids])
        result["storage"] = env.storage_size().change_from(storage_before) | await env.live_memory()
        requests = env.audit.requests(storage_before.audit)
        result |= summarize(requests, self._scenario.pods)
        result["throttled"], result["uncertainRecords"] = (
            count_throttled(requests),
            tracker.uncertain_records - uncertain_before,
        )
        errors = [] if failure_reason else await self._final_errors(phase, target)
        result["finalCheck"] = errors
        if phase.fits is not None:
            result["replicas"] = count_replicas(await env.client.list(PODS, NAMESPACE), self._scenario.pods_per_replica)
        self.results.append(result)
        if failure_reason or errors:
            result["reason"] = failure_reason or f"{phase.name}: {'; '.join(errors)}"
            raise RunFailed(result["reason"])

    async def _apply(self, phase: LoadPhase) -> None:
        client, name = self._env.client, self._manifest["metadata"]["name"]
        match phase.action:
            case Action.CREATE:
                response = await client.create(PODCLIQUESETS, self._manifest)
            case Action.SCALE:
                response = await client.patch(PODCLIQUESETS, NAMESPACE, name, {"spec": {"replicas": phase.replicas}})
            case Action.PATCH:
                operations = orjson.dumps(phase.operations(self._env.run))
                response = await client.patch(PODCLIQUESETS, NAMESPACE, name, operations, content_type=JSON_PATCH)
            case Action.DELETE:
                await client.delete(PODCLIQUESETS, NAMESPACE, name)
                return
            case Action.NOTHING:
                return
        self._generation = orjson.loads(response)["metadata"].get("generation", 0)

    def _target(self, phase: LoadPhase, pods_seen: int, deleted: int) -> Target:
        pods = phase.replicas * self._scenario.pods_per_replica
        room = None if phase.fits is None else phase.fits * self._scenario.pods_per_replica
        return Target(pods, phase.replicas, self._generation, pods_seen, deleted, room)

    async def _final_errors(self, phase: LoadPhase, target: Target) -> list[str]:
        """Return the errors of the final check. Statuses are given some time to become current."""
        tracker, scenario = self._tracker, self._scenario
        errors = [str(failure) for failure in self._env.driver.failures()]
        if phase.until == Until.GONE:
            return errors
        errors += final_check.object_errors(
            tracker, scenario.expected(target.replicas), target, coherent=scenario.is_coherent
        )
        if _has_changed_pods(phase, tracker, target):
            created, deleted = len(tracker.pods) - target.pods_seen, tracker.deleted - target.pods_deleted
            errors.append(f"{created} pods were created and {deleted} deleted, none expected")
        if phase.fits is not None:  # waiting replicas are never available
            return errors
        if not errors:

            def has_current_statuses(current_tracker: Tracker) -> bool:
                return not any(final_check.status_errors(current_tracker, target))

            await asyncio.to_thread(
                tracker.wait_until, has_current_statuses, final_check.TIMEOUT_SECONDS, lambda _: None
            )
        return [*errors, *final_check.status_errors(tracker, target)]


def _is_over(phase: LoadPhase, tracker: Tracker, target: Target) -> bool:
    """Return whether a phase is over, or can no longer succeed."""
    return is_over(phase, tracker, target) or _has_changed_pods(phase, tracker, target)


def _has_changed_pods(phase: LoadPhase, tracker: Tracker, target: Target) -> bool:
    """Return whether pods were created or deleted in a phase that must not change any pods."""
    return phase.unchanged and (len(tracker.pods), tracker.deleted) != (target.pods_seen, target.pods_deleted)


def count_replicas(pods: Iterable[Mapping[str, Any]], size: int) -> dict[str, int]:
    """Count the replicas by their bound pods: all pods (`size` per replica), some, or none."""
    bound: Counter[str] = Counter()
    for pod in pods:
        bound[pod["metadata"]["labels"][labels.SET_INDEX]] += "nodeName" in pod["spec"]
    return {
        "whole": sum(count == size for count in bound.values()),
        "torn": sum(0 < count < size for count in bound.values()),
        "waiting": sum(count == 0 for count in bound.values()),
    }


def add_floor_ratios(results: Iterable[dict[str, Any]], floor: dict[str, float]) -> None:
    """Add to each phase its markers as multiples of the raw floor."""
    for result in results:
        result["timesFloor"] = {
            name: round(seconds / floor[floor_name], 3)
            for name, seconds in result["markers"].items()
            if seconds is not None and (floor_name := MARKERS[name].floor) is not None and floor.get(floor_name)
        }


def _observations(phase: LoadPhase, tracker: Tracker, start: float, created: list[PodTimes]) -> dict[str, Any]:
    return {
        "markers": {name: _seconds_from(start, tracker.times.get(name)) for name in markers_of(phase)},
        "podsCreated": len(created),
        "perPod": {f"created-to-{state}": _spread(created, state) for state in STATES},
    }


def _spread(pods: list[PodTimes], state: str) -> dict[str, float]:
    reached_times = [(getattr(times, state), times.created) for times in pods]
    return percentiles([time - created for time, created in reached_times if time is not None])


def _seconds_from(start: float, time: float | None) -> float | None:
    """Return the seconds since the request that started a phase. A record may have a time just before that request."""
    return None if time is None else round(max(0.0, time - start), 3)
