"""Tests of the fields on which a PodGroup and its pods must agree: priority, scheduler, preemption policy and
disruption mode."""

from __future__ import annotations

from conformance.grove.fields import text
from conformance.grove.kinds import SECOND_SCHEDULER
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing.benches import Bench, require_own_control_plane
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.workload_groups import Leaf, Tree, group

REFUSED_STATUS, ERROR_REASON = "False", "False/SchedulerError"
PRIORITY_TEN, PRIORITY_NEVER, PRIORITY_DEFAULT = "conformance-10", "conformance-never", "conformance-default"


class OddPriorities(Scene):
    """Two PodGroups, and room for all pods. In the first, only the PodGroup has a PriorityClass. In the second, only
    the pods have it."""

    def play(self, env: SceneEnvironment) -> None:
        self.group_only = Bench(env, "grouponly"), Leaf("g", pods=2, minimum=2, priority=PRIORITY_TEN, pod_priority="")
        self.pods_only = Bench(env, "podsonly"), Leaf("g", pods=2, minimum=2, pod_priority=PRIORITY_TEN)
        self.parts = [self.group_only, self.pods_only]
        self.group_only[0].create_priority_classes(10)
        for bench, gang in self.parts:
            bench.add_nodes(1, 1)
            bench.submit(gang)
        for bench, _ in self.parts:
            env.settle(f"Pods of {bench.name} say so", bench.has_reason("pods", "g-0", REFUSED_STATUS))
            env.settle(f"PodGroup of {bench.name} says so", bench.has_reason("podgroups", "g", REFUSED_STATUS))
            bench.bind_witness()
        env.mark("tried")
        env.settle("events say so", self._warned, 10)
        for bench, _ in self.parts:
            env.settle(f"Pods of {bench.name} say why", bench.has_reason("pods", "g-0", ERROR_REASON))
            env.settle(f"PodGroup of {bench.name} says why", bench.has_reason("podgroups", "g", ERROR_REASON))

    def _warned(self, view: View) -> bool | Unmet:
        objects_with_event = {
            text(event, "regarding", "name") or text(event, "involvedObject", "name")
            for event in view.list("events")
            if text(event, "reason") == "FailedScheduling"
        }
        group = {bench.name: {bench.target.name("g", *n) for n in ((), (0,), (1,))} for bench, _ in self.parts}
        missing = [bench_name for bench_name, names in group.items() if not names & objects_with_event]
        return not missing or Unmet(f"no event FailedScheduling is about the PodGroup of {missing[0]} or its Pods")


class RootWithoutClass(Scene):
    """A tree whose PodGroups and pods have a PriorityClass but whose root has none. There is room for all pods."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench = Bench(env, "rootless", trees=True)
        self.tree = Tree(
            "root", [Leaf("p", 1, 1, priority=PRIORITY_TEN), Leaf("d", 1, 1, priority=PRIORITY_TEN)], minimum=2
        )
        self.bench.create_priority_classes(10)
        self.bench.add_nodes(1, 1)
        self.bench.submit(self.tree)
        env.settle("Pods say so", self.bench.has_reason("pods", "p-0", ERROR_REASON))
        self.bench.bind_witness()
        env.mark("tried")


class DefaultClass(Scene):
    """A PodGroup without a PriorityClass, on a cluster with a default class. The PodGroup is created as a dry run
    only."""

    exclusive = Exclusive.CLASSES

    def play(self, env: SceneEnvironment) -> None:
        require_own_control_plane(env)
        bench = Bench(env, "default")
        bench.create_priority_class({"metadata": {"name": PRIORITY_DEFAULT}, "value": 7, "globalDefault": True})
        bench.add_nodes(1)
        bench.bind_witness()  # API servers learn of new classes through a watch
        self.answer = env.dry_run.ask(env.dry_run.create(group(Leaf("g", pods=2, minimum=2), bench.target)))
        env.mark("asked")
        env.delete("priorityclasses", PRIORITY_DEFAULT)


class MixedSchedulers(Scene):
    """Two PodGroups with three pods each, one of which names another scheduler. In the second PodGroup, that pod is
    created when the first two pods, which are the minimum, are bound. There is room for all pods."""

    def play(self, env: SceneEnvironment) -> None:
        self.mixed, self.late_bench = Bench(env, "mixed"), Bench(env, "late")
        self.gang = Leaf("g", pods=2, minimum=2)
        self.odd = Leaf("g", pods=1, minimum=2, scheduler=SECOND_SCHEDULER)
        for bench in (self.mixed, self.late_bench):
            bench.add_nodes(1, 1, 1)
        self.mixed.require_scheduler(SECOND_SCHEDULER)
        self.mixed.create_groups(self.gang)
        self.mixed.create_pods(self.odd, first=2, gated=True)
        self.mixed.create_pods(self.gang, gated=True)
        # The pod of the other scheduler comes first, because the other pods alone are a gang that may be bound.
        for index in (2, 0, 1):
            self.mixed.ungate(self.gang, index)
        self.late_bench.submit(self.gang)
        env.wait_for("minimum bound", self.late_bench.has_bound((self.gang, 2)))
        env.settle("placed PodGroup says so", self._placed)
        self.late_bench.create_pods(self.odd, first=2)
        for bench in (self.mixed, self.late_bench):
            bench.bind_witness()
        env.mark("tried")

    def _placed(self, view: View) -> bool | Unmet:
        condition = self.late_bench.reason(view, "podgroups", "g")
        return condition.startswith("True/") or Unmet(f"the PodGroup says {condition or 'nothing'}")


class NoPreemption(Scene):
    """A gang that must not preempt, and a gang whose pods have different preemption policies. Each gang has one node
    per pod. A pod of low priority runs on the first gang's node."""

    def play(self, env: SceneEnvironment) -> None:
        self.never, self.both = Bench(env, "never"), Bench(env, "both")
        self.never.create_priority_classes(1, 10)
        self.never.create_priority_class(
            {"metadata": {"name": PRIORITY_NEVER}, "value": 10, "preemptionPolicy": "Never"}
        )
        self.gang = Leaf("g", pods=1, minimum=1, priority=PRIORITY_NEVER)
        self.pair = Leaf("g", pods=1, minimum=2, priority=PRIORITY_TEN)
        self.odd = Leaf("g", pods=1, minimum=2, priority=PRIORITY_NEVER)
        self.never.add_nodes(1)
        self.both.add_nodes(1, 1)
        self.never.create_plain_pod("victim", priority="conformance-1")
        env.wait_for("low Pod bound", self.never.are_running("victim"))
        self.never.submit(self.gang)
        self.both.create_groups(self.pair)
        self.both.create_pods(self.pair)
        self.both.create_pods(self.odd, first=1)
        env.settle("Pods of two policies say so", self.both.has_reason("pods", "g-0", ERROR_REASON))
        self.never.bind_witness()
        self.both.bind_witness()
        env.mark("tried")


class DisruptionOfBasicGroups(Scene):
    """A PodGroup with the basic policy and disruptionMode `all`. The PodGroup is created as a dry run only."""

    def play(self, env: SceneEnvironment) -> None:
        require_own_control_plane(env)
        bench = Bench(env, "modes")
        self.answer = env.dry_run.ask(env.dry_run.create(group(Leaf("g", pods=1, disruption="all"), bench.target)))
        env.mark("asked")


@requirement("WAPI-020", reaches=("Pods of grouponly say so", "Pods of podsonly say so"))
def test_no_pod_of_another_priority_is_placed(run: Recorded[OddPriorities]) -> None:
    for bench, gang in run.scene.parts:
        run.always(f"no pod of {bench.name} is bound", bench.none_bound(gang), until="tried")


@requirement("WAPI-021", reaches=("PodGroup of grouponly says so", "PodGroup of podsonly says so", "events say so"))
def test_a_rejected_gang_says_so(run: Recorded[OddPriorities]) -> None: ...


@requirement(
    "WAPI-097",
    reaches=(
        "Pods of grouponly say why",
        "Pods of podsonly say why",
        "PodGroup of grouponly says why",
        "PodGroup of podsonly says why",
    ),
)
def test_a_rejected_gang_says_why(run: Recorded[OddPriorities]) -> None: ...


@requirement("WAPI-092", reaches="Pods say so")
def test_pods_of_an_odd_tree_say_why(run: Recorded[RootWithoutClass]) -> None:
    """The groups and pods agree. Only the root has another priority."""


@requirement("WAPI-022")
def test_the_root_decides_the_priority_of_a_tree(run: Recorded[RootWithoutClass]) -> None:
    """There is room for all pods, and a later pod shows that the scheduler had a chance to place them."""
    run.always("no pod is bound", run.scene.bench.none_bound(run.scene.tree), until="tried")


@requirement("WAPI-023")
def test_a_group_without_a_class_has_the_default_one(run: Recorded[DefaultClass]) -> None:
    run.given("asked")
    run.expect("the answer to its creation", "accepted", str(run.scene.answer))
    run.expect(
        "the class of the PodGroup", PRIORITY_DEFAULT, text(run.scene.answer.object, "spec", "priorityClassName")
    )


@requirement("WAPI-024")
def test_pods_of_two_schedulers_are_not_placed(run: Recorded[MixedSchedulers]) -> None:
    run.always("no pod is bound", run.scene.mixed.none_bound(run.scene.gang), until="tried")


@requirement("WAPI-025")
def test_a_late_pod_of_another_scheduler_changes_nothing(run: Recorded[MixedSchedulers]) -> None:
    run.given("minimum bound", "placed PodGroup says so")
    bench, view = run.scene.late_bench, run.at("tried")
    run.expect("the late Pod is bound", False, bench.is_running(view, "g-2"))
    status = bench.reason(view, "podgroups", "g").partition("/")[0]
    run.expect("PodGroupInitiallyScheduled of the PodGroup", "True", status)


@requirement("WAPI-026")
def test_a_gang_that_must_not_preempt_evicts_nobody(run: Recorded[NoPreemption]) -> None:
    run.always("the low Pod runs", run.scene.never.are_running("victim"), after="low Pod bound", until="tried")


@requirement("WAPI-027")
def test_pods_of_two_preemption_policies_are_not_placed(run: Recorded[NoPreemption]) -> None:
    run.always("no pod is bound", run.scene.both.none_bound(run.scene.pair), until="tried")


@requirement("WAPI-092", reaches="Pods of two policies say so")
def test_pods_of_two_preemption_policies_say_why(run: Recorded[NoPreemption]) -> None:
    """The proposal shows this reason only for priorities."""


@requirement("WAPI-028")
def test_a_basic_group_cannot_be_disrupted_as_a_whole(run: Recorded[DisruptionOfBasicGroups]) -> None:
    run.given("asked")
    run.expect("the answer to its creation is a rejection", True, run.scene.answer.refused)
