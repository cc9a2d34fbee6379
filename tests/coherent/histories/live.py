"""Generated histories on a real control plane: many small sets at once, each in its own namespace.

The reference runs as users run it: as processes, with its webhooks. One operator serves all sets, so a restart affects
all of them. The suite's invariants judge the recorded events.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from queue import Queue
from typing import Any

from tenacity import retry, retry_if_exception_message, retry_if_exception_type, stop_after_delay, wait_fixed

from conformance import invariants
from conformance.cluster import nodes
from conformance.cluster.controlplane import Cluster
from conformance.errors import HarnessError
from conformance.grove import pods, updates
from conformance.grove.coherent.model import Layout
from conformance.grove.fields import name, number, terminating, text, uid
from conformance.grove.kinds import PODGANGMAPS
from conformance.history.query import History, Unmet, WaitTimeout
from conformance.history.record import ADDED
from conformance.history.recorder import WATCHED, Recorder, Watched
from conformance.history.view import View
from conformance.implementation import deployment, loading
from conformance.implementation.descriptor import Role
from conformance.implementation.driver import Driver
from conformance.suite.scenes.api import Api, Loop
from conformance.tests.coherent import sets
from kube.errors import ApiError
from kube.resource import PODS
from tests.coherent.histories import reproduction
from tests.coherent.histories.collector import Collector
from tests.coherent.histories.drawing import FOLDER
from tests.coherent.histories.model import (
    COHERENT,
    INVARIANTS,
    ON_DELETE,
    Action,
    Change,
    FailNode,
    GeneratedHistory,
    LosePod,
    PauseCollector,
    Proceed,
    Replace,
    Restart,
    Revert,
    Scale,
    Settle,
    Switch,
)
from tests.coherent.histories.reproduction import SET

log = logging.getLogger(__name__)
RECORDINGS = FOLDER / "recordings"
"""The folder for the watch events of failing histories, because a failure that depends on timing may not happen
again."""
NODES, SETS = 2, "podcliquesets"
STEP_SECONDS, REST_SECONDS, WAIT = 4.0, 5.5, float(os.environ.get("WAIT", "120"))
"""Seconds that a sub-step may take, that nothing may change at the end, and that an update may take: more on a busy
machine."""
STOP_INTERVAL = 30.0
"""Seconds for which a request is retried while the webhooks are unavailable."""


class Stage:
    """A cluster that runs the reference, with lanes for histories that run at the same time."""

    def __init__(self, driver: Driver, recorder: Recorder, api: Api, collector: Collector, lanes: int) -> None:
        self.recorder, self.api, self.collector, self._driver = recorder, api, collector, driver
        self.served = threading.Lock()
        """Held while the operator is restarted, and by requests that need its webhooks."""
        self._restarts, self._numbers = 0, iter(range(1_000_000))
        self._lanes: Queue[str] = Queue()
        for lane in range(lanes):
            pool = f"lane-{lane}"
            api.create_all(api.of_plural("nodes"), nodes.manifests("tiny", NODES, pool))
            self._lanes.put(pool)

    def restart(self) -> None:
        """Kill the operator and start it again, unless another lane is just doing so."""
        restarts = self._restarts
        with self.served:
            if self._restarts == restarts:
                self._driver.kill(Role.OPERATOR)
                self._driver.restart(Role.OPERATOR)
                self._restarts += 1

    def play(self, history: GeneratedHistory) -> list[str]:
        """Run one history on the next free lane; return its problems."""
        pool, started_at = self._lanes.get(), time.monotonic()
        try:
            run = _Play(self, history, f"history-{next(self._numbers)}", pool)
            wrong = run.run()
            log.info("%s: %s, %.0f s", run.namespace, wrong or "nothing wrong", time.monotonic() - started_at)
            if wrong:
                RECORDINGS.mkdir(parents=True, exist_ok=True)
                run.events.save(RECORDINGS / f"{run.namespace}.jsonl")
            return wrong
        finally:
            self._lanes.put(pool)

    def play_all(self, histories: Sequence[GeneratedHistory]) -> list[list[str]]:
        """Run histories in parallel; return the problems of each."""
        with ThreadPoolExecutor(max(1, self._lanes.qsize())) as pool:
            return list(pool.map(self.play, histories))


@contextmanager
def stage(lanes: int, mutant: str = "") -> Iterator[Stage]:
    """Start a new cluster with the reference on it, or with a mutant of the reference."""
    with ExitStack() as stack:
        cluster = Cluster.up(f"histories-{threading.get_native_id()}", owner=True)
        stack.callback(cluster.down)
        driver = stack.enter_context(
            Driver(loading.load("reference", {"mutant": mutant}), deployment.facts_of(cluster))
        )
        driver.install()
        cluster.learn_new_kinds()
        driver.start()
        recorder = Recorder(cluster.kubeconfig, "histories-recorder", (*WATCHED, Watched(PODGANGMAPS)))
        recorder.start()
        stack.callback(recorder.stop)
        loop = Loop()
        stack.callback(loop.close)
        api = Api(loop, cluster.kubeconfig, "histories")
        stack.callback(api.close)
        collector = Collector(cluster)
        stack.callback(collector.close)
        yield Stage(driver, recorder, api, collector, lanes)


class _Play:
    def __init__(self, on: Stage, history: GeneratedHistory, namespace: str, pool: str) -> None:
        self.on, self.history, self.namespace, self.pool = on, history, namespace, pool
        self.versions = self._last = reproduction.first_versions(history)
        self.events = History(on.recorder, namespace)
        self.wrong: list[str] = []
        self.strategy, self._keeps_old = history.strategy, history.strategy == ON_DELETE
        """`_keeps_old`: whether OnDelete may have left pods of old versions."""

    def run(self) -> list[str]:
        api = self.on.api
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        try:
            self._account()
            self._play()
            return self.wrong
        except WaitTimeout as error:
            phases = Counter(map(pods.phase, self.events.view().list("pods")))
            unmet = f"{error.unmet}; pods: {dict(phases)}"
            return [*self.wrong, f"{error.description}: not seen within {error.timeout:.0f} s; {unmet}"]
        except (ApiError, HarnessError) as error:
            return [*self.wrong, f"{type(error).__name__}: {error}"]
        finally:
            api.delete("namespaces", None, [self.namespace])

    @retry(retry=retry_if_exception_type(ApiError), wait=wait_fixed(0.2), stop=stop_after_delay(WAIT), reraise=True)
    def _account(self) -> None:
        """Wait for the namespace's default ServiceAccount, which is not created while the garbage collector is
        suspended."""
        self.on.api.get("serviceaccounts", self.namespace, "default")

    def _play(self) -> None:
        workload = reproduction.manifest(self.history)
        workload["metadata"]["namespace"] = self.namespace
        workload["spec"]["template"]["cliques"] = self._cliques()
        self._retried(lambda: self.on.api.create(workload))
        self.events.wait("the set is deployed", sets.deployed(SET, self.history.replicas), WAIT)
        self.events.wait("the set has a PodGangMap", lambda view: bool(sets.layout(view, SET)), WAIT)
        for action in self.history.actions:
            self.versions, self._last = reproduction.after(self.versions, self._last, action)
            self._act(action)
        self.versions, self._keeps_old = reproduction.mended(self.history, self.versions), False
        self._patch({"updateStrategy": {"type": COHERENT}, "template": {"cliques": self._cliques()}})
        self.events.wait("the set is updated and at rest", self._at_rest, WAIT)
        self.events.quiet(REST_SECONDS, WAIT)
        self.wrong += self._judged()

    def _act(self, action: Action) -> None:
        match action:
            case Change() | Revert():
                self._patch({"template": {"cliques": self._cliques()}})
            case Scale(part=part, replicas=replicas):
                self._scale(part, replicas)
            case LosePod(number=index):
                current_pods = self._pods()
                if current_pods:
                    self._lose([current_pods[index % len(current_pods)]])
            case FailNode():
                self._fail_node()
            case Restart():
                self.on.restart()
            case Switch(strategy=strategy):
                self.strategy = strategy
                self._keeps_old |= strategy == ON_DELETE
                self._patch({"updateStrategy": {"type": strategy}})
            case Proceed(steps=steps):
                self._proceed(steps)
            case PauseCollector():
                self.on.collector.pause()
            case Replace(pods=count):
                self._replace(count)
            case Settle():
                if all(works for _, works in self.versions.values()):
                    self.events.wait("the set is at rest", self._at_rest, WAIT)
                elif due := reproduction.due(self.history, self.strategy, self.versions):
                    self.events.wait("parts that work are updated", lambda view: self._rolled(view, due), WAIT)

    # -- acts ------------------------------------------------------------------------------------------------------

    def _cliques(self) -> list[dict[str, Any]]:
        cliques = reproduction.cliques(self.history, self.versions)
        for clique in cliques:
            pod = clique["spec"]["podSpec"]
            pod["nodeSelector"], pod["tolerations"] = {nodes.POOL: self.pool}, [nodes.toleration(self.pool)]
        return cliques

    def _patch(self, spec: Mapping[str, Any]) -> None:
        self._retried(lambda: self.on.api.patch(SETS, self.namespace, SET, {"spec": spec}))

    @retry(
        retry=retry_if_exception_message(match="(?s).*failed calling webhook"),
        wait=wait_fixed(0.2),
        stop=stop_after_delay(STOP_INTERVAL),
        reraise=True,
    )
    def _retried(self, ask: Callable[[], object]) -> None:
        """Send a request, and retry it while the operator, which serves the webhooks, is being restarted."""
        ask()

    def _scale(self, part: str, replicas: int) -> None:
        """Scale a part of the first replica of the set. The request must be rejected if and only if an update is
        running."""
        resource = sets.GROUPS if self.history.part(part).group else sets.CLIQUES
        with self.on.served:
            before = self._set()
            try:
                body = {"spec": {"replicas": replicas}}
                old = self.on.api.patch(resource, self.namespace, f"{SET}-0-{part}", {})
                self.on.api.patch(resource, self.namespace, f"{SET}-0-{part}", body, "scale")
                refused = ""
            except ApiError as error:
                refused = str(error)
            after = self._set()
        if number(old, "spec", "replicas") == replicas or updates.started(before) != updates.started(after):
            return
        running = [_blocked(pcs) for pcs in (before, after)]
        if all(running) and not refused:
            self.wrong.append(f"{part} is scaled to {replicas}, although an update is running")
        if not any(running) and refused:
            self.wrong.append(f"{part} is not scaled to {replicas}, although no update is running: {refused}")

    def _set(self) -> dict[str, Any]:
        return self.on.api.get(SETS, self.namespace, SET)

    def _pods(self) -> list[dict[str, Any]]:
        """Return the pods that are not being deleted, sorted by name."""
        all_pods = self.on.api.work(lambda client: client.list(PODS, self.namespace))
        return sorted((pod for pod in all_pods if not terminating(pod)), key=name)

    def _lose(self, lost: Sequence[Mapping[str, Any]]) -> None:
        self.events.origins.excused |= {uid(pod) for pod in lost}
        self.on.api.delete("pods", self.namespace, [name(pod) for pod in lost])

    def _fail_node(self) -> None:
        """Delete all pods on the lane's first node, which is cordoned meanwhile and then uncordoned."""
        first, *_ = nodes.manifests("tiny", NODES, self.pool)
        target = first["metadata"]["name"]
        self.on.api.patch("nodes", None, target, {"spec": {"unschedulable": True}})
        self._lose([pod for pod in self._pods() if text(pod, "spec", "nodeName") == target])
        self.on.api.patch("nodes", None, target, {"spec": {"unschedulable": None}})

    def _replace(self, pods: int) -> None:
        """Wait until `pods` more pods have been created or the set is at rest, but at most `STEP_SECONDS`."""
        start = self.events.mark()

        def created(view: View) -> bool:
            count = sum(record.kind == ADDED for record in self.events.records("pods", after=start))
            return count >= pods or bool(self._at_rest(view))

        with suppress(WaitTimeout):
            self.events.wait("pods are created", created, STEP_SECONDS)

    def _proceed(self, steps: int) -> None:
        """Wait for `steps` changes of the first replica's gangs, each for at most `STEP_SECONDS`, or until the set is
        at rest."""
        for _ in range(steps):
            layouts: list[Layout] = []

            def changed(view: View, layouts: list[Layout] = layouts) -> bool:
                layouts.append(sets.layout(view, SET))
                return layouts[0] != layouts[-1] or bool(self._at_rest(view))

            try:
                self.events.wait("a sub-step", changed, STEP_SECONDS)
            except WaitTimeout:
                return

    # -- the end ---------------------------------------------------------------------------------------------------

    def _at_rest(self, view: View) -> bool | Unmet:
        pcs = view.get(SETS, SET)
        if number(pcs, "status", "observedGeneration") != number(pcs, "metadata", "generation"):
            return Unmet(f"the present set is not observed: {dict(updates.progress(pcs))}")
        if updates.running(pcs):
            return Unmet(f"an update is running: {dict(updates.progress(pcs))}")
        expected = {
            clique["name"]: [clique["spec"]["podSpec"]["containers"][0]["image"].rpartition(":")[2]]
            for clique in reproduction.cliques(self.history, self.versions)
        }
        if (actual := sets.tags(view, SET)) != expected and not self._keeps_old:
            return Unmet(f"versions of pods: {actual}, wanted: {expected}")
        return sets.complete(view, SET)

    def _rolled(self, view: View, due: Mapping[str, int]) -> bool | Unmet:
        """Return whether all pods of the parts in `due` have the versions in `due`."""
        tags = sets.tags(view, SET)
        cliques = {reproduction.clique_of(self.history.part(name)): [str(number)] for name, number in due.items()}
        actual = {clique: tags.get(clique, []) for clique in cliques}
        return actual == cliques or Unmet(f"versions of pods: {actual}, wanted: {cliques}")

    def _judged(self) -> list[str]:
        results = invariants.judge(self.events, INVARIANTS)
        return [str(result) for result in results if result.holds is False]


def _blocked(pcs: Mapping[str, Any]) -> bool:
    return text(pcs, "spec", "updateStrategy", "type") == COHERENT and updates.running(pcs)
