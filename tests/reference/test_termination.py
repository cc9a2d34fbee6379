"""Tests of gang termination: its causes, the time from which they count, and its level."""

from __future__ import annotations

import msgspec
import pytest

from kube.objects import ObjectMeta
from reference_impl.api.models import (
    GroupUpdateProgress,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueStatus,
    ScalingGroupSpec,
    ScalingGroupStatus,
)
from reference_impl.plan import conditions, labels, statuses, termination, timestamps
from tests.reference.examples import NAMESPACE, clique, disaggregated, members, pod, standalone

BORN_AT = timestamps.seconds("2026-01-01T00:00:00Z") or 0.0
DELAY_SECONDS = 10.0


def at(second: float) -> str:
    return timestamps.format_timestamp(BORN_AT + second)


class World:
    """A set with a router and a group of three replicas, with statuses as the operator would write them."""

    def __init__(self, minimum: int = 1, group_floor: int = 1) -> None:
        self.pcs = disaggregated(min_available=group_floor)
        self.pcs.spec.template.termination_delay = "10s"
        self.group = PodCliqueScalingGroup(
            metadata=ObjectMeta(
                name="llm-0-workers",
                namespace=NAMESPACE,
                uid="u-group",
                creation_timestamp=at(0),
                labels={labels.REPLICA_INDEX: "0"},
            ),
            spec=ScalingGroupSpec(replicas=3, min_available=group_floor, clique_names=["prefill", "decode"]),
        )
        self.cliques: dict[str, PodClique] = {}
        self.born(0)

    def born(self, second: float, *names: str) -> None:
        """Recreate the named cliques, or all cliques if no names are given."""
        manifests = [
            standalone(self.pcs, 0, self.pcs.spec.template.cliques[0]),
            *members(self.pcs, self.group),
        ]
        for manifest in manifests:
            name = manifest["metadata"]["name"]
            if not names or name in names:
                self.cliques[name] = clique(manifest, f"u-{name}-{second}")
                self.cliques[name].metadata.creation_timestamp = at(second)

    def says(self, second: float, bound: int, *names: str) -> None:
        """Write the statuses of the named cliques (or all) with `bound` bound pods each, and then the group's
        status."""
        for name in names or self.cliques:
            item = self.cliques[name]
            pods = [pod(item, i, node="n" if i < bound else "") for i in range(item.spec.replicas)]
            item.status = statuses.clique_status(item, pods, self.pcs, at(second))
        self.group.status = statuses.group_status(self.group, self.pcs, self.cliques.get, at(second))

    def due_in_set(self, second: float) -> termination.DueTerminations:
        cliques = [self.cliques["llm-0-router"]]
        return termination.due_in_set(self.pcs, cliques, [self.group], BORN_AT + second)

    def due_in_group(self, second: float) -> termination.DueTerminations:
        return termination.due_in_group(self.pcs, self.group, self.cliques.get, BORN_AT + second)

    def flag(self, second: float) -> None:
        status = self.group.status or ScalingGroupStatus()
        status.conditions = conditions.with_condition(
            status.conditions, termination.terminating_condition(0, at(second))
        )
        self.group.status = status


FIRST = ("llm-0-workers-0-prefill", "llm-0-workers-0-decode")
SECOND = ("llm-0-workers-1-prefill", "llm-0-workers-1-decode")
THIRD = ("llm-0-workers-2-prefill", "llm-0-workers-2-decode")
ALL = (*FIRST, *SECOND, *THIRD)


@pytest.fixture
def world():
    return World()


def test_a_clique_that_never_ran_is_not_a_cause(world):
    # This holds even if the first status is delayed (CHG-DF04).
    world.says(30, 0)
    assert world.due_in_set(1000) == termination.DueTerminations() == world.due_in_group(1000)


def test_a_clique_that_ran_is_a_cause_from_the_time_of_its_loss(world):
    world.says(1, 2)
    world.says(20, 0, "llm-0-router")
    assert world.due_in_set(29.5) == termination.DueTerminations({}, 0.5)
    assert world.due_in_set(30) == termination.DueTerminations({0: {"u-llm-0-router-0"}})
    # Later statuses change nothing.
    world.says(25, 0, "llm-0-router")
    assert world.due_in_set(30).causes


def breach(item: PodClique | PodCliqueScalingGroup) -> str:
    condition = conditions.find(item.status.conditions if item.status else None, termination.BREACHED)
    return condition.status if condition is not None else ""


@pytest.mark.parametrize("part", ["clique", "group"])
def test_an_idle_part_is_not_a_cause_until_it_has_run_again(world: World, part: str) -> None:
    idle = world.cliques["llm-0-router"] if part == "clique" else world.group
    replicas = idle.spec.replicas
    world.says(1, 2)
    idle.spec.replicas = 0
    world.says(20, 2)
    assert breach(idle) == "False"
    assert world.due_in_set(1000) == termination.DueTerminations() == world.due_in_group(1000)
    idle.spec.replicas = replicas  # there is currently no capacity for it
    waking = ["llm-0-router"] if part == "clique" else list(ALL)
    world.says(30, 0, *waking)
    world.says(31, 0, *waking)
    assert breach(idle) == "True"
    assert world.due_in_set(1000) == termination.DueTerminations()
    world.says(40, 2)
    assert breach(idle) == "False"
    world.says(50, 0, *waking)
    assert world.due_in_set(60).causes


def test_a_clique_lost_in_the_second_of_its_creation_is_a_cause(world):
    # The clock is behind the API server's clock (CHG-DF33).
    world.says(-5, 2)
    world.says(-5, 0, "llm-0-router")
    assert world.due_in_set(30).causes == {0: {"u-llm-0-router-0"}}


def test_a_recovery_restarts_the_delay(world):
    for second, bound in ((1, 2), (20, 0), (25, 2), (26, 0)):
        world.says(second, bound, "llm-0-router")
    assert world.due_in_set(30).wait == 6


def test_the_current_delay_applies(world):
    world.says(1, 2)
    world.says(20, 0, "llm-0-router")
    world.pcs.spec.template.termination_delay = "1h"
    assert world.due_in_set(30).wait == 3590
    for unreadable in (None, "", "soon", "0s", "-4s"):
        world.pcs.spec.template.termination_delay = unreadable
        assert world.due_in_set(30).wait == 4 * 3600 - 10


def test_a_group_with_enough_sound_replicas_terminates_the_replica_itself(world):
    world.says(1, 2)
    world.says(20, 0, *FIRST)
    assert world.due_in_set(100) == termination.DueTerminations()
    assert world.due_in_group(29).wait == 1
    assert world.due_in_group(30).causes == {0: {f"u-{name}-0" for name in FIRST}}


def test_a_breached_group_is_terminated_by_the_set(world):
    world.says(1, 2)
    world.says(20, 0, *FIRST)
    world.says(22, 0, *SECOND)
    world.says(24, 0, *THIRD)
    assert world.due_in_group(100) == termination.DueTerminations()
    assert world.due_in_set(33).wait == 1
    assert world.due_in_set(34).causes == {0: {"u-group"}}


def test_both_levels_count_in_the_same_way():
    # Because one replica never ran, the group has no replica to spare (CHG-DF05).
    world = World(group_floor=2)
    world.says(1, 2, *FIRST, *SECOND)
    world.says(1, 0, *THIRD)
    world.says(20, 0, *SECOND)
    assert world.due_in_group(100) == termination.DueTerminations()
    assert world.due_in_set(100).causes == {0: {"u-group"}}


def test_a_terminated_group_is_not_a_cause_until_it_was_sound_again(world):
    world.says(1, 2)
    world.says(20, 0, *ALL)
    world.flag(31)
    world.born(31)
    world.group.status = statuses.group_status(world.group, world.pcs, world.cliques.get, at(31))
    assert conditions.is_true(
        world.group.status.conditions, termination.TERMINATING
    )  # CHG-DF32: a missing status is not a recovery
    world.says(32, 0)
    assert world.due_in_set(1000) == termination.DueTerminations()
    world.says(50, 2)
    assert conditions.find(world.group.status.conditions, termination.TERMINATING) is None
    world.says(60, 0, *ALL)
    assert world.due_in_set(70).causes == {0: {"u-group"}}


def test_parts_being_deleted_or_updated_are_not_terminated(world):
    world.says(1, 2)
    world.says(20, 0, "llm-0-router", *FIRST)
    world.cliques["llm-0-router"].metadata.deletion_timestamp = at(25)
    assert world.due_in_set(100) == termination.DueTerminations()
    status = msgspec.structs.replace(world.group.status, update_progress=GroupUpdateProgress(at(25)))
    world.group.status = status
    assert world.due_in_group(100) == termination.DueTerminations()


def test_surplus_replicas_are_not_terminated(world):
    world.says(1, 2)
    world.says(20, 0, "llm-0-router", *ALL)
    world.pcs.spec.replicas = 0
    assert world.due_in_set(100) == termination.DueTerminations()


def test_a_clique_without_conditions_is_not_a_cause(world):
    world.cliques["llm-0-router"].status = PodCliqueStatus()
    assert world.due_in_set(100) == termination.DueTerminations()
