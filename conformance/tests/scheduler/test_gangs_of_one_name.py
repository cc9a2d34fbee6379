"""Tests with gangs of the same name in two namespaces. A scheduler must identify a PodGang by its namespace and
name."""

from __future__ import annotations

from dataclasses import replace

from conformance.grove.scheduling import manifests
from conformance.grove.scheduling.instance import HOST, Gang, Group, Instance, Node
from conformance.testing import predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

STATUS_TIME = "2026-01-01T00:00:00Z"
PRIORITY = 76
"""The priority of all pods. No other scene uses its PriorityClass."""
TWIN_GANG = Gang("twin", (Group("w", 2, 2, {"gpus": 1}),), PRIORITY)
WITNESS_GANG = Gang("witness", (Group("w", 1, 1, {"gpus": 0}),), PRIORITY)
FIRST_INSTANCE = Instance((Node("n1", {"gpus": 2}, {HOST: "n1"}),), (TWIN_GANG,), name="twins")
SECOND_INSTANCE = Instance((Node("n2", {"gpus": 1}, {HOST: "n2"}),), (TWIN_GANG, WITNESS_GANG), name="twins")
ADDED_NODE = Instance((Node("n3", {"gpus": 1}, {HOST: "n3"}),), (), name="twins")


class GangsOfOneName(Scene):
    """Two namespaces, each with a gang of two pods. The gangs and pods have the same names in both namespaces. The
    first gang fits. The second gang has room for one pod until another node is added. Operators of the release line
    `maps` never give two gangs the same name, so the suite creates the gangs."""

    def play(self, env: SceneEnvironment) -> None:
        place = env.testbed(FIRST_INSTANCE.name)
        [entry] = manifests.priority_classes(FIRST_INSTANCE)
        if env.dry_run.ask(env.dry_run.create(entry)).accepted:
            env.create(entry)
        self.pods = [place.name(TWIN_GANG.name, "w", str(number)) for number in range(2)]
        env.create_nodes(manifests.nodes(FIRST_INSTANCE, place))
        _create_gangs(env, FIRST_INSTANCE, place)
        env.wait_for("first gang placed", predicates.all_placed(self.pods), real=True)

        neighbor = env.second_namespace()
        testbed = replace(neighbor.testbed("beside"), prefix=place.prefix)
        env.create_nodes(manifests.nodes(SECOND_INSTANCE, testbed))
        _create_gangs(neighbor, SECOND_INSTANCE, testbed)
        neighbor.wait_for(
            "another gang beside the second one placed",
            predicates.all_placed([testbed.name("witness", "w", "0")]),
            real=True,
        )
        neighbor.quiet(2, real=True)
        env.mark("second gang tried")

        env.create_nodes(manifests.nodes(ADDED_NODE, testbed))
        neighbor.wait_for("second gang placed", predicates.all_placed(self.pods), real=True)


@requirement("SCHED-078", reaches="second gang placed")
def test_each_gang_is_placed_by_its_own_pods(run: Recorded[GangsOfOneName]) -> None:
    """The bound pods of the first gang must not count towards the second gang."""
    run.given("first gang placed", "another gang beside the second one placed")
    unplaced = predicates.none_placed(run.scene.pods)
    run.neighbor.always("no pod of the second gang is bound", unplaced, until="second gang tried")


def _create_gangs(env: SceneEnvironment, instance: Instance, place: manifests.Testbed) -> None:
    """Create gangs before their pods."""
    env.create_all([{**gang, **manifests.gang_status(STATUS_TIME)} for gang in manifests.gangs(instance, place)])
    env.create_all(manifests.pods(instance, place))
