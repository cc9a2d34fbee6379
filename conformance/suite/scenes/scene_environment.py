"""The environment of scenes and tests, without checks: namespace, nodes, writes and waits.

Nothing here sleeps: waits block on the history.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from conformance.cluster import abilities, gpu_devices, gpu_failures, nodes, pace, pod_behaviors
from conformance.cluster.addons.volumes import PROVISIONER
from conformance.cluster.audit import AuditLog
from conformance.cluster.gpu_devices import DeviceFailure
from conformance.cluster.kubelet_sim.init_wait import LOST
from conformance.errors import HarnessError, UsageError
from conformance.evidence.replay import WAIT
from conformance.grove import pods, workloads
from conformance.grove.fields import condition_is, text
from conformance.grove.labels import BY_HAND
from conformance.grove.scheduling.manifests import Testbed
from conformance.history.query import ACTIVITY_RESOURCES, History, Unmet, WaitTimeout
from conformance.history.view import View
from conformance.implementation.additions import with_additions
from conformance.implementation.descriptor import Role
from conformance.implementation.driver import Driver
from conformance.suite.outcomes.checks import Blocked, Checks
from conformance.suite.scenes import unattended
from conformance.suite.scenes.api import Api, NotServed, Object, is_admission_error, words
from conformance.suite.scenes.dry_run import DryRun
from conformance.suite.scenes.machine import Machine
from conformance.suite.scenes.premises import Premises
from conformance.suite.scenes.refused import Refused
from conformance.suite.scenes.roles import Roles
from conformance.suite.scenes.scene import NotReached, SceneEnded, Step
from conformance.suite.scenes.silence import Silence
from conformance.suite.scenes.sole_writer import SoleWriter
from conformance.suite.scenes.unserved import clear, unserved
from conformance.suite.scenes.wait_budget import WaitBudget
from conformance.suite.scenes.waits import Waits
from kube.errors import ApiError
from kube.resource import NODES

R = TypeVar("R")


class SceneEnvironment:
    """The namespace, the node pool and the history of one scene or test. Timeouts are in seconds at time scale 1.

    `require_healthy` raises HarnessError if the cluster or the suite itself did not work at some time during the test;
    with True, it first checks every component.
    """

    def __init__(
        self,
        *,
        checks: Checks,
        namespace: str,
        pool: str,
        history: History,
        api: Api,
        driver: Driver,
        kubeconfig: Path,
        require_healthy: Callable[[bool], None],
        wait_budget: WaitBudget,
        time_scale: float,
        randomness: random.Random,
        audit: AuditLog | None = None,
        silence: Silence | None = None,
        unplayed: Mapping[str, str] = MappingProxyType({}),
        machine: Machine | None = None,
        hooks: Collection[str] = (),
        mutators: Callable[[], str] = lambda: "",
    ) -> None:
        self.checks, self.namespace, self.pool = checks, namespace, pool
        self.history, self.random = history, randomness
        self.acts: list[tuple[str, Object]] = []
        """The actions of the test, in order: a verb (`create`, `patch pods/x`, `wait`, …) and the body."""
        self._node_counts = dict[str, int]()
        self.implementation = driver.descriptor
        self._completed = partial(with_additions, driver.descriptor)
        self.audit = audit
        """The API server's audit log; None if the cluster is not one of the suite's."""
        supplied = set(Role) - driver.descriptor.roles
        self.premises = Premises(history, namespace, pool, audit, supplied, mutators, hooks)
        self.sole_writer = SoleWriter(pool, compares_nodes=audit is not None)
        self._refused = Refused(
            history, namespace, audit, hooks, self.acts, lambda: api.holds("limitranges", namespace)
        )
        self.machine = machine or Machine()
        """The speed of the machine."""
        self.roles = Roles(driver, namespace, history, checks, self._require_fault, self.machine)
        self._api, self._kubeconfig, self._scale = api, kubeconfig, time_scale
        self._lacking_abilities = unplayed
        self._require_healthy, self._waits = (
            require_healthy,
            Waits(history, wait_budget, silence, time_scale, self.machine),
        )
        self.steps: dict[str, Step] = {}
        """The steps that the scene has come to, by name."""
        self.markers: dict[str, dict[str, float]] = {}
        """Timing markers by phase of the scene, in seconds since the request that started the phase."""
        self.after_step: Callable[[], None] = lambda: None
        """Called after each step. An exception that it raises ends the scene."""
        self.second_namespace: Callable[[], SceneEnvironment]
        """Opens a second namespace, at most once in a scene; `neighbor` is its environment, with the same nodes and
        steps."""
        self.neighbor: SceneEnvironment | None = None

    @property
    def time_scale(self) -> float:
        """Return the factor by which all timeouts are multiplied."""
        return self._scale

    @property
    def provisioner(self) -> str:
        """Return the name of the provisioner whose volumes the cluster simulates; empty if the cluster is not one of
        the suite's."""
        return "" if self.audit is None else PROVISIONER

    def patience(self, seconds: float) -> float:
        """Return the seconds to wait for things that the cluster does by itself."""
        return pace.patience(seconds)

    def served(self, kind: str) -> str:
        """Return the preferred apiVersion of a kind by `plural.group`; empty if the API server does not serve it."""
        resource = self._api.served.get(kind)
        return resource.api_version if resource is not None else ""

    def clear_kind(self, kind: str) -> None:
        """Delete all objects of a kind (`plural.group`), regardless of finalizers, on a cluster of the suite. Raises
        Blocked on any other cluster, because it may have such objects for other purposes."""
        self._require_own_cluster(kind)
        clear(self._api, kind, self.patience(30))

    @contextlib.contextmanager
    def without_kind(self, kind: str) -> Iterator[None]:
        """Make a cluster of the suite not serve a kind (`plural.group`) inside the context. The kind's objects are
        deleted. Raises Blocked like `clear_kind`."""
        self._require_own_cluster(kind)
        with unserved(self._api, kind, self.patience(30)):
            yield

    def _require_own_cluster(self, kind: str) -> None:
        if self.audit is None:
            raise Blocked(f"the cluster is not one of the suite, which would take {kind} from it", "circumstances")

    @cached_property
    def kubernetes(self) -> Any:
        """Return the official client (`kubernetes.client.ApiClient`). Use it with dicts, because its models reject
        unusual objects."""
        from kubernetes import config

        make: Callable[..., Any] = config.new_client_from_config
        return make(str(self._kubeconfig))

    @cached_property
    def dry_run(self) -> DryRun:
        """Return the dry-run client, which shows how the API server would respond."""
        return DryRun(self._api, self.namespace, self._completed)

    # -- making and changing -------------------------------------------------------------------------------------

    def nodes(self, profile: str, count: int, gpus: gpu_devices.Form = "extended") -> list[str]:
        """Add nodes to the test's own pool and return their names once they are Ready and schedulable. `gpus` is the
        form in which they offer their GPUs."""
        existing = self._node_counts.get(profile, 0)
        manifests = nodes.manifests(profile, existing + count, self.pool)[existing:]
        self._node_counts[profile] = existing + count
        return self.create_nodes(gpu_devices.offered(manifests, gpus))

    def create_nodes(self, manifests: Sequence[Object]) -> list[str]:
        """Add nodes from manifests that name their pool (`testbed`), and otherwise do the same as `nodes`."""
        names, count = [str(node["metadata"]["name"]) for node in manifests], len(manifests)
        self.acts.append(("create", {"apiVersion": "v1", "kind": "List", "items": list(manifests)}))
        self.sole_writer.nodes_created(manifests)
        try:
            self._api.create_all(NODES, manifests)
        except ApiError as error:
            if is_admission_error(error):
                raise self.checks.broken(f"{count} nodes are accepted", "accepted", words(error)) from error
            self._require_no_interference()
            raise HarnessError(f"nodes cannot be created: {words(error)}", where=self.pool) from error

        def are_ready(view: View) -> bool | Unmet:
            unready = [name for name in names if not nodes.is_schedulable(view.get("nodes", name))]
            return not unready or Unmet(f"{len(unready)} of {count} nodes are not Ready, the first: {unready[0]}")

        try:
            self.history.wait(
                f"{count} nodes are Ready",
                are_ready,
                self.patience(60),
                resources=("nodes",),
                is_hopeless=self._is_hopeless,
            )
        except WaitTimeout as error:
            self._require_fault()
            self.require_premises([node for node in names if not nodes.is_schedulable(error.view.get("nodes", node))])
            self._require_no_interference()
            raise HarnessError(error.unmet or str(error), where=f"pool {self.pool}") from error
        self.history.record_action()
        return names

    def testbed(self, scenario: str) -> Testbed:
        """Return the testbed for a gang scheduling scenario: separate nodes in the test's pool."""
        return Testbed(
            self.namespace,
            f"{self.pool}-{scenario}",
            self.implementation.scheduler_name,
            prefix=scenario,
            selector={nodes.POOL: self.pool, BY_HAND: scenario},
            taints=({"key": nodes.POOL, "value": self.pool, "effect": "NoSchedule"},),
            tolerations=(nodes.toleration(self.pool),),
            gates=True,
        )

    def workload(self, name: str, **values: object) -> Object:
        """Return a PodCliqueSet from `fixtures/workloads/<name>.yaml` for the test's namespace and pool, without
        creating it."""
        return self.placed(dict(workloads.load(name, values)))

    def placed(self, obj: Object) -> Object:
        """Return a PodCliqueSet in the test's namespace, with pods that run on the test's own nodes."""
        obj["metadata"] = {**obj["metadata"], "namespace": self.namespace}
        nodes.restrict_to_pool(self.pool, obj)
        return self._completed(obj)

    def set_behavior(self, workload: Object, clique: str, behavior: str, **parameters: str | int) -> Object:
        """Give the pods of a clique one of the behaviors of `kwok-profiles/behaviors.yaml`, for example
        `env.set_behavior(workload, "web", "crash-loop", restart_after="2s")`. Raises UsageError for an unknown one."""
        annotations = pod_behaviors.behavior_annotations(behavior, **parameters)
        for template in workload["spec"]["template"]["cliques"]:
            if template["name"] == clique:
                template["annotations"] = {**template.get("annotations", {}), **annotations}
                return workload
        raise UsageError(f"no clique is called {clique!r}", where=str(workload["metadata"]["name"]))

    def fail_node(self, node: str) -> None:
        """Stop the simulated kubelet of a node, and return once the node's Ready condition is Unknown and its pods are
        not Ready. Nothing on the node changes until `recover_node`; taints and evictions come from Kubernetes."""
        self._set_node_state(node, lost=True)

    def recover_node(self, node: str) -> None:
        """Start the simulated kubelet of a failed node again, and return once the node is Ready and has lost its
        taints."""
        self._set_node_state(node, lost=False)

    def fail_gpu(self, node: str, device: str, xid: int = 79, drain: bool = False) -> None:
        """Make a device of a node fail, and return once its slice has the taint. With `drain`, Kubernetes evicts the
        pods that use the device."""
        self._set_device_state(node, device, DeviceFailure(xid, drain))

    def repair_gpu(self, node: str, device: str) -> None:
        """Repair a device that has failed, and return once its slice has lost the taint."""
        self._set_device_state(node, device, None)

    def create(self, obj: Object) -> Object:
        """Create an object. A rejection ends the scene, or blocks the test."""
        obj = self._completed(obj)
        for mistake in pod_behaviors.mistakes_of_set(obj) if obj.get("kind") == "PodCliqueSet" else ():
            raise mistake
        self._require_abilities(obj)
        self.acts.append(("create", obj))
        expectation = f"{obj.get('kind')} {obj.get('metadata', {}).get('name')} is accepted"
        created = self._attempt(expectation, lambda: self._create(obj))
        self._record_created(obj, created)
        return created

    def create_all(self, objects: Sequence[Object]) -> None:
        """Create many namespaced objects at once, then write their `status` if they have one."""
        objects = [self._completed(obj) for obj in objects]
        self._require_abilities(objects)
        self.acts += [("create", obj) for obj in objects]
        self._attempt(
            f"{len(objects)} objects are accepted",
            lambda: self._api.create_with_statuses(objects, self._record_created),
        )

    def patch(
        self,
        resource: str,
        name: str,
        patch: Mapping[str, Any],
        *,
        subresource: str | None = None,
        missing_ok: bool = False,
    ) -> Object:
        """Apply a JSON merge patch to an object of the test's namespace (or a cluster-scoped one). When this returns,
        the history contains the write, so that later waits do not see the earlier state. With `missing_ok`, return an
        empty object without writing if the implementation has deleted the object in the meantime."""
        self._require_abilities(patch)
        self.acts.append((f"patch {resource}/{name}{f'/{subresource}' if subresource else ''}", dict(patch)))

        def write() -> Object:
            try:
                return self._api.patch(resource, self._namespace_of(resource), name, patch, subresource)
            except ApiError as error:
                if missing_ok and error.not_found:
                    return {}
                raise

        stored = self._attempt(f"a patch of {resource}/{name} is accepted", write)
        if stored:
            self.sole_writer.patched(resource, name, patch, stored)
            self._waits.for_write(resource, name, text(stored, "metadata", "resourceVersion"))
        return stored

    def ungate(self, pods: Sequence[str]) -> None:
        """Remove the scheduling gates of several pods at once. When this returns, the history contains the writes."""
        patch = {"spec": {"schedulingGates": None}}
        self.acts += [(f"patch pods/{name}", patch) for name in pods]
        expectation = f"the gates of {len(pods)} pods can be removed"
        responses = self._attempt(
            expectation, lambda: self._api.patch_all("pods", self.namespace, dict.fromkeys(pods, patch))
        )
        for name, stored in zip(pods, responses, strict=True):
            self._waits.for_write("pods", name, text(stored, "metadata", "resourceVersion"))

    def delete(self, resource: str, name: str, propagation: str = "Background") -> None:
        """Delete an object. A rejection ends the scene, or blocks the test."""
        self.acts.append((f"delete {resource}/{name}", {"propagationPolicy": propagation}))
        self.sole_writer.deleted(resource, name)
        if resource == "pods":
            self.outdate(name)
        self._attempt(
            f"the deletion of {resource}/{name} is accepted",
            lambda: self._api.delete(resource, self._namespace_of(resource), [name], propagation),
        )

    def evict(self, pod: str) -> str:
        """Evict a pod, as `kubectl drain` does. Return the reason why the eviction was rejected; empty if it was
        accepted."""
        self.acts.append((f"evict pods/{pod}", {}))
        self.outdate(pod)
        try:
            self._api.evict(self.namespace, pod)
        except ApiError as error:
            self._require_fault()
            return words(error)
        self.history.record_action()
        return ""

    def outdate(self, pod: str) -> None:
        """Record that the test deletes a pod, or has given it the hash of another template, which explains its
        deletion. A later pod of the same name is not affected."""
        if (record := self.history.log.last("pods", self.namespace, pod)) is not None:
            self.history.origins.excused.add(record.uid)

    def complete_origins(self) -> None:
        """Complete the facts about writers that rules need and that are only known at the end of the test."""
        self.history.origins.excused |= self.roles.uids_deleted_by_earlier()
        self.premises.note_writers()

    # -- waiting -------------------------------------------------------------------------------------------------

    def wait_for(
        self,
        step: str,
        condition: Callable[[View], R | Unmet | None],
        timeout: float = 60,
        *,
        resources: Sequence[str] | None = None,
        real: bool = False,
    ) -> R:
        """Wait until the condition holds, and mark that moment as a step of the scene. A step that is not reached ends
        the scene, but does not fail anything by itself: only requirements that need the step can fail. The wait ends
        early if a process of the implementation exits. `real`: the time scale does not shorten the wait."""
        try:
            result = self._wait(step, condition, timeout, resources=resources, real=real)
        except NotReached as error:
            raise SceneEnded(step, str(error), self.history.now()) from None
        self.mark(step)
        return result

    def settle(
        self,
        step: str,
        condition: Callable[[View], object],
        timeout: float = 30,
        *,
        resources: Sequence[str] | None = None,
        real: bool = False,
    ) -> View:
        """Wait until the condition holds or the time is up, and mark that moment as a step in both cases. This is meant
        for states that a test compares, and for conditions without which the scene can continue. If the time was up,
        the step counts as not reached."""
        unmet = ""
        try:
            self._wait(step, condition, timeout, resources=resources, real=real)
        except NotReached as error:
            unmet = str(error)
        self.mark(step, unmet)
        return self.history.view()

    def require_alive(self, step: str) -> None:
        """End the scene, as if `step` had not been reached, if a process of the implementation has exited unexpectedly:
        later events say nothing about the placements that it would have made."""
        if exited := self.roles.exited_processes():
            raise SceneEnded(step, exited, self.history.now())

    def require_in_time(self, event: str, event_time: float, seconds: float) -> None:
        """Raise HarnessError if more than `seconds` have passed since an event of the history (at `event_time`) after
        which the suite had to act: in that case the suite itself was too slow, and later events say nothing about the
        implementation."""
        if (seconds_passed := self.history.now() - event_time) > seconds:
            delay = f"the suite acted {seconds_passed:.1f} s after {event}, and had to act within {seconds:g} s"
            hint = "give the machine less to do, or a larger --time-scale"
            raise HarnessError(f"the machine was too slow: {delay}", hint=hint)

    def mark(self, step: str, unmet: str = "") -> None:
        """Mark the current moment as a step of the scene. `unmet`: what was seen instead of the step."""
        if step in self.steps:
            raise HarnessError(f"duplicate step {step!r}", where=self.namespace)
        self.acts.append((WAIT, {"for": step}))
        self.steps[step] = Step.now(step, self.history, unmet)
        self.after_step()

    def settled(
        self, description: str, predicate: Callable[[View], object], timeout: float = 30, *, real: bool = False
    ) -> View:
        """Return the state as soon as the predicate holds, the time is up, or a process of the implementation has
        exited unexpectedly. Nothing is judged. `real` as in `wait_for`."""
        with contextlib.suppress(WaitTimeout):
            self._waits.wait(description, predicate, timeout, is_hopeless=self._is_hopeless_or_dead, real=real)
        return self.history.view()

    def quiet(
        self,
        seconds: float = 2,
        timeout: float = 30,
        *,
        real: bool = False,
        of: Collection[str] = ACTIVITY_RESOURCES,
        unless: Callable[[View], bool] = lambda view: False,
    ) -> View:
        """Return the state once no resource in `of` has changed for `seconds`, or for the judged scheduler's `settle`
        if that is longer, or once `unless` holds after a change or the time is up. `real`: the time scale does not
        shorten `seconds`. A quiet time never proves that something has happened, because the machine may be busy; use a
        separate wait for that."""
        self.acts.append((WAIT, {"for": f"no change for {seconds:g} s"}))
        self._waits.quiet(seconds, timeout, real=real, of=of, settle=self.implementation.settle, unless=unless)
        self._require_healthy(False)
        return self.history.view()

    def _wait(
        self,
        description: str,
        condition: Callable[[View], R | Unmet | None],
        timeout: float,
        *,
        resources: Sequence[str] | None,
        real: bool,
    ) -> R:
        """Wait for a condition. Raises NotReached, with the state that was seen instead, if the wait times out."""
        try:
            return self._waits.wait(
                description, condition, timeout, is_hopeless=self._is_hopeless_or_dead, real=real, resources=resources
            )
        except WaitTimeout as error:
            self._require_fault()
            if unattended_pods := unattended.pods_of(
                self.history, self.pool, unattended.MAX_KUBELET_LAG_SECONDS * max(1.0, self._scale)
            ):
                self._require_no_interference()
                raise HarnessError(f"the cluster was too slow: {unattended_pods}", where=f"pool {self.pool}") from None
            if rejection := self._refused.words():
                self._require_no_interference()
                raise Blocked(
                    f"the cluster has refused what the scene needs: {rejection}", "circumstances", description
                ) from None
            exited = self.roles.exited_processes() or self._waits.lifeless_reason(self.roles.last_words)
            silence_reason = "" if exited else self._waits.silence_reason(timeout)
            raise NotReached("\n".join(filter(None, (exited, str(error), silence_reason)))) from None

    # -- within --------------------------------------------------------------------------------------------------

    def _set_node_state(self, node: str, *, lost: bool) -> None:
        self.patch("nodes", node, {"metadata": {"labels": {LOST: "yes" if lost else None}}})

        def has_turned(view: View) -> bool | Unmet:
            current = view.get("nodes", node)
            if not lost:
                return nodes.is_schedulable(current) or Unmet(f"node {node} is not Ready, or has its taints still")
            if condition_is(current, "Ready") != "Unknown":
                return Unmet(f"node {node} is not Ready=Unknown")
            ready_pods = sum(pods.is_ready(pod) for pod in view.list("pods") if pods.node(pod) == node)
            return not ready_pods or Unmet(f"{ready_pods} pods are still Ready on the lost node {node}")

        self._wait_for_node(node, f"node {node} is {'lost' if lost else 'back'}", has_turned)

    def _set_device_state(self, node: str, device: str, failure: DeviceFailure | None) -> None:
        metadata = (self.history.view().get("nodes", node) or {}).get("metadata", {})
        annotations = metadata.get("annotations")
        gpu_failures.require_device(node, annotations, device, location=self.pool)
        annotation = gpu_devices.with_failure(annotations, device, failure)
        self.patch("nodes", node, {"metadata": {"annotations": {gpu_devices.FAILED: annotation}}})

        def has_turned(view: View) -> bool | Unmet:
            current = (view.get("nodes", node) or {}).get("metadata", {}).get("annotations")
            are_published = gpu_failures.are_published(view.list("resourceslices"), node, current)
            return are_published or Unmet(f"the slices of node {node} have other taints")

        description = f"{device} of node {node} {'has failed' if failure else 'is repaired'}"
        self._wait_for_node(node, description, has_turned)

    def _wait_for_node(self, node: str, description: str, has_turned: Callable[[View], bool | Unmet]) -> None:
        """Wait for what the cluster does by itself. Raises HarnessError if it does not happen."""
        try:
            self.history.wait(description, has_turned, self.patience(60), is_hopeless=self._is_hopeless)
        except WaitTimeout as error:
            self._require_fault()
            self._require_no_interference()
            raise HarnessError(error.unmet or str(error), where=f"node {node}") from error

    def _require_abilities(self, obj: object) -> None:
        """Raise Blocked if the cluster does not simulate an ability that an object, or a patch of an object, needs."""
        for ability in sorted(abilities.required_abilities(obj) if self._lacking_abilities else ()):
            if ability in self._lacking_abilities:
                reason = (
                    f"the cluster does not play {ability}: {self._lacking_abilities[ability]} (docs/fake-cluster.md)"
                )
                raise Blocked(reason, "circumstances")

    def _record_created(self, obj: Object, created: Object) -> None:
        self.history.origins.record_created(obj, created)
        self.sole_writer.created(obj, created)

    def _create(self, obj: Object) -> Object:
        if "namespace" not in obj.get("metadata", {}) and self._api.of_object(obj).namespaced:
            obj = {**obj, "metadata": {**obj.get("metadata", {}), "namespace": self.namespace}}
        return self._api.create(obj)

    def _attempt(self, description: str, action: Callable[[], R]) -> R:
        try:
            result = action()
            self.history.record_action()
            return result
        except (ApiError, NotServed) as error:
            self._require_fault()
            if isinstance(error, ApiError) and self._refused.by_cluster(error.message):
                self._require_no_interference()
                raise Blocked(
                    f"the cluster has refused what the scene needs: {words(error)}", "circumstances"
                ) from None
            exited = self.roles.exited_processes()
            reason = words(error) + (f"; {exited}" if exited else "")
            raise self.checks.broken(description, "accepted", reason, at=round(self.history.now(), 3)) from None

    def _namespace_of(self, resource: str) -> str | None:
        try:
            return self.namespace if self._api.of_plural(resource).namespaced else None
        except NotServed:
            return self.namespace

    def _is_hopeless(self) -> bool:
        """End a wait immediately, by an exception, if the cluster does not work or if another client has deleted nodes
        of the test; otherwise return False."""
        self._require_healthy(False)
        if self.premises.deleted_nodes():
            self._require_fault()
        return False

    def _is_hopeless_or_dead(self) -> bool:
        """Do the same as `_is_hopeless`, but also return True if a process of the implementation has exited
        unexpectedly."""
        return self._is_hopeless() or bool(self.roles.exited_processes())

    def _require_fault(self) -> None:
        """Check, before the implementation is blamed for a timeout, that nothing else is at fault. Raises HarnessError
        if the cluster itself was not healthy, and ends the scene if the implementation has deleted the test's namespace
        or nodes."""
        self._require_healthy(True)
        self.require_premises()

    def require_premises(self, unusable: Sequence[str] = ()) -> None:
        """End the scene if another client has deleted the namespace or nodes of the test, or has changed nodes that are
        `unusable`."""
        self._accuse("only the suite changes the namespace and the nodes of a test", self.premises.accusation(unusable))

    def _require_no_interference(self) -> None:
        """End the scene if the implementation has kept the cluster from doing its own work. Call this before the
        cluster or the machine is blamed."""
        self._accuse("the implementation leaves the cluster to its own work", self.premises.interference())

    def _accuse(self, expectation: str, reason: str) -> None:
        if reason:
            raise self.checks.broken(expectation, expectation, reason, at=round(self.history.now(), 3))
