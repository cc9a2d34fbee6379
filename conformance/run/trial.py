"""`implementation try`: one small set on a fresh cluster, and what came of it within seconds. It judges nothing."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from conformance.cluster import nodes
from conformance.cluster.controlplane import Cluster
from conformance.cluster.progress import Report
from conformance.cluster.settings import ClusterSettings
from conformance.grove import workloads
from conformance.grove.expected import expected
from conformance.history.query import History, WaitTimeout
from conformance.history.recorder import Recorder
from conformance.history.view import View
from conformance.implementation import deployment, scheduler_names
from conformance.implementation.additions import with_additions
from conformance.implementation.descriptor import Descriptor
from conformance.implementation.driver import Driver, NotStarted
from conformance.run.progress_of_set import Line, lines
from conformance.suite.scenes.api import Api, Loop, NotServed, words
from conformance.suite.session import watched
from kube.client import Client
from kube.errors import ApiError

NAMESPACE = "try"
WORKLOAD = "frontend"
NODES = ("dgx-h100", 2)
"""Profile and number of the nodes, which hold the pods of any small workload."""


@dataclass(frozen=True)
class Outcome:
    """What there is of a set. `last_words`: how the logs of the judged processes end, if something is missing."""

    lines: list[Line]
    last_words: str = ""

    @property
    def complete(self) -> bool:
        """Return whether everything is there that should be."""
        return not any(line.unmet for line in self.lines)


def attempt(
    judged: Descriptor, supplied: Descriptor | None, within: float, report: Report, *, workload: str = WORKLOAD
) -> Outcome:
    """Start an implementation on a cluster of its own, create a set, and watch it until everything is there or `within`
    seconds are over. Nothing is left behind. Raises UsageError, HarnessError."""
    with ExitStack() as stack:
        cluster = _cluster(judged, supplied, report, stack)
        driver = Driver(judged, deployment.facts_of(cluster), supplied)
        stack.callback(driver.stop)
        report(judged.name, "installing what it needs")
        driver.install()
        report(judged.name, "starting")
        try:
            driver.start()
        except NotStarted as error:
            if error.role not in judged.roles:
                raise
            return Outcome([Line("its processes start", str(error))])
        report(judged.name, f"creating the set {workload}")
        return _watch(cluster, driver, workload, within, stack)


def _cluster(judged: Descriptor, supplied: Descriptor | None, report: Report, stack: ExitStack) -> Cluster:
    settings = ClusterSettings(scheduler_name=scheduler_names.kube_scheduler(judged, supplied))
    cluster = Cluster.up(f"try-{secrets.token_hex(3)}", settings=settings, owner=True, report=report)
    stack.callback(cluster.down)
    asyncio.run(_make_nodes(cluster))
    return cluster


async def _make_nodes(cluster: Cluster) -> None:
    async with Client.from_kubeconfig(cluster.kubeconfig, user_agent="grove-conformance") as client:
        wanted = nodes.manifests(*NODES)
        await nodes.create_nodes(client, wanted)
        await nodes.wait_until_schedulable(client, (node["metadata"]["name"] for node in wanted))


def _watch(cluster: Cluster, driver: Driver, workload: str, within: float, stack: ExitStack) -> Outcome:
    loop = Loop()
    stack.callback(loop.close)
    api = Api(loop, cluster.kubeconfig, "grove-conformance/try")
    stack.callback(api.close)
    recorder = Recorder(cluster.kubeconfig, "grove-conformance/recorder", watched.resources(driver.descriptor, api))
    stack.callback(recorder.stop)
    recorder.start()
    recorder.open(NAMESPACE)
    manifest = with_additions(driver.descriptor, dict(workloads.load(workload)))
    manifest["metadata"] = {**manifest["metadata"], "namespace": NAMESPACE}
    accepted = f"the PodCliqueSet {manifest['metadata']['name']} is accepted"
    try:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        api.create(manifest)
    except (ApiError, NotServed) as error:
        return Outcome([Line(accepted, words(error))], driver.last_words())
    found = _until_complete(History(recorder, NAMESPACE), driver, manifest, within)
    incomplete = any(line.unmet for line in found)
    deaths = [str(failure) for failure in driver.failures()] if incomplete else []
    last_words = "; ".join(deaths) or driver.last_words() if incomplete else ""
    return Outcome([Line(accepted), *found], last_words)


def _until_complete(history: History, driver: Driver, manifest: Mapping[str, Any], within: float) -> list[Line]:
    wanted, name = expected(manifest), str(manifest["metadata"]["name"])
    replicas = int(manifest["spec"].get("replicas", 1))

    def complete(view: View) -> bool:
        return not any(line.unmet for line in lines(view, name, replicas, wanted))

    with contextlib.suppress(WaitTimeout):
        history.wait("everything is there", complete, within, hopeless=driver.failures)
    return lines(history.view(), name, replicas, wanted)
