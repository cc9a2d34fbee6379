"""Runs of generated histories on a real control plane: many small sets at the same time, each in its own namespace.

The reference runs as users run it: as processes, with its webhooks. One operator handles all sets, so its restart
affects all sets. The suite's invariants judge the recorded events.
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
from tests.coherent.histories import model, reproduction
from tests.coherent.histories.collector import GarbageCollector
from tests.coherent.histories.drawing import FOLDER
from tests.coherent.histories.reproduction import SET

log = logging.getLogger(__name__)
RECORDINGS = FOLDER / "recordings"
"""The folder for the watch events of failing histories. They are kept because a failure that depends on timing may not
happen again."""
NODES_PER_POOL, SETS = 2, "podcliquesets"
STEP_SECONDS, REST_SECONDS, WAIT_SECONDS = 4.0, 5.5, float(os.environ.get("WAIT", "120"))
"""The maximum duration of a sub-step, the time without changes at the end, and the maximum duration of an update, which
is longer on a busy machine."""
RETRY_SECONDS = 30.0
"""The time for which a request is retried while the webhooks are unavailable."""


class LiveCluster:
    """A cluster that runs the reference, with a node pool for each history that runs at the same time."""

    def __init__(
        self, driver: Driver, recorder: Recorder, api: Api, collector: GarbageCollector, node_pool_count: int
    ) -> None:
        self.recorder, self.api, self.collector, self._driver = recorder, api, collector, driver
        self.webhook_lock = threading.Lock()
        """Held during a restart of the operator, and by requests that need the operator's webhooks."""
        self._restarts, self._numbers = 0, iter(range(1_000_000))
        self._free_node_pools: Queue[str] = Queue()
        for index in range(node_pool_count):
            node_pool = f"lane-{index}"
            api.create_all(api.of_plural("nodes"), nodes.manifests("tiny", NODES_PER_POOL, node_pool))
            self._free_node_pools.put(node_pool)

    def restart(self) -> None:
        """Kill the operator and start it again, unless another history has restarted it in the meantime."""
        restarts = self._restarts
        with self.webhook_lock:
            if self._restarts == restarts:
                self._driver.kill(Role.OPERATOR)
                self._driver.restart(Role.OPERATOR)
                self._restarts += 1

    def run_history(self, history: model.GeneratedHistory) -> list[str]:
        """Run a history on the next free node pool, and return its problems."""
        node_pool, started_at = self._free_node_pools.get(), time.monotonic()
        try:
            run = _HistoryRun(self, history, f"history-{next(self._numbers)}", node_pool)
            problems = run.run()
            log.info("%s: %s, %.0f s", run.namespace, problems or "nothing wrong", time.monotonic() - started_at)
            if problems:
                RECORDINGS.mkdir(parents=True, exist_ok=True)
                run.events.save(RECORDINGS / f"{run.namespace}.jsonl")
            return problems
        finally:
            self._free_node_pools.put(node_pool)

    def run_all(self, histories: Sequence[model.GeneratedHistory]) -> list[list[str]]:
        """Run histories in parallel, and return the problems of each history."""
        with ThreadPoolExecutor(max(1, self._free_node_pools.qsize())) as executor:
            return list(executor.map(self.run_history, histories))


@contextmanager
def live_cluster(node_pool_count: int, mutant: str = "") -> Iterator[LiveCluster]:
    """Start a new cluster that runs the reference or one of its mutants, and yield it."""
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
        collector = GarbageCollector(cluster)
        stack.callback(collector.close)
        yield LiveCluster(driver, recorder, api, collector, node_pool_count)


class _HistoryRun:
    def __init__(self, live: LiveCluster, history: model.GeneratedHistory, namespace: str, node_pool: str) -> None:
        self.live, self.history, self.namespace, self.node_pool = live, history, namespace, node_pool
        self.versions = self._previous_versions = reproduction.initial_versions(history)
        self.events = History(live.recorder, namespace)
        self.problems: list[str] = []
        self.strategy, self._may_keep_old_pods = history.strategy, history.strategy == model.ON_DELETE
        """`_may_keep_old_pods`: whether OnDelete may have left pods of old versions."""

    def run(self) -> list[str]:
        api = self.live.api
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        try:
            self._wait_for_service_account()
            self._run_actions()
            return self.problems
        except WaitTimeout as error:
            phases = Counter(map(pods.phase, self.events.view().list("pods")))
            description = f"{error.unmet}; pods: {dict(phases)}"
            return [*self.problems, f"{error.description}: not seen within {error.timeout:.0f} s; {description}"]
        except (ApiError, HarnessError) as error:
            return [*self.problems, f"{type(error).__name__}: {error}"]
        finally:
            api.delete("namespaces", None, [self.namespace])

    @retry(
        retry=retry_if_exception_type(ApiError), wait=wait_fixed(0.2), stop=stop_after_delay(WAIT_SECONDS), reraise=True
    )
    def _wait_for_service_account(self) -> None:
        """Wait for the namespace's default ServiceAccount, which kube-controller-manager does not create while it is
        suspended."""
        self.live.api.get("serviceaccounts", self.namespace, "default")

    def _run_actions(self) -> None:
        workload = reproduction.manifest(self.history)
        workload["metadata"]["namespace"] = self.namespace
        workload["spec"]["template"]["cliques"] = self._cliques()
        self._send_with_retries(lambda: self.live.api.create(workload))
        self.events.wait("the set is deployed", sets.is_deployed(SET, self.history.replicas), WAIT_SECONDS)
        self.events.wait("the set has a PodGangMap", lambda view: bool(sets.layout(view, SET)), WAIT_SECONDS)
        for action in self.history.actions:
            self.versions, self._previous_versions = reproduction.versions_after(
                self.versions, self._previous_versions, action
            )
            self._act(action)
        self.versions, self._may_keep_old_pods = reproduction.final_versions(self.history, self.versions), False
        self._patch({"updateStrategy": {"type": model.COHERENT}, "template": {"cliques": self._cliques()}})
        self.events.wait("the set is updated and at rest", self._is_at_rest, WAIT_SECONDS)
        self.events.quiet(REST_SECONDS, WAIT_SECONDS)
        self.problems += self._broken_invariants()

    def _act(self, action: model.Action) -> None:
        match action:
            case model.Change() | model.Revert():
                self._patch({"template": {"cliques": self._cliques()}})
            case model.Scale(part=part, replicas=replicas):
                self._scale(part, replicas)
            case model.LosePod(number=index):
                current_pods = self._pods()
                if current_pods:
                    self._delete_pods([current_pods[index % len(current_pods)]])
            case model.FailNode():
                self._fail_node()
            case model.Restart():
                self.live.restart()
            case model.SwitchStrategy(strategy=strategy):
                self.strategy = strategy
                self._may_keep_old_pods |= strategy == model.ON_DELETE
                self._patch({"updateStrategy": {"type": strategy}})
            case model.Proceed(steps=steps):
                self._proceed(steps)
            case model.PauseCollector():
                self.live.collector.pause()
            case model.Replace(pods=count):
                self._replace(count)
            case model.Settle():
                if all(works for _, works in self.versions.values()):
                    self.events.wait("the set is at rest", self._is_at_rest, WAIT_SECONDS)
                elif required_versions := reproduction.required_versions(self.history, self.strategy, self.versions):
                    self.events.wait(
                        "parts that work are updated",
                        lambda view: self._has_versions(view, required_versions),
                        WAIT_SECONDS,
                    )

    # -- acts ------------------------------------------------------------------------------------------------------

    def _cliques(self) -> list[dict[str, Any]]:
        cliques = reproduction.cliques(self.history, self.versions)
        for clique in cliques:
            pod = clique["spec"]["podSpec"]
            pod["nodeSelector"], pod["tolerations"] = {nodes.POOL: self.node_pool}, [nodes.toleration(self.node_pool)]
        return cliques

    def _patch(self, spec: Mapping[str, Any]) -> None:
        self._send_with_retries(lambda: self.live.api.patch(SETS, self.namespace, SET, {"spec": spec}))

    @retry(
        retry=retry_if_exception_message(match="(?s).*failed calling webhook"),
        wait=wait_fixed(0.2),
        stop=stop_after_delay(RETRY_SECONDS),
        reraise=True,
    )
    def _send_with_retries(self, request: Callable[[], object]) -> None:
        """Send a request, and retry it while the operator, which serves the webhooks, is restarted."""
        request()

    def _scale(self, part: str, replicas: int) -> None:
        """Scale a part of the first replica of the set. The request must be rejected if and only if an update is
        running."""
        resource = sets.GROUPS if self.history.part(part).is_group else sets.CLIQUES
        with self.live.webhook_lock:
            set_before = self._set()
            try:
                body = {"spec": {"replicas": replicas}}
                object_before = self.live.api.patch(resource, self.namespace, f"{SET}-0-{part}", {})
                self.live.api.patch(resource, self.namespace, f"{SET}-0-{part}", body, "scale")
                rejection = ""
            except ApiError as error:
                rejection = str(error)
            set_after = self._set()
        if number(object_before, "spec", "replicas") == replicas or updates.start_time(
            set_before
        ) != updates.start_time(set_after):
            return
        blocked = [_blocks_scaling(pcs) for pcs in (set_before, set_after)]
        if all(blocked) and not rejection:
            self.problems.append(f"{part} is scaled to {replicas}, although an update is running")
        if not any(blocked) and rejection:
            self.problems.append(f"{part} is not scaled to {replicas}, although no update is running: {rejection}")

    def _set(self) -> dict[str, Any]:
        return self.live.api.get(SETS, self.namespace, SET)

    def _pods(self) -> list[dict[str, Any]]:
        """Return the pods that are not being deleted, sorted by name."""
        all_pods = self.live.api.work(lambda client: client.list(PODS, self.namespace))
        return sorted((pod for pod in all_pods if not terminating(pod)), key=name)

    def _delete_pods(self, doomed_pods: Sequence[Mapping[str, Any]]) -> None:
        self.events.origins.excused |= {uid(pod) for pod in doomed_pods}
        self.live.api.delete("pods", self.namespace, [name(pod) for pod in doomed_pods])

    def _fail_node(self) -> None:
        """Cordon the first node of the history's pool, delete all pods on the node, and uncordon the node."""
        first_node, *_ = nodes.manifests("tiny", NODES_PER_POOL, self.node_pool)
        node_name = first_node["metadata"]["name"]
        self.live.api.patch("nodes", None, node_name, {"spec": {"unschedulable": True}})
        self._delete_pods([pod for pod in self._pods() if text(pod, "spec", "nodeName") == node_name])
        self.live.api.patch("nodes", None, node_name, {"spec": {"unschedulable": None}})

    def _replace(self, pods: int) -> None:
        """Wait until `pods` more pods have been created or the set is at rest, for at most `STEP_SECONDS`."""
        start = self.events.mark()

        def are_created(view: View) -> bool:
            count = sum(record.kind == ADDED for record in self.events.records("pods", after=start))
            return count >= pods or bool(self._is_at_rest(view))

        with suppress(WaitTimeout):
            self.events.wait("pods are created", are_created, STEP_SECONDS)

    def _proceed(self, steps: int) -> None:
        """Wait for `steps` changes to the first replica's gangs, for at most `STEP_SECONDS` each, or until the set is
        at rest."""
        for _ in range(steps):
            layouts: list[Layout] = []

            def has_changed(view: View, layouts: list[Layout] = layouts) -> bool:
                layouts.append(sets.layout(view, SET))
                return layouts[0] != layouts[-1] or bool(self._is_at_rest(view))

            try:
                self.events.wait("a sub-step", has_changed, STEP_SECONDS)
            except WaitTimeout:
                return

    # -- the end ---------------------------------------------------------------------------------------------------

    def _is_at_rest(self, view: View) -> bool | Unmet:
        pcs = view.get(SETS, SET)
        if number(pcs, "status", "observedGeneration") != number(pcs, "metadata", "generation"):
            return Unmet(f"the present set is not observed: {dict(updates.progress(pcs))}")
        if updates.is_running(pcs):
            return Unmet(f"an update is running: {dict(updates.progress(pcs))}")
        expected = {
            clique["name"]: [clique["spec"]["podSpec"]["containers"][0]["image"].rpartition(":")[2]]
            for clique in reproduction.cliques(self.history, self.versions)
        }
        if (actual_tags := sets.image_tags(view, SET)) != expected and not self._may_keep_old_pods:
            return Unmet(f"versions of pods: {actual_tags}, wanted: {expected}")
        return sets.is_complete(view, SET)

    def _has_versions(self, view: View, required_versions: Mapping[str, int]) -> bool | Unmet:
        """Return whether all pods of the parts in `required_versions` have the required version."""
        tags = sets.image_tags(view, SET)
        cliques = {
            reproduction.clique_of(self.history.part(name)): [str(number)] for name, number in required_versions.items()
        }
        actual_tags = {clique: tags.get(clique, []) for clique in cliques}
        return actual_tags == cliques or Unmet(f"versions of pods: {actual_tags}, wanted: {cliques}")

    def _broken_invariants(self) -> list[str]:
        results = invariants.judge(self.events, model.INVARIANTS)
        return [str(result) for result in results if result.holds is False]


def _blocks_scaling(pcs: Mapping[str, Any]) -> bool:
    return text(pcs, "spec", "updateStrategy", "type") == model.COHERENT and updates.is_running(pcs)
