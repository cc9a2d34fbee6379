"""A role that is played by a Deployment in the cluster. The role is ready when the Deployment is available, is stopped
by scaling, and its logs and restarts are read through the API."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import orjson
from tenacity import AsyncRetrying, RetryError, retry_if_not_result, stop_after_delay, wait_fixed

from conformance.errors import HarnessError
from conformance.implementation.descriptor import Descriptor, Role
from conformance.implementation.output import TAIL_PREFIX, Output
from conformance.implementation.process import ProcessExit
from conformance.implementation.release import AGENT, Release
from conformance.implementation.role_process import NotStarted, ProcessFailure
from conformance.implementation.values import Values
from kube import errors
from kube.client import Client
from kube.errors import ApiError
from kube.resource import PODS, Resource

DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
DELETION_SECONDS = 60.0
"""Seconds within which pods must be gone after a scale to zero. The default grace period of pods is 30 s."""

Object = dict[str, Any]
T = TypeVar("T")


class DeployedRole:
    """A role that is played by a Deployment of `release`. Failures are added to `failures`."""

    def __init__(
        self, role: Role, descriptor: Descriptor, release: Release, values: Values, failures: list[ProcessFailure]
    ) -> None:
        self.role, self.name = role, str(role)
        self._release, self._values, self._failures = release, values, failures
        self._replicas = 1
        """The number of replicas that the Deployment has while the role is not stopped."""
        self._restarts: dict[str, int] = {}
        """The number of recorded restarts of each container, by the uid of the pod and the name of the container."""
        self._bytes_read: dict[str, int] = {}
        """The number of bytes of each container's log that have been read, by the same keys."""
        self._output: Output | None = None
        """The log lines that have been read; None before the first line."""
        self.assign(descriptor)

    def assign(self, descriptor: Descriptor) -> None:
        """Assign another version to the role. `start` deploys it."""
        self.descriptor = descriptor
        self._deployment = descriptor.deployments[self.role]

    def start(self) -> None:
        """Deploy the role, restore its scale, and return when the Deployment is available. Raises NotStarted if the
        Deployment cannot be created or does not become available."""
        try:
            self._release.apply(self.descriptor)
            self._run(self._start)
        except NotStarted:
            raise
        except (HarnessError, ApiError) as error:  # the API server rejects a manifest, for example
            raise NotStarted(self.role, "", self.descriptor.name, f"cannot be deployed: {error}") from error

    def stop(self) -> None:
        """Scale to zero, and return when the pods are gone."""
        self._scale_to_zero(grace=None)

    def kill(self) -> None:
        """Delete the pods without a grace period, then scale to zero. In the opposite order, the ReplicaSet controller
        might first end the pods gracefully. A pod that the ReplicaSet controller creates in between may live for a
        moment."""
        self._scale_to_zero(grace=0)

    @property
    def is_alive(self) -> bool:
        """Return whether this version is deployed and at least one of its pods is available."""
        return self._release.deployed_version is self.descriptor and self._run(self._is_available)

    @property
    def pids(self) -> dict[str, int]:
        """Return an empty mapping: the role has no known processes on this machine."""
        return {}

    @property
    def logs(self) -> list[str]:
        """Bring the log up to date and return its name."""
        self._run(self._collect_logs)
        return [self.name]

    def last_log_lines(self, lines: int) -> str:
        """Return the last lines of the role's log as one line of text."""
        self._run(self._collect_logs)
        log_lines = self._log_lines(lines)
        return f"the {self.role} is deployed, and its {TAIL_PREFIX}{log_lines}" if log_lines else ""

    def close(self) -> None:
        """Do nothing: `Release.remove` removes the Deployment."""

    def detach(self) -> None:
        """Do nothing: deployed objects outlive this process anyway."""

    def record_failures(self) -> None:
        """Record each restart of a container as a failure, because the container ended by itself."""
        self._run(self._record_restarts)

    # -- details -------------------------------------------------------------------------------------------------

    @property
    def _title(self) -> str:
        return f"Deployment {self._deployment.namespace}/{self._deployment.name}"

    def _run(self, action: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        async def call() -> T:
            async with Client.from_kubeconfig(self._values.cluster.kubeconfig, user_agent=AGENT) as client:
                return await action(client)

        try:
            return asyncio.run(call())
        except errors.REQUEST_FAILED as error:
            raise HarnessError(f"the {self._title} cannot be reached: {error or type(error).__name__}") from error

    async def _get(self, client: Client) -> Object | None:
        content = await client.get_or_none(DEPLOYMENTS, self._deployment.namespace, self._deployment.name)
        return None if content is None else orjson.loads(content)

    async def _pods(self, client: Client) -> list[Object]:
        deployment = await self._get(client)
        labels = ((deployment or {}).get("spec", {}).get("selector", {}).get("matchLabels")) or {}
        if not labels:
            return []
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        return await client.list(PODS, self._deployment.namespace, selector=selector)

    async def _start(self, client: Client) -> None:
        deployment = await self._get(client)
        if deployment is None:
            raise self._not_started(
                f"is not played: there is no {self._title}, which install.{self.descriptor.start} should make"
            )
        if deployment["spec"].get("replicas", 1) == 0:
            await self._scale(client, self._replicas)

        async def is_available() -> bool:
            return not await self._unavailability(client)

        try:
            await _poll_until(is_available, self._deployment.within)
        except RetryError:
            problems = "; ".join([await self._unavailability(client), *map(_complaint, await self._pods(client))])
            await self._collect_logs(client)
            problem = f"is not ready after {self._deployment.within:g} s: {problems}{self._log_tail()}"
            raise self._not_started(problem, timed_out=True) from None
        for pod in await self._pods(client):  # restarts before the role is ready do not count as failures
            self._restarts |= {key: count for key, count, _ in _containers(pod)}

    async def _unavailability(self, client: Client) -> str:
        """Return the reason why the Deployment is not available or still has old pods; an empty string if it is
        available without old pods."""
        deployment = await self._get(client)
        if deployment is None:
            return f"there is no {self._title}"
        status, desired = deployment.get("status", {}), deployment["spec"].get("replicas", 1)
        if status.get("observedGeneration", 0) < deployment["metadata"]["generation"]:
            return f"the {self._title} is not observed yet"
        counts = {name: status.get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")}
        differences = [f"{name} is {count}" for name, count in counts.items() if count != desired]
        return f"of {desired} replicas of the {self._title}, {', '.join(differences)}" if differences else ""

    async def _is_available(self, client: Client) -> bool:
        deployment = await self._get(client)
        return bool(
            deployment
            and deployment["spec"].get("replicas", 1)
            and deployment.get("status", {}).get("availableReplicas")
        )

    def _scale_to_zero(self, grace: int | None) -> None:
        async def scale_down(client: Client) -> None:
            deployment = await self._get(client)
            if deployment is None:
                return
            await self._record_restarts(client)
            await self._collect_logs(client)
            self._replicas = deployment["spec"].get("replicas", 1) or self._replicas

            async def all_deleted() -> bool:
                pods = await self._pods(client)
                for pod in pods if grace is not None else ():
                    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
                    await client.delete(PODS, self._deployment.namespace, name, uid=uid, grace_seconds=grace)
                return not pods

            await all_deleted()
            await self._scale(client, 0)
            try:
                await _poll_until(all_deleted, DELETION_SECONDS)
            except RetryError:
                raise HarnessError(
                    f"pods of the {self._title} are still there {DELETION_SECONDS:g} s after its end"
                ) from None

        self._run(scale_down)

    async def _scale(self, client: Client, replicas: int) -> None:
        body = {"spec": {"replicas": replicas}}
        await client.patch(DEPLOYMENTS, self._deployment.namespace, self._deployment.name, body)

    async def _record_restarts(self, client: Client) -> None:
        for pod in await self._pods(client):
            for key, count, code in _containers(pod):
                if count > self._restarts.get(key, 0):
                    await self._collect_logs(client)
                    container_exit = ProcessExit(code, time.monotonic())
                    message = f"its container was restarted{self._log_tail()}"
                    self._failures.append(ProcessFailure(self.role, "", self.descriptor.name, container_exit, message))
                self._restarts[key] = count

    async def _collect_logs(self, client: Client) -> None:
        """Append to the log what the containers have written since the last call. On a cluster whose nodes keep no
        logs, nothing is appended."""
        for pod in await self._pods(client):
            for key, _, _ in _containers(pod):
                container = key.partition("/")[2]
                path = PODS.path(self._deployment.namespace, pod["metadata"]["name"], "log")
                try:
                    text = await client.request("GET", path, params={"container": container})
                except ApiError:
                    continue
                new_text = text[self._bytes_read.get(key, 0) :] if len(text) >= self._bytes_read.get(key, 0) else text
                self._bytes_read[key] = len(text)
                log = self._values.log(self.name)
                log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with log.open("ab") as file:
                    self._output = self._output or Output(log)
                    file.write(new_text)

    def _log_lines(self, lines: int = 3) -> str:
        return " | ".join(self._output.last_lines(lines)) if self._output is not None else ""

    def _log_tail(self) -> str:
        lines = self._log_lines()
        return f"; its {TAIL_PREFIX}{lines}" if lines else ""

    def _not_started(self, reason: str, *, timed_out: bool = False) -> NotStarted:
        return NotStarted(self.role, "", self.descriptor.name, reason, timed_out=timed_out)


async def _poll_until(condition: Callable[[], Coroutine[Any, Any, bool]], timeout: float) -> None:
    """Poll until `condition` returns True. Raises RetryError after `timeout` seconds."""
    await AsyncRetrying(retry=retry_if_not_result(bool), wait=wait_fixed(0.2), stop=stop_after_delay(timeout))(
        condition
    )


def _containers(pod: Object) -> list[tuple[str, int, int]]:
    """Return a key, the number of restarts and the last exit code for each container in the pod's status. The code is
    given as in `ProcessExit`: a container that was ended by a signal has the status code 128 plus the signal's
    number."""
    result = []
    for status in pod.get("status", {}).get("containerStatuses") or []:
        code = ((status.get("lastState") or {}).get("terminated") or {}).get("exitCode", 0)
        code = 128 - code if code > 128 else code
        result.append((f"{pod['metadata']['uid']}/{status['name']}", status.get("restartCount", 0), code))
    return result


def _complaint(pod: Object) -> str:
    """Return the reason why a pod is not Ready, according to its status."""
    for status in pod.get("status", {}).get("containerStatuses") or []:
        if waiting_state := (status.get("state") or {}).get("waiting"):
            complaint = " ".join(filter(None, (waiting_state.get("reason"), waiting_state.get("message"))))
            return f"pod {pod['metadata']['name']}: {complaint}"
    phase = pod.get("status", {}).get("phase", "Pending")
    return f"pod {pod['metadata']['name']} is {phase}"
