"""`implementation try`: creates one small set on a fresh or existing cluster and reports the progress of the
implementation within a time limit. Nothing is judged."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance.cluster import nodes
from conformance.cluster.chosen_kubeconfig import ChosenKubeconfig
from conformance.cluster.controlplane import Cluster
from conformance.cluster.existing.marks import with_run_label
from conformance.cluster.progress import ProgressReporter
from conformance.cluster.settings import ClusterSettings
from conformance.grove import workloads
from conformance.grove.expected import expected
from conformance.history.query import History, WaitTimeout
from conformance.history.recorder import Recorder
from conformance.history.view import View
from conformance.implementation import deployment, scheduler_names
from conformance.implementation.additions import with_additions
from conformance.implementation.descriptor import Descriptor
from conformance.implementation.driver import ClusterFacts, Driver, NotStarted
from conformance.run.progress_of_set import ProgressLine, progress_lines
from conformance.suite.scenes.api import Api, Loop, NotServed, words
from conformance.suite.session import existing, watched
from conformance.suite.session.occupation import OccupationTerms, occupied
from kube.client import Client
from kube.errors import ApiError

NAMESPACE = "try"
WORKLOAD = "frontend"
NODES = ("dgx-h100", 2)
"""Profile and number of the nodes. They have room for the pods of any small workload."""


@dataclass(frozen=True)
class SetProgress:
    """The progress of a set. `log_tail` is the end of the judged processes' logs, if something is missing."""

    lines: list[ProgressLine]
    log_tail: str = ""

    @property
    def complete(self) -> bool:
        """Return whether everything that should exist does."""
        return not any(line.unmet for line in self.lines)


@dataclass(frozen=True)
class _TrialEnvironment:
    """The environment in which a set is tried: a cluster, a namespace, and a node pool (empty for all nodes)."""

    facts: ClusterFacts
    namespace: str = NAMESPACE
    pool: str = ""


def run_trial(
    judged: Descriptor,
    supplied: Descriptor | None,
    timeout: float,
    report: ProgressReporter,
    *,
    workload: str = WORKLOAD,
    existing_cluster: ChosenKubeconfig | None = None,
) -> SetProgress:
    """Start an implementation on a new cluster, or on `existing_cluster`, create a set, and watch it until all objects
    exist or `timeout` seconds have passed. Only CRDs on an existing cluster are left behind. Raises UsageError if the
    cluster cannot be used, or HarnessError if a component of the suite fails."""
    with ExitStack() as stack:
        environment = (
            _new_cluster(judged, supplied, report, stack)
            if existing_cluster is None
            else _existing_cluster(judged, supplied, existing_cluster, report, stack)
        )
        driver = Driver(judged, environment.facts, supplied)
        stack.callback(driver.stop)
        report(judged.name, "installing what it needs")
        driver.install()
        report(judged.name, "starting")
        try:
            driver.start()
        except NotStarted as error:
            if error.role not in judged.roles:
                raise
            return SetProgress(
                [ProgressLine("its processes start", with_kept_logs(str(error), driver.logs().values()))]
            )
        report(judged.name, f"creating the set {workload}")
        return _observe_set(environment, driver, workload, timeout, stack)


def with_kept_logs(text: str, logs: Iterable[Path]) -> str:
    """Copy the logs that are mentioned in a text, and return the text with the paths of the copies: the logs themselves
    are deleted with the cluster."""
    mentioned_logs = [log for log in logs if str(log) in text and log.exists()]
    if not mentioned_logs:
        return text
    folder = Path(tempfile.mkdtemp(prefix="grove-conformance-try-"))
    for log in mentioned_logs:
        text = text.replace(str(log), str(shutil.copy(log, folder / log.name)))
    return text


def _new_cluster(
    judged: Descriptor, supplied: Descriptor | None, report: ProgressReporter, stack: ExitStack
) -> _TrialEnvironment:
    settings = ClusterSettings(scheduler_name=scheduler_names.kube_scheduler_name(judged, supplied))
    cluster = Cluster.up(f"try-{secrets.token_hex(3)}", settings=settings, owner=True, report=report)
    stack.callback(cluster.down)
    environment = _TrialEnvironment(deployment.facts_of(cluster))
    asyncio.run(_create_nodes(environment))
    return environment


def _existing_cluster(
    judged: Descriptor,
    supplied: Descriptor | None,
    existing_cluster: ChosenKubeconfig,
    report: ProgressReporter,
    stack: ExitStack,
) -> _TrialEnvironment:
    """Reserve an existing cluster. Objects that are created there have a label and are deleted at the end."""
    name = f"try-{secrets.token_hex(3)}"
    existing.require_usable(existing_cluster.path)
    scheduler = judged.scheduler_name if scheduler_names.suite_starts_scheduler(judged, supplied) else ""
    report(judged.name, "looking at the existing cluster")
    stack.enter_context(
        occupied(existing_cluster.path, OccupationTerms(name, existing_cluster.options, scheduler), report)
    )
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="grove-conformance-")))
    environment = _TrialEnvironment(existing.facts(existing_cluster.path, folder, name, stack), name, name)
    asyncio.run(_create_nodes(environment))
    return environment


async def _create_nodes(environment: _TrialEnvironment) -> None:
    async with Client.from_kubeconfig(environment.facts.kubeconfig, user_agent="grove-conformance") as client:
        await nodes.create_schedulable_nodes(
            client, [with_run_label(node, environment.facts.run) for node in nodes.manifests(*NODES, environment.pool)]
        )


def _observe_set(
    environment: _TrialEnvironment, driver: Driver, workload: str, timeout: float, stack: ExitStack
) -> SetProgress:
    loop = Loop()
    stack.callback(loop.close)
    kubeconfig = environment.facts.kubeconfig
    api = Api(loop, kubeconfig, "grove-conformance/try", run=environment.facts.run)
    stack.callback(api.close)
    recorder = Recorder(kubeconfig, "grove-conformance/recorder", watched.resources(driver.descriptor, api))
    stack.callback(recorder.stop)
    recorder.start()
    recorder.open(environment.namespace)
    manifest = with_additions(driver.descriptor, dict(workloads.load(workload)))
    manifest["metadata"] = {**manifest["metadata"], "namespace": environment.namespace}
    if environment.pool:
        nodes.restrict_to_pool(environment.pool, manifest)
    acceptance = f"the PodCliqueSet {manifest['metadata']['name']} is accepted"
    try:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": environment.namespace}})
        api.create(manifest)
    except (ApiError, NotServed) as error:
        return SetProgress([ProgressLine(acceptance, words(error))], driver.last_log_lines())
    lines = _wait_until_complete(History(recorder, environment.namespace), driver, manifest, timeout)
    is_incomplete = any(line.unmet for line in lines)
    failures = [str(failure) for failure in driver.failures()] if is_incomplete else []
    log_tail = "; ".join(failures) or driver.last_log_lines() if is_incomplete else ""
    return SetProgress([ProgressLine(acceptance), *lines], log_tail)


def _wait_until_complete(
    history: History, driver: Driver, manifest: Mapping[str, Any], timeout: float
) -> list[ProgressLine]:
    objects, name = expected(manifest), str(manifest["metadata"]["name"])
    replicas = int(manifest["spec"].get("replicas", 1))

    def is_complete(view: View) -> bool:
        return not any(line.unmet for line in progress_lines(view, name, replicas, objects))

    with contextlib.suppress(WaitTimeout):
        history.wait("everything is there", is_complete, timeout, is_hopeless=driver.failures)
    return progress_lines(history.view(), name, replicas, objects)
