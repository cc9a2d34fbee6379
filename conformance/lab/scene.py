"""The scene of the laboratory: a set is deployed, then all its components are changed while something else happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from conformance.cluster import nodes
from conformance.grove import pods
from conformance.grove.coherent.model import Component, Key, Layout
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.lab import experiment, measures
from conformance.suite.scenes.api import Object
from conformance.testing import predicates
from conformance.testing.scene import Scene, SceneEnvironment
from conformance.tests.coherent import sets
from conformance.tests.coherent.sets import GROUPS, SETS, TIMEOUT_SECONDS

SET, URGENT = "s", "urgent"
CHANGE, UPDATED, REST = "change", "updated", "at rest"
PRIORITY = "system-cluster-critical"
ANNOTATION = "grove.io/coherent-gang-layout"
HELD_SECONDS = 3.0
"""Seconds for which a node stays failed, or for which another pod occupies it."""
GPU = {"nvidia.com/gpu": "1"}


class UpdateUnderObservation(Scene):
    """A set whose pods have a node each and become Ready one second after they are bound. No other node is free."""

    def __init__(self, trial: experiment.Trial) -> None:
        self.trial = trial
        self.orphans: list[str] | None = None
        self.largest_shared_gang = 0

    def play(self, env: SceneEnvironment) -> None:
        """Deploy the set, change it, disturb the update, and wait until the update is complete."""
        self.workload = self._manifest(env)
        self.components: list[Component] = sets.components(self.workload)
        env.nodes("single", _pod_count(self.workload))
        env.create(self.workload)
        env.wait_for("deployed", sets.is_deployed(SET), TIMEOUT_SECONDS)
        env.quiet(1, real=True)
        self.writes_before = env.audit.mark() if env.audit else 0
        cliques = [clique["name"] for clique in self.workload["spec"]["template"]["cliques"]]
        env.mark(CHANGE)
        self.old_generation_hash = sets.change_images(env, self.workload, *cliques, tag="2")
        match self.trial.course.name:
            case experiment.PREEMPTION:
                self._preempt(env)
            case experiment.NODE_FAILURE:
                self._fail_node(env)
        env.wait_for(UPDATED, sets.is_updated(SET, self.old_generation_hash), TIMEOUT_SECONDS)
        env.quiet(1, real=True)
        self.writes_after = env.audit.mark() if env.audit else 0
        env.mark(REST)
        layout = sets.layout(env.history.view(), SET)
        self.largest_shared_gang = measures.largest_shared_gang(layout, self.components)
        if self.trial.course.name == experiment.QUIET:
            self._scale_in(env, layout)
        env.delete(SETS, SET)
        env.wait_for("deleted", lambda view: not view.names("pods"), TIMEOUT_SECONDS)

    def _manifest(self, env: SceneEnvironment) -> Object:
        trial_workload = self.trial.workload
        workload = sets.set_manifest(env, SET, trial_workload.cliques, trial_workload.groups)
        for group in workload["spec"]["template"].get("podCliqueScalingGroups", ()):
            if group["name"] in trial_workload.budgets:
                group["rollingUpdate"] = {"maxUnavailable": trial_workload.budgets[group["name"]]}
        for clique in workload["spec"]["template"]["cliques"]:
            clique["spec"]["podSpec"]["containers"][0]["resources"] = {"requests": GPU, "limits": GPU}
            env.set_behavior(workload, clique["name"], "realistic", running_after="0s", ready_after="1s")
        if self.trial.layout.annotation:
            workload["metadata"]["annotations"] = {ANNOTATION: self.trial.layout.annotation}
        return workload

    # -- disturbances ------------------------------------------------------------------------------------------------

    def _preempt(self, env: SceneEnvironment) -> None:
        """Give the node of a new replica to a pod of higher priority for a while."""
        group = next(component for component in self.components if component.key.name == "p")
        env.wait_for("replica to preempt", self._has_replica_to_preempt(group), TIMEOUT_SECONDS)
        view = env.history.view()
        index = max(
            self._new_replicas(view, group),
            key=lambda replica: (replica >= group.minimum, _shared_gang_size(view, group.key, replica)),
        )
        [victim] = predicates.pods_of(view, f"{SET}-0-p-{index}-pl")
        env.create(self._urgent_manifest(env, pods.node(victim)))
        env.wait_for("preempted", lambda view: any(map(pods.is_bound, sets.pods_of_set(view, URGENT))), 60)
        env.quiet(HELD_SECONDS, timeout=HELD_SECONDS, real=True)
        env.delete(SETS, URGENT)
        env.mark("no longer preempted")

    def _urgent_manifest(self, env: SceneEnvironment, node: str) -> Object:
        workload = sets.set_manifest(env, URGENT, {"u": (1, 1)}, strategy=sets.ROLLING, priorityClassName=PRIORITY)
        [clique] = workload["spec"]["template"]["cliques"]
        clique["spec"]["podSpec"]["nodeSelector"][nodes.HOSTNAME] = node
        clique["spec"]["podSpec"]["containers"][0]["resources"] = {"requests": GPU, "limits": GPU}
        return workload

    def _has_replica_to_preempt(self, group: Component) -> Callable[[View], bool | Unmet]:
        """Return a predicate: a new replica above the minimum shares its gang, or more than half of the replicas are
        new."""

        def is_worth_preempting(view: View) -> bool | Unmet:
            new_replicas = list(self._new_replicas(view, group))
            if any(
                replica >= group.minimum and _shared_gang_size(view, group.key, replica) > 1 for replica in new_replicas
            ):
                return True
            return 2 * len(new_replicas) > group.replicas or Unmet(
                f"{len(new_replicas)} of {group.replicas} replicas are new"
            )

        return is_worth_preempting

    def _fail_node(self, env: SceneEnvironment) -> None:
        """Let the node of an old replica fail for a while."""
        group = next(component for component in self.components if component.key.name == "p")
        env.wait_for(
            "a new replica of p", lambda view: any(True for _ in self._new_replicas(view, group)), TIMEOUT_SECONDS
        )
        view = env.history.view()
        old_replicas = [
            replica for replica in range(group.replicas) if not self._has_version(view, group, replica, "2")
        ]
        [victim] = predicates.pods_of(view, f"{SET}-0-p-{max(old_replicas, default=group.replicas - 1)}-pl")
        env.fail_node(pods.node(victim))
        env.mark("node failed")
        env.quiet(HELD_SECONDS, timeout=HELD_SECONDS, real=True)
        env.recover_node(pods.node(victim))
        env.mark("node recovered")

    def _new_replicas(self, view: View, group: Component) -> Iterator[int]:
        """Return the group's replicas whose pods are all new and Ready."""
        return (
            replica for replica in range(group.replicas) if self._has_version(view, group, replica, "2", ready=True)
        )

    def _has_version(self, view: View, group: Component, index: int, tag: str, *, ready: bool = False) -> bool:
        cliques = [f"{SET}-0-{group.key.name}-{index}-{member}" for member in sets.members(group.key.name)]
        current_pods = [pod for clique in cliques for pod in predicates.pods_of(view, clique)]
        is_complete = len(current_pods) == len(cliques)
        return is_complete and all(
            sets.image_tag(pod) == tag and (pods.is_ready(pod) or not ready) for pod in current_pods
        )

    # -- after the update --------------------------------------------------------------------------------------------

    def _scale_in(self, env: SceneEnvironment, before: Layout) -> None:
        """Scale the last of several scaling groups in to its minimum, and record which replicas lose their partners."""
        groups = [component for component in self.components if component.key.kind == "group"]
        if len(groups) < 2:
            return
        last_group = groups[-1]
        patch: Mapping[str, Any] = {"spec": {"replicas": last_group.minimum}}
        env.patch(GROUPS, f"{SET}-0-{last_group.key.name}", patch, subresource="scale")
        env.wait_for("scaled in", sets.is_followed(SET, last_group.key.name, last_group.minimum), TIMEOUT_SECONDS)
        self.orphans = measures.orphans(before, sets.layout(env.history.view(), SET))


def _pod_count(workload: Object) -> int:
    """Return the number of pods of a set that has one replica."""
    template = workload["spec"]["template"]
    replicas_by_clique = {
        name: g["replicas"] for g in template.get("podCliqueScalingGroups", ()) for name in g["cliqueNames"]
    }
    return sum(clique["spec"]["replicas"] * replicas_by_clique.get(clique["name"], 1) for clique in template["cliques"])


def _shared_gang_size(view: View, key: Key, index: int) -> int:
    return measures.shared_gang_size(sets.layout(view, SET), key, index)
