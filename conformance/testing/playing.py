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

NOW = "2026-01-01T00:00:00Z"
WITHIN, REST = 30.0, 2.0
"""The seconds within which everything must come to rest (GS-43), and the seconds without any change that prove the
rest."""
AT_WORK, AT_REST = "scheduler binds a gang that is alone", "scenarios at rest"
"""Steps of the scene. The first step is reached when a gang of one pod is bound, before any scenario starts. The second
step is reached when all scenarios are at rest. After it, some scenarios change."""
_WITNESS = Instance(
    (Node("n1", {"gpus": 1}, {HOST: "n1"}),), (Gang("alone", (Group("w", 1, 1, {"gpus": 1}),)),), name="alone"
)
"""An instance that shows whether the scheduler works at all, independently of the judged scenarios."""
CHANGED = "scenarios at rest after their changes"
"""The step before which the scene ends if the scheduler dies after the changes."""
CYCLES = 6
"""The time limit for coming to rest, as a multiple of the implementation's `settle`. If nothing has changed for
`settle` seconds, the scheduler has nothing left to do."""


@dataclass
class Move:
    """A binding or an eviction by the scheduler, and its time."""

    at: float
    step: PodBound | PodDeleted


@dataclass
class ScenarioResult:
    """The result of a scenario, either before or after its change."""

    scenario: Scenario
    instance: Instance
    changed: bool
    moves: list[Move]
    outcome: SchedulingOutcome
    end: float
    nominated: dict[str, str]
    """Waiting pod → the node for which it is nominated."""


class ScenarioRunner:
    """One run of many scenarios. `run` returns their results. `at_once` is True if the scheduler saw everything at
    once."""

    def __init__(self, env: SceneEnvironment, cast: Sequence[Scenario]) -> None:
        self.env = env
        self.parts = [self._part(scenario) for scenario in cast]
        self.features = env.implementation.features
        self.at_once, self.ranked = True, NO_PRIORITY not in self.features
        self._cluster_scoped: list[tuple[str, str]] = []
        """The resource and name of each cluster-scoped object that was created."""
        self._dirty: set[str] = set()

    def _part(self, scenario: Scenario) -> ScenarioRun:
        return ScenarioRun(scenario, self.env.testbed(manifests.object_name(scenario.id)), scenario.instance)

    def run(self) -> list[ScenarioResult]:
        """Run all scenarios, then apply the changes of the scenarios that have one."""
        try:
            self._await_work()
            self.at_once = self.env.roles.pause("gang-scheduler")
            self._set_up()
            self._begin()
            # Wait in real time, because the start of the scheduler is not judged.
            self.env.settled("the scheduler is back", self._any_bound, WITHIN, real=True)
            self._come_to_rest(self.parts, AT_REST)
            self.env.mark(AT_REST)
            results = [self._played(part) for part in self.parts]
            changing = [part for part in self.parts if part.scenario.change is not None]
            for part in changing:
                self._change(part)
            if changing:
                self._come_to_rest(changing, CHANGED)
                results += [self._played(part) for part in changing]
            return results
        finally:
            self._leave()

    # -- making --------------------------------------------------------------------------------------------------

    def _await_work(self) -> None:
        testbed = self.env.testbed(_WITNESS.name)
        self._create_classes([_WITNESS])
        self.env.create_nodes(manifests.nodes(_WITNESS, testbed))
        self._make([(_WITNESS, testbed)])
        [pod] = manifests.pods(_WITNESS, testbed)

        def bound(view: View) -> bool | Unmet:
            node = text(view.get("pods", name(pod)), "spec", "nodeName")
            return bool(node) or Unmet(f"{name(pod)} is not bound to a node")

        self.env.wait_for(AT_WORK, bound, WITHIN, resources=("pods",), real=True)

    def _set_up(self) -> None:
        self._create_classes([part.instance for part in self.parts])
        for part in self.parts:
            if (binding := manifests.topology_binding(part.instance, part.testbed)) is not None:
                self._create_if_served("clustertopologybindings", binding)
        fleet = [node for part in self.parts for node in manifests.nodes(part.instance, part.testbed)]
        if not self.at_once:
            fleet = [{**node, "spec": {**node["spec"], "unschedulable": True}} for node in fleet]
        self.env.create_nodes(fleet)
        self._make([(part.instance, part.testbed) for part in self.parts])

    def _create_classes(self, instances: Sequence[Instance]) -> None:
        for entry in {c["value"]: c for instance in instances for c in manifests.priority_classes(instance)}.values():
            self._create_if_served("priorityclasses", entry)

    def _create_if_served(self, resource: str, obj: Object) -> None:
        """Create a cluster-scoped object, unless one with its name exists or the cluster does not serve its kind."""
        if self.env.dry_run.ask(self.env.dry_run.create(obj)).accepted:
            self.env.create(obj)
            self._cluster_scoped.append((resource, name(obj)))

    def _make(self, places: Sequence[tuple[Instance, Testbed]]) -> None:
        """Create gangs before their pods, and base gangs before scaled gangs."""
        batches: list[list[Object]] = [[], [], []]
        for instance, testbed in places:
            batches[0] += [{**gang, **manifests.gang_status(NOW)} for gang in manifests.gangs(instance, testbed)]
            states = {testbed.name(pod.name): pod.state for pod in instance.running}
            batches[1] += [_in_state(pod, states[name(pod)]) for pod in manifests.running_pods(instance, testbed)]
            batches[2] += manifests.pods(instance, testbed)
        for objects in batches:
            self.env.create_all(objects)
        for pod in batches[1]:
            if pod["metadata"].get("finalizers"):
                self.env.delete("pods", name(pod))

    def _begin(self) -> None:
        if self.at_once:
            self.env.roles.restart("gang-scheduler")
            return
        for part in self.parts:
            for node in part.instance.nodes:
                if node.schedulable:
                    self._renew(node, part.testbed)

    def _change(self, part: ScenarioRun) -> None:
        change = part.scenario.change
        assert change is not None
        before = part.instance
        part.begin = [step for step in _still_bound(self._moves(part)) if step.gang not in change.deleted]
        part.begin_seq = self.env.history.mark()
        part.instance, part.outcome, part.wrong = (
            before.after(SchedulingOutcome(), change),
            None,
            "nothing was changed yet",
        )
        old_names = {node.name for node in before.nodes}
        self.env.create_nodes(
            manifests.nodes(Instance(tuple(n for n in change.nodes if n.name not in old_names), ()), part.testbed)
        )
        for node in change.nodes:
            if node.name in old_names:
                self._renew(node, part.testbed)
        self._make([(Instance(change.nodes, change.gangs), part.testbed)])
        for gang in change.deleted:
            self.env.delete("podgangs", part.testbed.name(gang))
            for pod in self._pods(part):
                if label(pod, labels.GANG) == part.testbed.name(gang):
                    self.env.delete("pods", name(pod))

    def _renew(self, node: Node, testbed: Testbed) -> None:
        """Update the labels, taints and schedulability of an existing node."""
        [manifest] = manifests.nodes(Instance((node,), ()), testbed)
        spec = {"taints": manifest["spec"]["taints"], "unschedulable": manifest["spec"].get("unschedulable")}
        self.env.patch("nodes", name(manifest), {"metadata": {"labels": manifest["metadata"]["labels"]}, "spec": spec})

    def _leave(self) -> None:
        """Remove the finalizers of pods, and delete the cluster-scoped objects. Neither may outlive the scene."""
        for pod in self.env.history.view().list("pods"):
            if FINALIZER in pod["metadata"].get("finalizers", ()):
                self.env.patch("pods", name(pod), {"metadata": {"finalizers": None}})
        for resource, object_name in self._cluster_scoped:
            self.env.delete(resource, object_name)

    # -- watching ------------------------------------------------------------------------------------------------

    def _any_bound(self, view: View) -> bool | Unmet:
        old = {part.testbed.name(pod.name) for part in self.parts for pod in part.instance.running}
        old |= {name(pod) for pod in manifests.pods(_WITNESS, self.env.testbed(_WITNESS.name))}
        return any(text(pod, "spec", "nodeName") and name(pod) not in old for pod in view.list("pods")) or Unmet(
            "no pod was bound to a node"
        )

    def _come_to_rest(self, parts: Sequence[ScenarioRun], step: str) -> None:
        """Wait until all pods are where they may be and nothing changes any more. During the wait, the suite removes
        each gate at most once and recreates each pod a limited number of times, so the wait ends. The scene ends before
        `step` if the scheduler has died."""
        within = max(WITHIN, CYCLES * self.env.implementation.settle)
        while True:
            self._dirty = {part.testbed.prefix for part in parts}
            self.env.settled(
                "every scenario is at rest where it may be", lambda view: self._at_rest(parts, view), within
            )
            if not self._go_on(parts):
                view = self.env.quiet(REST, within, unless=lambda view: self._owed(parts, view))
                self._dirty = {part.testbed.prefix for part in parts}
                self._at_rest(parts, view)
                if not self._go_on(parts):
                    self.env.require_alive(step)
                    return

    def _owed(self, parts: Sequence[ScenarioRun], view: View) -> bool:
        """Judge the scenarios that have changed, and return whether the suite has to act in place of an operator."""
        if view.last is not None and view.last.resource == "pods":
            origin = self.env.history.origins.by_hand.get(view.last.uid)
            self._dirty |= {origin.scenario} if origin is not None else set()
        for part in parts:
            if part.testbed.prefix in self._dirty:
                part.look(self._pods(part, view), self.features)
        self._dirty = set()
        return any(part.free or part.lost or part.absent for part in parts)

    def _at_rest(self, parts: Sequence[ScenarioRun], view: View) -> bool | Unmet:
        if self._owed(parts, view):
            return True
        restless = [f"{part.testbed.prefix}: {part.wrong}" for part in parts if part.wrong]
        return not restless or Unmet(f"{len(restless)} of {len(parts)} scenarios are not: {'; '.join(restless[:3])}")

    def _go_on(self, parts: Sequence[ScenarioRun]) -> bool:
        """Act in place of an operator, and return whether there was anything to do."""
        return any([self._open_gates(parts), self._recreate(parts)])

    def _recreate(self, parts: Sequence[ScenarioRun]) -> bool:
        """Recreate pods that the scheduler has deleted, if it expects that. A pod that ran from the start gets another
        name, so that its new node is distinguished from its old one. The reference in its gang is updated."""
        lost = [(part, pod) for part in parts for pod in part.lost]
        absent = [(part, pod) for part in parts for pod in part.absent]
        for part, pod in lost:
            part.recreated.add(pod.name)
            if pod.gang:
                gang = part.testbed.name(pod.gang)
                current = self.env.history.view().get("podgangs", gang)
                groups = manifests.recreated_references(items(current, "spec", "podgroups"), pod, part.testbed)
                self.env.patch("podgangs", gang, {"spec": {"podgroups": groups}})
            self.env.create(manifests.recreated_pod(part.instance, pod, part.testbed))
        for part, manifest in absent:
            part.times[name(manifest)] += 1
            part.observed.discard(name(manifest))
            self.env.create(manifest)
        for part in parts:
            part.lost, part.absent = [], []
        return bool(lost or absent)

    def _open_gates(self, parts: Sequence[ScenarioRun]) -> bool:
        """Remove the gates of scaled gangs whose base gang is placed, as an operator does (GS-03)."""
        opened = False
        for part in parts:
            for gang in part.free:
                opened = True
                part.open.add(gang.name)
                for pod in self._pods(part):
                    if label(pod, labels.GANG) == part.testbed.name(gang.name):
                        other_gates = [
                            gate for gate in items(pod, "spec", "schedulingGates") if gate["name"] != labels.GATE
                        ]
                        self.env.patch("pods", name(pod), {"spec": {"schedulingGates": other_gates or None}})
            part.free = []
        return opened

    # -- observed ----------------------------------------------------------------------------------------------------

    def _played(self, part: ScenarioRun) -> ScenarioResult:
        pods = self._pods(part)
        waiting = [pod for pod in pods if not text(pod, "spec", "nodeName")]
        nominated = {name(pod): text(pod, "status", "nominatedNodeName") for pod in waiting}
        now = self.env.history.now()
        return ScenarioResult(
            part.scenario,
            part.instance,
            bool(part.begin_seq),
            [*(Move(0.0, step) for step in part.begin), *self._moves(part)],
            manifests.outcome(part.instance, pods, part.testbed),
            now,
            {pod: node for pod, node in nominated.items() if node},
        )

    def _pods(self, part: ScenarioRun, view: View | None = None) -> list[Object]:
        """Return the pods that the suite created for a scenario, with the labels that the suite gave them. A scheduler
        can change labels."""
        by_hand, pods = self.env.history.origins.by_hand, []
        for record in (view or self.env.history.view()).records("pods"):
            origin = by_hand.get(record.uid)
            if origin is not None and origin.scenario == part.testbed.prefix:
                pods.append({**record.object, "metadata": {**record.object["metadata"], "labels": origin.labels}})
        return pods

    def _moves(self, part: ScenarioRun) -> list[Move]:
        history = self.env.history
        return list(_moves(history.records("pods", after=part.begin_seq), part, history.origins.by_hand))


def _moves(records: Iterable[Record], part: ScenarioRun, by_hand: Mapping[str, ByHand]) -> Iterable[Move]:
    testbed, instance = part.testbed, part.instance
    before = {testbed.name(pod.name): pod.name for pod in instance.running}
    recreated = {manifests.recreated_name(pod, testbed): pod.name for pod in instance.running}
    groups = {testbed.name(g.name, group.name): (g.name, group.name) for g in instance.gangs for group in g.groups}
    nodes = {testbed.node(node.name): node.name for node in instance.nodes}
    alive = {step.pod for step in part.begin}
    for record in records:
        origin = by_hand.get(record.uid)
        if origin is None or origin.scenario != testbed.prefix:
            continue
        pod, node, clique = record.name, text(record.object, "spec", "nodeName"), origin.labels.get(labels.CLIQUE, "")
        if record.kind == DELETED:
            if pod in before or pod in alive:
                alive.discard(pod)
                yield Move(record.at, PodDeleted(before.get(pod, pod)))
        elif node and pod not in before and pod not in alive and (clique in groups or pod in recreated):
            alive.add(pod)
            yield Move(
                record.at, PodBound(pod, *groups.get(clique, ("", "")), nodes.get(node, node), recreated.get(pod, ""))
            )


def _still_bound(moves: Iterable[Move]) -> list[PodBound]:
    alive: dict[str, PodBound] = {}
    for move in moves:
        if isinstance(move.step, PodBound):
            alive[move.step.pod] = move.step
        else:
            alive.pop(move.step.pod, None)
    return list(alive.values())


def _in_state(pod: Object, state: str) -> Object:
    """Return a running pod in this state: with a finalizer so that it keeps terminating, or finished."""
    if state == "terminating":
        return {**pod, "metadata": {**pod["metadata"], "finalizers": [FINALIZER]}}
    if state != "finished":
        return pod
    metadata = pod["metadata"]
    annotated = {**metadata, "annotations": {**metadata.get("annotations", {}), HOLD_STATUS: "true"}}
    return {**pod, "metadata": annotated, "status": {"phase": "Succeeded"}}
