"""The environment of scenes, and of tests beside their checks: namespace, nodes, writes and waits.

Nothing here sleeps: waits ask the history.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from conformance.cluster import abilities, nodes, pace, pod_behaviors
from conformance.cluster.addons.volumes import PROVISIONER
from conformance.cluster.audit import AuditLog
from conformance.cluster.kubelet_sim.init_wait import LOST
from conformance.errors import HarnessError, UsageError
from conformance.evidence.replay import WAIT
from conformance.grove import pods, workloads
from conformance.grove.fields import condition_is, text
from conformance.grove.labels import BY_HAND
from conformance.grove.scheduling.manifests import Testbed
from conformance.history.query import MOVING, History, Unmet, WaitTimeout
from conformance.history.view import View
from conformance.implementation.additions import with_additions
from conformance.implementation.descriptor import Role
from conformance.implementation.driver import Driver
from conformance.suite.outcomes.checks import Blocked, Checks
from conformance.suite.scenes import unattended
from conformance.suite.scenes.api import Api, NotServed, Object, by_admission, words
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

    `sound` raises HarnessError if the cluster, or the suite itself, did not work at some time of the test; with True it
    checks every component first.
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
        sound: Callable[[bool], None],
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
        """The acts of the test, in order: a word (`create`, `patch pods/x`, `wait`, …) and the body."""
        self._nodes = dict[str, int]()
        self.implementation = driver.descriptor
        self._completed = partial(with_additions, driver.descriptor)
        self.audit = audit
        """The API server's audit log; None if the cluster is not one of the suite."""
        supplied = set(Role) - driver.descriptor.roles
        self.premises = Premises(history, namespace, pool, audit, supplied, mutators)
        self.sole_writer = SoleWriter(pool, compares_nodes=audit is not None)
        self._refused = Refused(
            history, namespace, audit, hooks, self.acts, lambda: api.holds("limitranges", namespace)
        )
        self.machine = machine or Machine()
        """The speed of the machine."""
        self.roles = Roles(driver, namespace, history, checks, self._blame, self.machine)
        self._api, self._kubeconfig, self._scale = api, kubeconfig, time_scale
        self._unplayed = unplayed
        self._sound, self._waits = sound, Waits(history, wait_budget, silence, time_scale, self.machine)
        self.steps: dict[str, Step] = {}
        """The steps of a scene that were reached, by name."""
        self.markers: dict[str, dict[str, float]] = {}
        """Timing markers by phase of the scene, in seconds since the request that began the phase."""
        self.after_step: Callable[[], None] = lambda: None
        """Called after each step. What it raises ends the scene."""
        self.second_namespace: Callable[[], SceneEnvironment]
        """Open another namespace, once in a scene; `neighbor` is its environment, with the same nodes and steps."""
        self.neighbor: SceneEnvironment | None = None

    @property
    def time_scale(self) -> float:
        """Return the factor of every timeout."""
        return self._scale

    @property
    def provisioner(self) -> str:
        """Return the provisioner whose volumes the cluster creates; empty if the cluster is not one of the suite."""
        return "" if self.audit is None else PROVISIONER

    def patience(self, seconds: float) -> float:
        """Return how long to wait for what the cluster does by itself."""
        return pace.patience(seconds)

    def served(self, kind: str) -> str:
        """Return the preferred apiVersion of a kind by `plural.group`; empty if the API server does not serve it."""
        resource = self._api.served.get(kind)
        return resource.api_version if resource is not None else ""

    def clear_kind(self, kind: str) -> None:
        """Delete all objects of a kind (`plural.group`) on a cluster of the suite, whatever finalizers they have.
        Raises Blocked on another cluster, which may have such objects of its own."""
        self._require_own_cluster(kind)
        clear(self._api, kind, self.patience(30))

    @contextlib.contextmanager
    def without_kind(self, kind: str) -> Iterator[None]:
        """Let a cluster of the suite not serve a kind (`plural.group`) inside the context. Its objects are deleted.
        Raises Blocked as `clear_kind` does."""
        self._require_own_cluster(kind)
        with unserved(self._api, kind, self.patience(30)):
            yield

    def _require_own_cluster(self, kind: str) -> None:
        if self.audit is None:
            raise Blocked(f"the cluster is not one of the suite, which would take {kind} from it", "circumstances")

    @cached_property
    def kubernetes(self) -> Any:
        """Return the official client (`kubernetes.client.ApiClient`), for use with dicts: its models reject odd
        objects."""
        from kubernetes import config

        make: Callable[..., Any] = config.new_client_from_config
        return make(str(self._kubeconfig))

    @cached_property
    def dry_run(self) -> DryRun:
        """Return the dry-run client, which tells what the API server would answer."""
        return DryRun(self._api, self.namespace, self._completed)

    # -- making and changing -------------------------------------------------------------------------------------

    def nodes(self, profile: str, count: int) -> list[str]:
        """Add nodes to the test's own pool and return their names once they are Ready and schedulable."""
        begin = self._nodes.get(profile, 0)
        manifests = nodes.manifests(profile, begin + count, self.pool)[begin:]
        self._nodes[profile] = begin + count
        return self.fleet(manifests)

    def fleet(self, manifests: Sequence[Object]) -> list[str]:
        """Add nodes by their manifests, which name their pool (`testbed`); otherwise as `nodes`."""
        names, count = [str(node["metadata"]["name"]) for node in manifests], len(manifests)
        self.acts.append(("create", {"apiVersion": "v1", "kind": "List", "items": list(manifests)}))
        self.sole_writer.fleet(manifests)
        try:
            self._api.create_all(NODES, manifests)
        except ApiError as error:
            if by_admission(error):
                raise self.checks.broken(f"{count} nodes are accepted", "accepted", words(error)) from error
            raise HarnessError(f"nodes cannot be created: {words(error)}", where=self.pool) from error

        def ready(view: View) -> bool | Unmet:
            unready = [name for name in names if not nodes.schedulable(view.get("nodes", name))]
            return not unready or Unmet(f"{len(unready)} of {count} nodes are not Ready, the first: {unready[0]}")

        try:
            self.history.wait(
                f"{count} nodes are Ready",
                ready,
                self.patience(60),
                resources=("nodes",),
                hopeless=self._hopeless,
            )
        except WaitTimeout as error:
            self._blame()
            self.require_premises([node for node in names if not nodes.schedulable(error.view.get("nodes", node))])
            raise HarnessError(error.unmet or str(error), where=f"pool {self.pool}") from error
        self.history.stir()
        return names

    def testbed(self, scenario: str) -> Testbed:
        """Return where a scenario of gang scheduling is played: on nodes of its own in the test's pool."""
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
        """Return a PodCliqueSet from `fixtures/workloads/<name>.yaml` for the test's namespace and pool. It is not
        created."""
        return self.placed(dict(workloads.load(name, values)))

    def placed(self, obj: Object) -> Object:
        """Return a PodCliqueSet moved to the test's namespace, with pods that run on the test's own nodes."""
        obj["metadata"] = {**obj["metadata"], "namespace": self.namespace}
        nodes.bind_to(self.pool, obj)
        return self._completed(obj)

    def set_behavior(self, workload: Object, clique: str, behavior: str, **parameters: str | int) -> Object:
        """Give the pods of a clique one of the behaviors of `kwok-profiles/behaviors.yaml`, for example
        `env.set_behavior(workload, "web", "crash-loop", restart_after="2s")`. Raises UsageError for an unknown one."""
        annotations = pod_behaviors.annotated(behavior, **parameters)
        for template in workload["spec"]["template"]["cliques"]:
            if template["name"] == clique:
                template["annotations"] = {**template.get("annotations", {}), **annotations}
                return workload
        raise UsageError(f"no clique is called {clique!r}", where=str(workload["metadata"]["name"]))

    def fail_node(self, node: str) -> None:
        """Take away the kubelet of a node. Returns once the node is Unknown and its pods are not Ready. Nothing on the
        node changes until `recover_node`; taints and evictions come from Kubernetes."""
        self._turn(node, lost=True)

    def recover_node(self, node: str) -> None:
        """Give a failed node its kubelet back. Returns once the node is Ready and has lost its taints."""
        self._turn(node, lost=False)

    def create(self, obj: Object) -> Object:
        """Create an object. A rejection ends the scene, or blocks the test."""
        obj = self._completed(obj)
        for mistake in pod_behaviors.mistakes_of_set(obj) if obj.get("kind") == "PodCliqueSet" else ():
            raise mistake
        self._require(obj)
        self.acts.append(("create", obj))
        expectation = f"{obj.get('kind')} {obj.get('metadata', {}).get('name')} is accepted"
        created = self._attempt(expectation, lambda: self._create(obj))
        self._note(obj, created)
        return created

    def create_all(self, objects: Sequence[Object]) -> None:
        """Create many namespaced objects at once, then write their `status` if they have one."""
        objects = [self._completed(obj) for obj in objects]
        self._require(objects)
        self.acts += [("create", obj) for obj in objects]
        self._attempt(f"{len(objects)} objects are accepted", lambda: self._api.make_all(objects, self._note))

    def patch(
        self,
        resource: str,
        name: str,
        patch: Mapping[str, Any],
        *,
        subresource: str | None = None,
        missing_ok: bool = False,
    ) -> Object:
        """Apply a JSON merge patch to an object of the test's namespace (or a cluster-scoped one). It has arrived in
        the history when this returns: later waits do not see the state before. With `missing_ok`, nothing is written
        and an empty object returned if the implementation has deleted the object in the meantime."""
        self._require(patch)
        self.acts.append((f"patch {resource}/{name}{f'/{subresource}' if subresource else ''}", dict(patch)))

        def write() -> Object:
            try:
                return self._api.patch(resource, self._place(resource), name, patch, subresource)
            except ApiError as error:
                if missing_ok and error.not_found:
                    return {}
                raise

        written = self._attempt(f"a patch of {resource}/{name} is accepted", write)
        if written:
            self.sole_writer.patched(resource, name, patch, written)
            self._waits.for_write(resource, name, text(written, "metadata", "resourceVersion"))
        return written

    def ungate(self, pods: Sequence[str]) -> None:
        """Remove the scheduling gates of several pods at once. All of that has arrived when this returns."""
        patch = {"spec": {"schedulingGates": None}}
        self.acts += [(f"patch pods/{name}", patch) for name in pods]
        expectation = f"the gates of {len(pods)} pods can be removed"
        answers = self._attempt(
            expectation, lambda: self._api.patch_all("pods", self.namespace, dict.fromkeys(pods, patch))
        )
        for name, written in zip(pods, answers, strict=True):
            self._waits.for_write("pods", name, text(written, "metadata", "resourceVersion"))

    def delete(self, resource: str, name: str, propagation: str = "Background") -> None:
        """Delete an object. A rejection ends the scene, or blocks the test."""
        self.acts.append((f"delete {resource}/{name}", {"propagationPolicy": propagation}))
        self.sole_writer.deleted(resource, name)
        if resource == "pods":
            self.outdate(name)
        self._attempt(
            f"the deletion of {resource}/{name} is accepted",
            lambda: self._api.delete(resource, self._place(resource), [name], propagation),
        )

    def evict(self, pod: str) -> str:
        """Evict a pod, as `kubectl drain` does. Return why it was rejected; empty if it was not."""
        self.acts.append((f"evict pods/{pod}", {}))
        self.outdate(pod)
        try:
            self._api.evict(self.namespace, pod)
        except ApiError as error:
            self._blame()
            return words(error)
        self.history.stir()
        return ""

    def outdate(self, pod: str) -> None:
        """Note that the test deletes a pod, or has given it another template's hash: its end has a cause. A later pod
        of the same name is another one."""
        if (record := self.history.log.last("pods", self.namespace, pod)) is not None:
            self.history.origins.excused.add(record.uid)

    def complete_origins(self) -> None:
        """Note what rules have to know of who wrote what, and what only the end of the test tells."""
        self.history.origins.excused |= self.roles.went_earlier()
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
        """Wait until the condition holds, and mark that time as a step of the scene. A step that is not reached ends
        the scene and fails nothing by itself: that is for the requirement that asks for it. The wait ends early if a
        process of the implementation ends. `real`: the time scale does not shorten it."""
        try:
            answer = self._wait(step, condition, timeout, resources=resources, real=real)
        except NotReached as error:
            raise SceneEnded(step, str(error), self.history.now()) from None
        self.mark(step)
        return answer

    def settle(
        self,
        step: str,
        condition: Callable[[View], object],
        timeout: float = 30,
        *,
        resources: Sequence[str] | None = None,
        real: bool = False,
    ) -> View:
        """Wait until the condition holds or time is up, and mark that time as a step in either case: for a state that a
        test compares, or if the scene can go on. If time was up, the step was not reached."""
        unmet = ""
        try:
            self._wait(step, condition, timeout, resources=resources, real=real)
        except NotReached as error:
            unmet = str(error)
        self.mark(step, unmet)
        return self.history.view()

    def require_alive(self, step: str) -> None:
        """End the scene, as if it had waited for `step` in vain, if a process of the implementation has exited
        unexpectedly: what happens afterwards says nothing about the placements that it would have made."""
        if dead := self.roles.dead():
            raise SceneEnded(step, dead, self.history.now())

    def require_in_time(self, event: str, begin: float, seconds: float) -> None:
        """Raise HarnessError if more than so many seconds have passed since an event of the history, after which the
        suite had to act: then it was too slow itself, and what follows says nothing about the implementation."""
        if (seconds_passed := self.history.now() - begin) > seconds:
            delay = f"the suite acted {seconds_passed:.1f} s after {event}, and had to act within {seconds:g} s"
            hint = "give the machine less to do, or a larger --time-scale"
            raise HarnessError(f"the machine was too slow: {delay}", hint=hint)

    def mark(self, step: str, unmet: str = "") -> None:
        """Mark the present as a step of the scene. `unmet`: what was seen instead of the step."""
        if step in self.steps:
            raise HarnessError(f"duplicate step {step!r}", where=self.namespace)
        self.acts.append((WAIT, {"for": step}))
        self.steps[step] = Step.now(step, self.history, unmet)
        self.after_step()

    def settled(
        self, description: str, predicate: Callable[[View], object], timeout: float = 30, *, real: bool = False
    ) -> View:
        """Return the state as soon as the predicate holds, when time is up, or when a process of the implementation has
        ended by itself. Judges nothing. `real` as in `wait_for`."""
        with contextlib.suppress(WaitTimeout):
            self._waits.wait(description, predicate, timeout, hopeless=self._hopeless_or_dead, real=real)
        return self.history.view()

    def quiet(
        self,
        seconds: float = 2,
        timeout: float = 30,
        *,
        real: bool = False,
        of: Collection[str] = MOVING,
        unless: Callable[[View], bool] = lambda view: False,
    ) -> View:
        """Return the state once nothing `of` these has changed for `seconds`, or for `settle` of the judged scheduler,
        or when `unless` holds after a change or time is up. `real`: whatever the time scale. It never shows that
        something has happened: on a busy machine that needs a wait of its own."""
        self.acts.append((WAIT, {"for": f"no change for {seconds:g} s"}))
        self._waits.quiet(seconds, timeout, real=real, of=of, settle=self.implementation.settle, unless=unless)
        self._sound(False)
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
        """Raise NotReached with the state that was seen instead."""
        try:
            return self._waits.wait(
                description, condition, timeout, hopeless=self._hopeless_or_dead, real=real, resources=resources
            )
        except WaitTimeout as error:
            self._blame()
            if unattended_pods := unattended.pods_of(
                self.history, self.pool, unattended.WITHIN * max(1.0, self._scale)
            ):
                raise HarnessError(f"the cluster was too slow: {unattended_pods}", where=f"pool {self.pool}") from None
            if answer := self._refused.words():
                raise Blocked(
                    f"the cluster has refused what the scene needs: {answer}", "circumstances", description
                ) from None
            dead = self.roles.dead() or self._waits.lifeless(self.roles.last_words)
            silent = "" if dead else self._waits.silent(timeout)
            raise NotReached("\n".join(filter(None, (dead, str(error), silent)))) from None

    # -- within --------------------------------------------------------------------------------------------------

    def _turn(self, node: str, *, lost: bool) -> None:
        self.patch("nodes", node, {"metadata": {"labels": {LOST: "yes" if lost else None}}})

        def turned(view: View) -> bool | Unmet:
            current = view.get("nodes", node)
            if not lost:
                return nodes.schedulable(current) or Unmet(f"node {node} is not Ready, or has its taints still")
            if condition_is(current, "Ready") != "Unknown":
                return Unmet(f"node {node} is not Ready=Unknown")
            ready_pods = sum(pods.ready(pod) for pod in view.list("pods") if pods.node(pod) == node)
            return not ready_pods or Unmet(f"{ready_pods} pods are still Ready on the lost node {node}")

        description, limit = f"node {node} is {'lost' if lost else 'back'}", self.patience(60)
        try:
            self.history.wait(description, turned, limit, hopeless=self._hopeless)
        except WaitTimeout as error:
            self._blame()
            raise HarnessError(error.unmet or str(error), where=f"node {node}") from error

    def _require(self, obj: object) -> None:
        """Raise Blocked if the cluster does not play what an object, or a patch of one, asks for."""
        for ability in sorted(abilities.needed(obj) if self._unplayed else ()):
            if ability in self._unplayed:
                reason = f"the cluster does not play {ability}: {self._unplayed[ability]} (docs/fake-cluster.md)"
                raise Blocked(reason, "circumstances")

    def _note(self, obj: Object, created: Object) -> None:
        self.history.origins.sent(obj, created)
        self.sole_writer.created(obj, created)

    def _create(self, obj: Object) -> Object:
        if "namespace" not in obj.get("metadata", {}) and self._api.of_object(obj).namespaced:
            obj = {**obj, "metadata": {**obj.get("metadata", {}), "namespace": self.namespace}}
        return self._api.create(obj)

    def _attempt(self, description: str, action: Callable[[], R]) -> R:
        try:
            done = action()
            self.history.stir()
            return done
        except (ApiError, NotServed) as error:
            self._blame()
            if isinstance(error, ApiError) and self._refused.by_cluster(error.message):
                raise Blocked(
                    f"the cluster has refused what the scene needs: {words(error)}", "circumstances"
                ) from None
            dead = self.roles.dead()
            reason = words(error) + (f"; {dead}" if dead else "")
            raise self.checks.broken(description, "accepted", reason, at=round(self.history.now(), 3)) from None

    def _place(self, resource: str) -> str | None:
        try:
            return self.namespace if self._api.of_plural(resource).namespaced else None
        except NotServed:
            return self.namespace

    def _hopeless(self) -> bool:
        """End a wait at once if the cluster does not work, or if somebody has deleted nodes of the test."""
        self._sound(False)
        if self.premises.deleted_nodes():
            self._blame()
        return False

    def _hopeless_or_dead(self) -> bool:
        """As `_hopeless`; also whether a process of the implementation has ended by itself."""
        return self._hopeless() or bool(self.roles.dead())

    def _blame(self) -> None:
        """Called before the implementation is blamed for a timeout: raises HarnessError if the cluster itself was not
        healthy, and ends the scene if the implementation has deleted the test's namespace or nodes."""
        self._sound(True)
        self.require_premises()

    def require_premises(self, unusable: Sequence[str] = ()) -> None:
        """End the scene if somebody has deleted the namespace or nodes of the test, or has changed nodes that are
        `unusable`."""
        if reason := self.premises.accusation(unusable):
            expectation = "only the suite changes the namespace and the nodes of a test"
            raise self.checks.broken(expectation, expectation, reason, at=round(self.history.now(), 3))
