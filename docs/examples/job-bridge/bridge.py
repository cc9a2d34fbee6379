"""Creates a PodGang for each Job with the label `example.com/gang: grove`, for a scheduler that reads Grove's PodGangs.

policy.yaml assigns the Job's pods to that scheduler. This program writes the PodGang that the scheduler waits for: one
PodGroup with all pods of the Job, whose minReplicas is the number of pods that the Job runs in parallel.

    python docs/examples/job-bridge/bridge.py       # reads KUBECONFIG, prints `ready`, runs until it is terminated
"""

from __future__ import annotations

import asyncio
import logging
import os
from datetime import UTC, datetime
from typing import Any

import msgspec

from kube.client import Client
from kube.informer import Informer, typed_decoder
from kube.objects import Key, ObjectMeta
from kube.resource import PODS, Resource
from kube.workqueue import WorkQueue, work

JOBS = Resource("batch", "v1", "jobs", "Job")
PODGANGS = Resource("scheduler.grove.io", "v1alpha1", "podgangs", "PodGang")
WANTED = {"example.com/gang": "grove"}
GANG = "grove.io/podgang"
SETTLE_SECONDS = 0.2  # the pods of a Job are created in bursts: reconcile once per burst

log = logging.getLogger("job-bridge")


class Job(msgspec.Struct):
    """A Job."""

    metadata: ObjectMeta
    spec: dict[str, Any]
    status: dict[str, Any] = {}

    @property
    def at_once(self) -> int:
        """Return the number of pods that the Job still runs in parallel: its parallelism, or fewer near its end."""
        parallelism: int = self.spec["parallelism"]
        completions = self.spec.get("completions")  # without it, the first pod that succeeds ends the Job
        return parallelism if completions is None else min(parallelism, completions - self.status.get("succeeded", 0))


class Pod(msgspec.Struct):
    """A pod with the label of a gang."""

    metadata: ObjectMeta
    status: dict[str, Any]

    @property
    def gang(self) -> Key:
        """Return the namespace and name of the PodGang."""
        return self.metadata.namespace, self.metadata.label(GANG)

    @property
    def live(self) -> bool:
        """Return whether the pod counts as a member of the gang: it has not finished and is not being deleted."""
        return self.metadata.deletion_timestamp is None and self.status["phase"] in ("Pending", "Running")

    def of(self, job: Job) -> bool:
        """Return whether the pod belongs to this Job and not to an earlier Job of the same name."""
        owner = self.metadata.controller
        return owner is not None and owner.uid == job.metadata.uid


def podgang(job: Job, pods: list[str]) -> dict[str, Any]:
    """Return the PodGang of a Job, which is garbage-collected with the Job. `pods` are the names of the Job's live
    pods."""
    namespace, name = job.metadata.key
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job.metadata.uid, "controller": True}
    references = [{"namespace": namespace, "name": pod} for pod in pods]
    return {
        "apiVersion": PODGANGS.api_version,
        "kind": PODGANGS.kind,
        "metadata": {"namespace": namespace, "name": name, "ownerReferences": [owner]},
        "spec": {"podgroups": [{"name": name, "minReplicas": job.at_once, "podReferences": references}]},
    }


def complete() -> dict[str, Any]:
    """Return the initial status of a PodGang, without which the scheduler ignores the PodGang."""
    condition = {"type": "Initialized", "status": "True", "reason": "PodsCreated", "message": "all pods exist"}
    condition["lastTransitionTime"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"phase": "Pending", "conditions": [condition]}


async def policy_applies(client: Client) -> None:
    """Wait until the API server mutates Jobs as policy.yaml specifies: the API server loads policies with a delay."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "any", "image": "any"}]}}
    probe = {"metadata": {"name": "probe", "labels": WANTED}, "spec": {"template": template}}
    while True:
        changed = await client.request("POST", JOBS.path("default"), params={"dryRun": "All"}, body=probe)
        if GANG in msgspec.json.decode(changed)["spec"]["template"]["metadata"].get("labels", {}):
            return
        await asyncio.sleep(0.2)


class Bridge:
    """Keeps one PodGang for each Job."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._queue: WorkQueue[Key] = WorkQueue(settle=SETTLE_SECONDS)
        selector = ",".join("=".join(pair) for pair in WANTED.items())
        self._jobs = Informer(client, JOBS, typed_decoder(Job), label_selector=selector)
        self._pods = Informer(client, PODS, typed_decoder(Pod), label_selector=GANG)
        self._pods.add_index(GANG, lambda pod: ["/".join(pod.gang)])
        self._jobs.add_handler(lambda kind, old, job: self._queue.add(job.metadata.key))
        self._pods.add_handler(self._on_pod)

    def _on_pod(self, kind: str, old: Pod | None, pod: Pod) -> None:
        if kind == "DELETED" or old is None or old.live != pod.live:
            self._queue.add(pod.gang)

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._jobs.run())
            group.create_task(self._pods.run())
            await self._jobs.wait_until_synced()
            await self._pods.wait_until_synced()
            await policy_applies(self._client)
            log.info("ready")
            group.create_task(work(self._queue, self._reconcile, workers=4))

    async def _reconcile(self, key: Key) -> None:
        job = self._jobs.get(*key)
        if job is None or job.metadata.deletion_timestamp is not None:
            return
        pods = sorted(p.metadata.name for p in self._pods.indexed(GANG, "/".join(key)) if p.live and p.of(job))
        if job.at_once < 1 or len(pods) < job.at_once:
            return  # finished, suspended, or not all pods exist yet: the scheduler must not see a partial gang
        response = await self._client.apply(PODGANGS, podgang(job, pods), manager="job-bridge")
        if "status" not in msgspec.json.decode(response):
            await self._client.patch(PODGANGS, *key, {"status": complete()}, subresource="status")


async def main() -> None:
    """Run the bridge until cancelled."""
    async with Client.from_kubeconfig(os.environ["KUBECONFIG"], user_agent="job-bridge") as client:
        await Bridge(client).run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    asyncio.run(main())
