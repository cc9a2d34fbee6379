"""Runs of many gang-scheduling scenarios at once in the namespace of one scene, each scenario on its own nodes. The
suite creates the objects that an operator would create.

The scheduler is stopped while the objects are created, so that it sees everything at once. If the driver cannot stop
the scheduler, the nodes are first cordoned and then uncordoned one after the other. In that case, results that depend
on the order are not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.grove import labels
from conformance.grove.fields import items, label, name, text
from conformance.grove.health import HOLD_STATUS
from conformance.grove.scheduling import manifests
from conformance.grove.scheduling.history import PodBound, PodDeleted
from conformance.grove.scheduling.instance import HOST, Gang, Group, Instance, Node, SchedulingOutcome
from conformance.grove.scheduling.manifests import Testbed
from conformance.grove.scheduling.scenarios import Scenario
from conformance.history.origins import ByHand
from conformance.history.query import Unmet
from conformance.history.record import DELETED, Record
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.suite.scenes.scene_environment import SceneEnvironment
from conformance.testing.blocked_deletion import FINALIZER
from conformance.testing.part import NO_PRIORITY, ScenarioRun

STATUS_TIME = "2026-01-01T00:00:00Z"
REST_LIMIT_SECONDS, QUIET_SECONDS = 30.0, 2.0
"""The seconds within which everything must come to rest (GS-43), and the seconds without any change that prove the
rest."""
SCHEDULER_WORKS, AT_REST = "scheduler binds a gang that is alone", "scenarios at rest"
"""Steps of the scene. The first step is reached when a gang of one pod is bound, before any scenario starts. The second
step is reached when all scenarios are at rest. After it, some scenarios change."""
_WITNESS = Instance(
    (Node("n1", {"gpus": 1}, {HOST: "n1"}),), (Gang("alone", (Group("w", 1, 1, {"gpus": 1}),)),), name="alone"
)
"""An instance that shows whether the scheduler works at all, independently of the judged scenarios."""
AT_REST_AFTER_CHANGES = "scenarios at rest after their changes"
"""The step before which the scene ends if the scheduler dies after the changes."""
SETTLE_MULTIPLE = 6
"""The time limit for coming to rest, as a multiple of the implementation's `settle`. If nothing has changed for
`settle` seconds, the scheduler has nothing left to do."""


@dataclass
class Move:
    """A binding or an eviction by the scheduler, and its time."""

    time: float
    step: PodBound | PodDeleted


@dataclass
class ScenarioResult:
    """The result of a scenario, either before or after its change."""

    scenario: Scenario
    instance: Instance
    changed: bool
    moves: list[Move]
    outcome: SchedulingOutcome
    end_time: float
    nominated: dict[str, str]
    """Waiting pod → the node for which it is nominated."""


class ScenarioRunner:
    """One run of many scenarios. `run` returns their results. `saw_everything_at_once` tells whether the scheduler saw
    all objects at the same time."""

    def __init__(self, env: SceneEnvironment, scenarios: Sequence[Scenario]) -> None:
        self.env = env
        self.runs = [self._part(scenario) for scenario in scenarios]
        self.features = env.implementation.features
        self.saw_everything_at_once, self.has_priorities = True, NO_PRIORITY not in self.features
        self._cluster_scoped: list[tuple[str, str]] = []
        """The resource and name of each cluster-scoped object that was created."""
        self._changed_prefixes: set[str] = set()

    def _part(self, scenario: Scenario) -> ScenarioRun:
        return ScenarioRun(scenario, self.env.testbed(manifests.object_name(scenario.id)), scenario.instance)

    def run(self) -> list[ScenarioResult]:
        """Run all scenarios, then apply the changes of the scenarios that have one."""
        try:
            self._wait_for_working_scheduler()
            self.saw_everything_at_once = self.env.roles.pause("gang-scheduler")
            self._set_up()
            self._start_scheduling()
            # Wait in real time, because the start of the scheduler is not judged.
            self.env.settled("the scheduler is back", self._any_bound, REST_LIMIT_SECONDS, real=True)
            self._come_to_rest(self.runs, AT_REST)
            self.env.mark(AT_REST)
            results = [self._result(run) for run in self.runs]
            runs_with_change = [run for run in self.runs if run.scenario.change is not None]
            for run in runs_with_change:
                self._apply_change(run)
            if runs_with_change:
                self._come_to_rest(runs_with_change, AT_REST_AFTER_CHANGES)
                results += [self._result(run) for run in runs_with_change]
            return results
        finally:
            self._clean_up()

    # -- making --------------------------------------------------------------------------------------------------

    def _wait_for_working_scheduler(self) -> None:
        testbed = self.env.testbed(_WITNESS.name)
        self._create_classes([_WITNESS])
        self.env.create_nodes(manifests.nodes(_WITNESS, testbed))
        self._create_objects([(_WITNESS, testbed)])
        [pod] = manifests.pods(_WITNESS, testbed)

        def bound(view: View) -> bool | Unmet:
            node = text(view.get("pods", name(pod)), "spec", "nodeName")
            return bool(node) or Unmet(f"{name(pod)} is not bound to a node")

        self.env.wait_for(SCHEDULER_WORKS, bound, REST_LIMIT_SECONDS, resources=("pods",), real=True)

    def _set_up(self) -> None:
        self._create_classes([run.instance for run in self.runs])
        for run in self.runs:
            if (binding := manifests.topology_binding(run.instance, run.testbed)) is not None:
                self._create_if_served("clustertopologybindings", binding)
        nodes = [node for run in self.runs for node in manifests.nodes(run.instance, run.testbed)]
        if not self.saw_everything_at_once:
            nodes = [{**node, "spec": {**node["spec"], "unschedulable": True}} for node in nodes]
        self.env.create_nodes(nodes)
        self._create_objects([(run.instance, run.testbed) for run in self.runs])

    def _create_classes(self, instances: Sequence[Instance]) -> None:
        for entry in {c["value"]: c for instance in instances for c in manifests.priority_classes(instance)}.values():
            self._create_if_served("priorityclasses", entry)

    def _create_if_served(self, resource: str, obj: Object) -> None:
        """Create a cluster-scoped object, unless one with its name exists or the cluster does not serve its kind."""
        if self.env.dry_run.ask(self.env.dry_run.create(obj)).accepted:
            self.env.create(obj)
            self._cluster_scoped.append((resource, name(obj)))

    def _create_objects(self, instances: Sequence[tuple[Instance, Testbed]]) -> None:
        """Create gangs before their pods, and base gangs before scaled gangs."""
        batches: list[list[Object]] = [[], [], []]
        for instance, testbed in instances:
            batches[0] += [
                {**gang, **manifests.gang_status(STATUS_TIME)} for gang in manifests.gangs(instance, testbed)
            ]
            states = {testbed.name(pod.name): pod.state for pod in instance.running}
            batches[1] += [_in_state(pod, states[name(pod)]) for pod in manifests.running_pods(instance, testbed)]
            batches[2] += manifests.pods(instance, testbed)
        for objects in batches:
            self.env.create_all(objects)
        for pod in batches[1]:
            if pod["metadata"].get("finalizers"):
                self.env.delete("pods", name(pod))

    def _start_scheduling(self) -> None:
        if self.saw_everything_at_once:
            self.env.roles.restart("gang-scheduler")
            return
        for run in self.runs:
            for node in run.instance.nodes:
                if node.schedulable:
                    self._update_node(node, run.testbed)

    def _apply_change(self, run: ScenarioRun) -> None:
        change = run.scenario.change
        assert change is not None
        old_instance = run.instance
        run.initial_bindings = [step for step in _still_bound(self._moves(run)) if step.gang not in change.deleted]
        run.change_mark = self.env.history.mark()
        run.instance, run.outcome, run.violation = (
            old_instance.after(SchedulingOutcome(), change),
            None,
            "nothing was changed yet",
        )
        old_names = {node.name for node in old_instance.nodes}
        self.env.create_nodes(
            manifests.nodes(Instance(tuple(n for n in change.nodes if n.name not in old_names), ()), run.testbed)
        )
        for node in change.nodes:
            if node.name in old_names:
                self._update_node(node, run.testbed)
        self._create_objects([(Instance(change.nodes, change.gangs), run.testbed)])
        for gang in change.deleted:
            self.env.delete("podgangs", run.testbed.name(gang))
            for pod in self._pods(run):
                if label(pod, labels.GANG) == run.testbed.name(gang):
                    self.env.delete("pods", name(pod))

    def _update_node(self, node: Node, testbed: Testbed) -> None:
        """Update the labels, taints and schedulability of an existing node."""
        [manifest] = manifests.nodes(Instance((node,), ()), testbed)
        spec = {"taints": manifest["spec"]["taints"], "unschedulable": manifest["spec"].get("unschedulable")}
        self.env.patch("nodes", name(manifest), {"metadata": {"labels": manifest["metadata"]["labels"]}, "spec": spec})

    def _clean_up(self) -> None:
        """Remove the finalizers of pods, and delete the cluster-scoped objects. Neither may outlive the scene."""
        for pod in self.env.history.view().list("pods"):
            if FINALIZER in pod["metadata"].get("finalizers", ()):
                self.env.patch("pods", name(pod), {"metadata": {"finalizers": None}})
        for resource, object_name in self._cluster_scoped:
            self.env.delete(resource, object_name)

    # -- watching ------------------------------------------------------------------------------------------------

    def _any_bound(self, view: View) -> bool | Unmet:
        old_names = {run.testbed.name(pod.name) for run in self.runs for pod in run.instance.running}
        old_names |= {name(pod) for pod in manifests.pods(_WITNESS, self.env.testbed(_WITNESS.name))}
        return any(text(pod, "spec", "nodeName") and name(pod) not in old_names for pod in view.list("pods")) or Unmet(
            "no pod was bound to a node"
        )

    def _come_to_rest(self, runs: Sequence[ScenarioRun], step: str) -> None:
        """Wait until all pods are where they may be and nothing changes any more. During the wait, the suite removes
        each gate at most once and recreates each pod a limited number of times, so the wait ends. The scene ends before
        `step` if the scheduler has died."""
        limit_seconds = max(REST_LIMIT_SECONDS, SETTLE_MULTIPLE * self.env.implementation.settle)
        while True:
            self._changed_prefixes = {run.testbed.prefix for run in runs}
            self.env.settled(
                "every scenario is at rest where it may be", lambda view: self._are_at_rest(runs, view), limit_seconds
            )
            if not self._act_as_operator(runs):
                view = self.env.quiet(
                    QUIET_SECONDS, limit_seconds, unless=lambda view: self._has_owed_actions(runs, view)
                )
                self._changed_prefixes = {run.testbed.prefix for run in runs}
                self._are_at_rest(runs, view)
                if not self._act_as_operator(runs):
                    self.env.require_alive(step)
                    return

    def _has_owed_actions(self, runs: Sequence[ScenarioRun], view: View) -> bool:
        """Judge the scenarios that have changed, and return whether the suite has to act in place of an operator."""
        if view.last is not None and view.last.resource == "pods":
            origin = self.env.history.origins.by_hand.get(view.last.uid)
            self._changed_prefixes |= {origin.scenario} if origin is not None else set()
        for run in runs:
            if run.testbed.prefix in self._changed_prefixes:
                run.judge_placement(self._pods(run, view), self.features)
        self._changed_prefixes = set()
        return any(run.gangs_to_ungate or run.pods_to_replace or run.pods_to_recreate for run in runs)

    def _are_at_rest(self, runs: Sequence[ScenarioRun], view: View) -> bool | Unmet:
        if self._has_owed_actions(runs, view):
            return True
        restless_runs = [f"{run.testbed.prefix}: {run.violation}" for run in runs if run.violation]
        return not restless_runs or Unmet(
            f"{len(restless_runs)} of {len(runs)} scenarios are not: {'; '.join(restless_runs[:3])}"
        )

    def _act_as_operator(self, runs: Sequence[ScenarioRun]) -> bool:
        """Act in place of an operator, and return whether there was anything to do."""
        return any([self._remove_gates(runs), self._recreate(runs)])

    def _recreate(self, runs: Sequence[ScenarioRun]) -> bool:
        """Recreate pods that the scheduler has deleted, if it expects that. A pod that ran from the start gets another
        name, so that its new node is distinguished from its old one. The reference in its gang is updated."""
        lost = [(run, pod) for run in runs for pod in run.pods_to_replace]
        absent = [(run, pod) for run in runs for pod in run.pods_to_recreate]
        for run, pod in lost:
            run.replaced_pods.add(pod.name)
            if pod.gang:
                gang = run.testbed.name(pod.gang)
                current = self.env.history.view().get("podgangs", gang)
                groups = manifests.recreated_references(items(current, "spec", "podgroups"), pod, run.testbed)
                self.env.patch("podgangs", gang, {"spec": {"podgroups": groups}})
            self.env.create(manifests.recreated_pod(run.instance, pod, run.testbed))
        for run, manifest in absent:
            run.recreation_counts[name(manifest)] += 1
            run.observed_names.discard(name(manifest))
            self.env.create(manifest)
        for run in runs:
            run.pods_to_replace, run.pods_to_recreate = [], []
        return bool(lost or absent)

    def _remove_gates(self, runs: Sequence[ScenarioRun]) -> bool:
        """Remove the gates of scaled gangs whose base gang is placed, as an operator does (GS-03)."""
        has_removed_gates = False
        for run in runs:
            for gang in run.gangs_to_ungate:
                has_removed_gates = True
                run.ungated_gangs.add(gang.name)
                for pod in self._pods(run):
                    if label(pod, labels.GANG) == run.testbed.name(gang.name):
                        other_gates = [
                            gate for gate in items(pod, "spec", "schedulingGates") if gate["name"] != labels.GATE
                        ]
                        self.env.patch("pods", name(pod), {"spec": {"schedulingGates": other_gates or None}})
            run.gangs_to_ungate = []
        return has_removed_gates

    # -- observed ----------------------------------------------------------------------------------------------------

    def _result(self, run: ScenarioRun) -> ScenarioResult:
        pods = self._pods(run)
        waiting = [pod for pod in pods if not text(pod, "spec", "nodeName")]
        nominated = {name(pod): text(pod, "status", "nominatedNodeName") for pod in waiting}
        now = self.env.history.now()
        return ScenarioResult(
            run.scenario,
            run.instance,
            bool(run.change_mark),
            [*(Move(0.0, step) for step in run.initial_bindings), *self._moves(run)],
            manifests.outcome(run.instance, pods, run.testbed),
            now,
            {pod: node for pod, node in nominated.items() if node},
        )

    def _pods(self, run: ScenarioRun, view: View | None = None) -> list[Object]:
        """Return the pods that the suite created for a scenario, with the labels that the suite gave them. A scheduler
        can change labels."""
        origins, pods = self.env.history.origins.by_hand, []
        for record in (view or self.env.history.view()).records("pods"):
            origin = origins.get(record.uid)
            if origin is not None and origin.scenario == run.testbed.prefix:
                pods.append({**record.object, "metadata": {**record.object["metadata"], "labels": origin.labels}})
        return pods

    def _moves(self, run: ScenarioRun) -> list[Move]:
        history = self.env.history
        return list(_moves(history.records("pods", after=run.change_mark), run, history.origins.by_hand))


def _moves(records: Iterable[Record], run: ScenarioRun, origins: Mapping[str, ByHand]) -> Iterable[Move]:
    testbed, instance = run.testbed, run.instance
    initial_pods = {testbed.name(pod.name): pod.name for pod in instance.running}
    recreated = {manifests.recreated_name(pod, testbed): pod.name for pod in instance.running}
    groups = {testbed.name(g.name, group.name): (g.name, group.name) for g in instance.gangs for group in g.groups}
    nodes = {testbed.node(node.name): node.name for node in instance.nodes}
    alive_pods = {step.pod for step in run.initial_bindings}
    for record in records:
        origin = origins.get(record.uid)
        if origin is None or origin.scenario != testbed.prefix:
            continue
        pod, node, clique = record.name, text(record.object, "spec", "nodeName"), origin.labels.get(labels.CLIQUE, "")
        if record.kind == DELETED:
            if pod in initial_pods or pod in alive_pods:
                alive_pods.discard(pod)
                yield Move(record.at, PodDeleted(initial_pods.get(pod, pod)))
        elif node and pod not in initial_pods and pod not in alive_pods and (clique in groups or pod in recreated):
            alive_pods.add(pod)
            yield Move(
                record.at, PodBound(pod, *groups.get(clique, ("", "")), nodes.get(node, node), recreated.get(pod, ""))
            )


def _still_bound(moves: Iterable[Move]) -> list[PodBound]:
    bindings_by_pod: dict[str, PodBound] = {}
    for move in moves:
        if isinstance(move.step, PodBound):
            bindings_by_pod[move.step.pod] = move.step
        else:
            bindings_by_pod.pop(move.step.pod, None)
    return list(bindings_by_pod.values())


def _in_state(pod: Object, state: str) -> Object:
    """Return a running pod in this state: with a finalizer so that it keeps terminating, or finished."""
    if state == "terminating":
        return {**pod, "metadata": {**pod["metadata"], "finalizers": [FINALIZER]}}
    if state != "finished":
        return pod
    metadata = pod["metadata"]
    annotated = {**metadata, "annotations": {**metadata.get("annotations", {}), HOLD_STATUS: "true"}}
    return {**pod, "metadata": annotated, "status": {"phase": "Succeeded"}}
