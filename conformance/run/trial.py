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
from conformance.cluster.chosen_kubeconfig import Chosen
from conformance.cluster.controlplane import Cluster
from conformance.cluster.existing.marks import marked
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
from conformance.run.progress_of_set import ProgressLine, lines
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
    """The progress of a set. `last_words` is the end of the judged processes' logs, if something is missing."""

    lines: list[ProgressLine]
    last_words: str = ""

    @property
    def complete(self) -> bool:
        """Return whether everything that should exist does."""
        return not any(line.unmet for line in self.lines)


@dataclass(frozen=True)
class _Place:
    """The environment in which a set is tried: a cluster, a namespace, and a node pool (empty for all nodes)."""

    facts: ClusterFacts
    namespace: str = NAMESPACE
    pool: str = ""


def attempt(
    judged: Descriptor,
    supplied: Descriptor | None,
    within: float,
    report: ProgressReporter,
    *,
    workload: str = WORKLOAD,
    on: Chosen | None = None,
) -> SetProgress:
    """Start an implementation on a new cluster, or on the existing cluster `on`, create a set, and watch it until
    everything is there or `within` seconds have passed. Only CRDs on an existing cluster are left behind. Raises
    UsageError, HarnessError."""
    with ExitStack() as stack:
        place = (
            _new_cluster(judged, supplied, report, stack)
            if on is None
            else _existing(judged, supplied, on, report, stack)
        )
        driver = Driver(judged, place.facts, supplied)
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
        return _watch(place, driver, workload, within, stack)


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


def _new_cluster(judged: Descriptor, supplied: Descriptor | None, report: ProgressReporter, stack: ExitStack) -> _Place:
    settings = ClusterSettings(scheduler_name=scheduler_names.kube_scheduler(judged, supplied))
    cluster = Cluster.up(f"try-{secrets.token_hex(3)}", settings=settings, owner=True, report=report)
    stack.callback(cluster.down)
    place = _Place(deployment.facts_of(cluster))
    asyncio.run(_make_nodes(place))
    return place


def _existing(
    judged: Descriptor, supplied: Descriptor | None, on: Chosen, report: ProgressReporter, stack: ExitStack
) -> _Place:
    """Reserve an existing cluster. Objects that are created there have a label and are deleted at the end."""
    name = f"try-{secrets.token_hex(3)}"
    existing.require_usable(on.path)
    scheduler = judged.scheduler_name if scheduler_names.started(judged, supplied) else ""
    report(judged.name, "looking at the existing cluster")
    stack.enter_context(occupied(on.path, OccupationTerms(name, on.options, scheduler), report))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="grove-conformance-")))
    place = _Place(existing.facts(on.path, folder, name, stack), name, name)
    asyncio.run(_make_nodes(place))
    return place


async def _make_nodes(place: _Place) -> None:
    async with Client.from_kubeconfig(place.facts.kubeconfig, user_agent="grove-conformance") as client:
        await nodes.provide(client, [marked(node, place.facts.run) for node in nodes.manifests(*NODES, place.pool)])


def _watch(place: _Place, driver: Driver, workload: str, within: float, stack: ExitStack) -> SetProgress:
    loop = Loop()
    stack.callback(loop.close)
    kubeconfig = place.facts.kubeconfig
    api = Api(loop, kubeconfig, "grove-conformance/try", run=place.facts.run)
    stack.callback(api.close)
    recorder = Recorder(kubeconfig, "grove-conformance/recorder", watched.resources(driver.descriptor, api))
    stack.callback(recorder.stop)
    recorder.start()
    recorder.open(place.namespace)
    manifest = with_additions(driver.descriptor, dict(workloads.load(workload)))
    manifest["metadata"] = {**manifest["metadata"], "namespace": place.namespace}
    if place.pool:
        nodes.bind_to(place.pool, manifest)
    acceptance = f"the PodCliqueSet {manifest['metadata']['name']} is accepted"
    try:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place.namespace}})
        api.create(manifest)
    except (ApiError, NotServed) as error:
        return SetProgress([ProgressLine(acceptance, words(error))], driver.last_words())
    lines = _until_complete(History(recorder, place.namespace), driver, manifest, within)
    incomplete = any(line.unmet for line in lines)
    failures = [str(failure) for failure in driver.failures()] if incomplete else []
    last_words = "; ".join(failures) or driver.last_words() if incomplete else ""
    return SetProgress([ProgressLine(acceptance), *lines], last_words)


def _until_complete(history: History, driver: Driver, manifest: Mapping[str, Any], within: float) -> list[ProgressLine]:
    objects, name = expected(manifest), str(manifest["metadata"]["name"])
    replicas = int(manifest["spec"].get("replicas", 1))

    def complete(view: View) -> bool:
        return not any(line.unmet for line in lines(view, name, replicas, objects))

    with contextlib.suppress(WaitTimeout):
        history.wait("everything is there", complete, within, is_hopeless=driver.failures)
    return lines(history.view(), name, replicas, objects)
