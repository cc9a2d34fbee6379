"""Tests with PodGroups that are changed or deleted while their pods wait or run."""

from __future__ import annotations

from conformance.grove.fields import condition_is
from conformance.testing.benches import Bench, require_own_control_plane
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.workload_groups import Leaf, group

BENCH_COUNT = 16
"""The number of gangs. With so many gangs, a scheduler that sometimes resets their condition is very likely to be
detected."""
INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"


class GangsWithOneExtraPod(Scene):
    """Many gangs of three pods with minCount 2. Each gang has its own two nodes."""

    def play(self, env: SceneEnvironment) -> None:
        self.gang = Leaf("g", pods=3, minimum=2)
        self.benches = [Bench(env, f"copy{number}") for number in range(BENCH_COUNT)]
        for bench in self.benches:
            bench.add_nodes(1, 1)
        for bench in self.benches:
            bench.submit(self.gang)
        env.wait_for("minimums bound", lambda view: all(b.has_bound((self.gang, 2))(view) for b in self.benches))
        self.benches[-1].bind_witness()
        env.mark("extras tried")


class ChangedMinimum(Scene):
    """Two gangs. The first gang has four pods, minCount 4 and two nodes, and its minCount becomes 2 before a third node
    is added. The second gang has two running pods, and its minCount becomes 3."""

    def play(self, env: SceneEnvironment) -> None:
        self.waiting, self.running = Bench(env, "waiting"), Bench(env, "running")
        self.gang, self.pair = Leaf("g", pods=4, minimum=4), Leaf("g", pods=2, minimum=2)
        self.waiting.add_nodes(1, 1)
        self.running.add_nodes(1, 1)
        self.running.submit(self.pair)
        env.wait_for("pair bound", self.running.all_bound(self.pair))
        self.waiting.submit(self.gang)
        self.waiting.bind_witness()
        env.mark("minimum lowered")
        self._minimum(env, self.running, 3)
        self._minimum(env, self.waiting, 2)
        self.waiting.add_nodes(1)  # makes the scheduler retry the gang, which a change of minCount need not do
        env.wait_for("lower minimum bound", self.waiting.has_bound((self.gang, 2)))
        self.running.bind_witness()
        env.mark("minimum raised")

    def _minimum(self, env: SceneEnvironment, bench: Bench, minimum: int) -> None:
        env.patch("podgroups", bench.target.name("g"), {"spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}}})


class DeletedPodGroup(Scene):
    """A PodGroup that is deleted while its two pods are running. Then the pods are deleted one by one."""

    def play(self, env: SceneEnvironment) -> None:
        require_own_control_plane(env)
        self.bench, self.gang = Bench(env, "deleted"), Leaf("g", pods=2, minimum=2)
        self.group = self.bench.target.name("g")
        self.bench.add_nodes(1, 1)
        self.bench.submit(self.gang)
        env.wait_for("gang bound", self.bench.all_bound(self.gang))
        env.delete("podgroups", self.group)
        self.bench.delete_pod(self.gang, 0)
        env.wait_for("one Pod left", lambda view: view.get("pods", self.bench.target.name("g", 0)) is None)
        self.bench.bind_witness()
        env.mark("still a Pod")
        self.bench.delete_pod(self.gang, 1)
        env.wait_for("PodGroup gone", lambda view: view.get("podgroups", self.group) is None)


class UnknownWorkload(Scene):
    """A PodGroup that references a Workload and a template that do not exist."""

    def play(self, env: SceneEnvironment) -> None:
        self.bench, self.gang = Bench(env, "unknown"), Leaf("g", pods=2, minimum=2)
        self.bench.add_nodes(1, 1)
        pod_group = group(self.gang, self.bench.target)
        pod_group["spec"]["workloadRef"] = {"workloadName": "nowhere", "templateName": "none"}
        self.answer = env.dry_run.ask(env.dry_run.create(pod_group))
        env.mark("asked")
        env.create(pod_group)
        self.bench.create_pods(self.gang)
        env.wait_for("gang bound", self.bench.all_bound(self.gang))


@requirement("WAPI-007")
def test_a_placed_gang_never_says_again_that_it_is_not(run: Recorded[GangsWithOneExtraPod]) -> None:
    run.given("minimums bound")

    names = [bench.target.name("g") for bench in run.scene.benches]
    view, initially_scheduled, fallen = run.at("extras tried"), set[str](), dict.fromkeys(names, False)
    for record in run.until("extras tried").records("podgroups"):
        status = condition_is(record.object, INITIALLY_SCHEDULED)
        initially_scheduled |= {record.name} if status == "True" else set()
        fallen[record.name] |= status == "False" and record.name in initially_scheduled
    run.same("returned to False", dict.fromkeys(names, False), fallen)
    statuses = {name: condition_is(view.get("podgroups", name), INITIALLY_SCHEDULED) for name in names}
    run.same("what a PodGroup says whose minimum is bound", dict.fromkeys(names, "True"), statuses)


@requirement("WAPI-008", reaches="lower minimum bound")
def test_a_lower_minimum_takes_effect(run: Recorded[ChangedMinimum]) -> None:
    """Whether a pod is bound before the change is covered by WAPI-001."""


@requirement("WAPI-009")
def test_a_higher_minimum_leaves_running_pods_alone(run: Recorded[ChangedMinimum]) -> None:
    run.always("both pods run", run.scene.running.all_bound(run.scene.pair), after="pair bound", until="minimum raised")


@requirement("WAPI-010", reaches="PodGroup gone")
def test_a_pod_group_stays_while_a_pod_runs(run: Recorded[DeletedPodGroup]) -> None:
    run.always(
        "the PodGroup exists",
        lambda view: view.get("podgroups", run.scene.group) is not None,
        after="gang bound",
        until="still a Pod",
    )
    run.given("still a Pod")


@requirement("WAPI-011", reaches="gang bound")
def test_a_pod_group_may_name_a_workload_that_does_not_exist(run: Recorded[UnknownWorkload]) -> None:
    run.given("asked")
    run.expect("the answer to its creation", "accepted", str(run.scene.answer))
    run.expect("the Workloads", [], run.at("asked").names("workloads"))
