"""Tests of failures during an update: what the update waits for, what it replaces first, and what it never takes down
(spec COH-150 to COH-154, COH-205 to COH-213)."""

from __future__ import annotations

from reference_impl.plan.coherent.planner import Advance, Complete, Step, Wait
from tests.reference.coherent.simulation import Replica, batch, deployed, keys, named, table


def updating_replica(text: str, changed_keys: str, sub_steps: int = 0) -> Replica:
    """Return a replica that is being updated to v1, after `sub_steps` sub-steps whose pods have become Ready."""
    replica = deployed(text)
    replica.change("v1", keys(changed_keys))
    for _ in range(sub_steps):
        assert isinstance(replica.advance(), Advance)
        replica.settle()
    return replica


def lose(replica: Replica, name: str, version: str, count: int) -> None:
    """Lose `count` members of a version, the oldest first, and replace them if this is permitted."""
    members = replica.members[named(name)]
    for member in [member for member in members if member.version == version][:count]:
        members.remove(member)
    replica.act()


def reason(step: Step) -> str:
    assert isinstance(step, Wait), step
    return step.reason


def test_the_update_waits_until_new_gangs_are_ready() -> None:
    replica = updating_replica("F4/2/2 P4/1/1", "FP")
    replica.advance()
    gang = replica.layout[-1].key
    step = replica.plan()
    assert reason(step) == f"waiting for the PodGangs of epoch {gang} to become Ready"
    assert isinstance(step, Wait) and step.in_flight == (gang,)


def test_a_gang_that_was_once_ready_is_not_awaited_again() -> None:
    """A lost pod of such a gang is replaced in the same gang, and counts as unavailable until then (COH-209)."""
    replica = updating_replica("F6/1/2 P6/1/1", "FP", 1)
    lose(replica, "F", "v1", 1)
    assert replica.available(named("F")) == 5
    assert batch(replica.advance()) == "anchor F1 P1"
    assert replica.available(named("F")) == 4


def test_the_update_waits_for_pods_that_join_an_anchor() -> None:
    replica = updating_replica("F20/2/2 P10/3/3 D20/3/4", "FPD", 2)
    replica.advance()
    anchor = next(entry for entry in replica.layout if entry.cliques.get("F") == 6)
    step = replica.plan()
    assert reason(step) == f"epoch {anchor.key} has 4 of 6 Ready pods of PodClique F"
    assert isinstance(step, Wait) and step.in_flight == (anchor.key,)


def test_the_last_sub_step_also_passes_its_gate() -> None:
    replica = updating_replica("F2/1/1", "F", 1)
    replica.advance()
    assert not isinstance(replica.plan(), Complete)
    replica.settle()
    assert isinstance(replica.plan(), Complete)


def test_an_unavailable_member_elsewhere_uses_the_budget() -> None:
    """Three members may be unavailable and one member is unavailable, so the sub-step takes two members instead of
    three (COH-153)."""
    replica = updating_replica("P9/3/3 F3/3/3", "FP", 1)
    assert table(replica.layout) == "P3 | P4 | P5 | P6 | P7 | P8 | F3 P0,1,2@v1"
    lose(replica, "P", "v1", 1)
    assert batch(replica.advance()) == "tail P2"
    assert replica.available(named("P")) == 6


def test_no_available_member_is_taken_below_the_floor() -> None:
    replica = updating_replica("F4/2/2 P4/1/1", "FP", 1)
    lose(replica, "F", "v1", 2)
    lose(replica, "P", "v1", 1)
    assert replica.available(named("P")) == 3
    assert reason(replica.advance()) == "PodCliqueScalingGroup P: 3 of 4 available, at least 3 have to stay available"
    replica.settle()
    assert batch(replica.advance()) == "tail P1"


def test_a_component_below_its_floor_protects_the_other_components() -> None:
    """F has lost more pods than its maxUnavailable. Until F has recovered, the update takes no replica of P and
    replaces only the pods that F has lost (COH-212)."""
    replica = updating_replica("F6/2/2 P6/2/2", "FP", 1)
    lose(replica, "F", "v0", 3)
    assert replica.available(named("F")) == 3
    assert batch(replica.advance()) == "anchor F2"
    assert replica.available(named("P")) == 6
    replica.settle()
    assert batch(replica.advance()) == "anchor F2 P2", "F has recovered"


def test_a_component_that_does_not_move_also_protects_the_other_components() -> None:
    """F does not take part in this sub-step, but has too few available pods."""
    replica = updating_replica("F4/2/2 P9/1/1", "FP", 1)
    lose(replica, "F", "v0", 2)
    lose(replica, "F", "v1", 1)
    assert reason(replica.advance()) == "PodClique F: 1 of 4 available, at least 2 have to stay available"
    replica.settle()
    assert batch(replica.advance()) == "tail P1"


def test_a_lost_old_pod_is_moved_first_instead_of_being_replaced() -> None:
    replica = updating_replica("F6/2/2", "F", 1)
    lose(replica, "F", "v0", 1)
    assert [member.version for member in replica.members[named("F")]].count("v1") == 2
    replica.advance()
    assert replica.available(named("F")) == 4, "the lost pod and one that was available"


def test_a_workload_that_never_worked_can_be_updated() -> None:
    replica = updating_replica("F4/2/2 P4/2/2", "FP")
    for members in replica.members.values():
        for member in members:
            member.ready = False
    replica.been_ready.clear()
    assert [batch(step) for step in replica.update()] == ["anchor F2 P2"] * 2


def test_a_broken_component_is_repaired_while_the_other_components_serve() -> None:
    replica = updating_replica("F4/2/2 P4/2/2", "FP")
    for member in replica.members[named("F")]:
        member.ready = False
    assert [batch(step) for step in replica.update()] == ["anchor F2", "anchor F2 P2", "anchor P2"]


def test_a_budget_below_the_minimum_is_reported() -> None:
    """Admission rejects such a maxUnavailable; a set that was stored earlier waits and reports the reason (COH-063)."""
    replica = updating_replica("F4/2/1", "F")
    assert reason(replica.advance()) == "PodClique F: 4 of 4 available, at least 3 have to stay available"


def test_a_new_version_does_not_wait_for_the_abandoned_version() -> None:
    replica = updating_replica("F4/2/2", "F")
    replica.works = lambda _, version: version != "v1"
    replica.advance()
    replica.settle()
    replica.change("v2", keys("F"))
    assert isinstance(replica.advance(), Advance)
    assert table(replica.layout) == "F2 | F2@v2"


def test_a_revert_does_not_wait_for_gangs_of_the_first_deployment() -> None:
    """P3 was never placed. The revert rolls back P0 nevertheless."""
    replica = deployed("P4/1/2")
    replica.been_ready.discard(replica.layout[-1].key)
    replica.members[named("P")][3].ready = False
    replica.change("v1", keys("P"))
    assert isinstance(replica.advance(), Advance)
    assert table(replica.layout) == "P0 | P1 | P2 | P3@v1", "the replica that was not available"
    replica.change("v0", {named("P"): "v0"})
    assert isinstance(replica.advance(), Advance)
    assert table(replica.layout) == "P0 | P1 | P2 | P3"


def test_a_revert_waits_only_for_its_own_gangs() -> None:
    replica = deployed("P4/1/2")
    replica.change("v1", keys("P"))
    replica.advance()
    replica.settle()
    replica.been_ready.discard(replica.layout[0].key)  # the gang of P1 from the first deployment
    replica.change("v0", {named("P"): "v0"})
    assert isinstance(replica.advance(), Advance)


def test_pods_do_not_join_a_gang_of_another_update() -> None:
    """The remainder of a revert needs its own anchor, even if nothing else is reverted (COH-Q33)."""
    replica = updating_replica("F5/2/2 P2/1/1", "FP", 3)
    lost = {"F": "v0", "P": "v0"}
    replica.change("v0", {named(name): version for name, version in lost.items()})
    while not isinstance(replica.advance(), Complete):
        replica.settle()
    assert {member.version for members in replica.members.values() for member in members} == {"v0"}
    assert all(entry.generation == "v0" for entry in replica.layout)
