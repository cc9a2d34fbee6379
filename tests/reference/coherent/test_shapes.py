"""Tests of sets of particular shapes (spec COH-100 to COH-105, COH-227 to COH-229c, COH-Q32, COH-R01)."""

from __future__ import annotations

from reference_impl.api.coherent import GangLayout
from reference_impl.plan.coherent.planner import Complete
from reference_impl.plan.components import Component, Key, Kind, clique, group
from reference_impl.plan.layout import Role
from tests.reference.coherent.simulation import Replica, batch, deployed, keys, table


def updated(replica: Replica, changed: str) -> list[str]:
    replica.change("v1", keys(changed))
    return [batch(step) for step in replica.update()]


def test_the_first_deployment_has_an_anchor_and_tails() -> None:
    replica = deployed("F5/2 P4/1 D3/1")
    assert table(replica.layout) == "F5 D0 P0 | P1 | P2 | P3 | D1 | D2"
    assert [entry.role for entry in replica.layout] == [Role.ANCHOR, Role.TAIL, Role.SCALE_OUT]
    first, *remaining = replica.layout
    assert not first.depends_on and all(entry.depends_on == (first.key,) for entry in remaining)
    assert [int(entry.key) - int(first.key) for entry in replica.layout] == [0, 1, 2]


def test_a_set_of_only_standalone_cliques_is_updated() -> None:
    replica = deployed("F6/2/2")
    assert table(replica.layout) == "F6"
    assert updated(replica, "F") == ["anchor F2", "tail F2", "tail F2"]
    assert table(replica.layout) == "F6@v1"


def test_a_set_of_only_scaling_groups_is_updated() -> None:
    replica = deployed("P5/2/2 D4/2/2")
    assert updated(replica, "PD") == ["anchor P2 D2", "anchor P2 D2", "leftover P1"]
    assert table(replica.layout) == "D0,1 P0,1@v1 | D2,3 P2,3@v1 | P4@v1"
    assert [entry.role for entry in replica.layout if not entry.is_empty] == [Role.ANCHOR, Role.ANCHOR, Role.TAIL]


def test_a_minimum_of_all_replicas_moves_all_members_at_once() -> None:
    assert updated(deployed("F2/2/2 P2/2/2"), "FP") == ["anchor F2 P2"]


def test_fewer_replicas_than_the_minimum_move_together() -> None:
    replica = Replica([clique("F", 1, 2), group("P", 4, 2)]).deploy()
    assert table(replica.layout) == "F1 P0,1 | P2 | P3"
    assert updated(replica, "FP") == ["anchor F1 P2", "tail P2"]


def test_components_without_replicas_are_ignored() -> None:
    replica = Replica([clique("F", 0, 1), group("P", 2, 1), group("D", 0, 1)]).deploy()
    assert table(replica.layout) == "P0 | P1"
    assert updated(replica, "FPD") == ["anchor P1", "anchor P1"]


def test_a_replica_without_members_has_no_gangs() -> None:
    replica = Replica([clique("F", 0, 1), group("P", 0, 1)]).deploy()
    assert replica.layout == ()
    replica.change("v1", keys("FP"))
    assert isinstance(replica.plan(), Complete)


def test_an_empty_scope_is_complete() -> None:
    assert isinstance(deployed("F5/2 P4/1").plan(), Complete)


def test_a_clique_and_a_scaling_group_may_have_the_same_name() -> None:
    replica = Replica([clique("X", 4, 2), group("X", 2, 1)]).deploy()
    replica.change("v1", [Key(Kind.CLIQUE, "X"), Key(Kind.GROUP, "X")])
    replica.update()
    assert table(replica.layout) == "X2 X0@v1 | X2 X1@v1"


def test_max_unavailable_may_exceed_the_replicas() -> None:
    assert updated(deployed("F3/1/9"), "F") == ["anchor F1", "tail F2"]


def test_max_unavailable_is_read_at_each_sub_step() -> None:
    replica = deployed("F2/2/2 P9/1/1")
    replica.change("v1", keys("FP"))
    assert batch(replica.advance()) == "anchor F2 P1"
    replica.settle()
    replica.components = [*replica.components[:1], group("P", 9, 1, 4)]
    assert [batch(step) for step in replica.update()] == ["tail P4", "tail P4"]


def test_an_update_with_a_single_anchor_ends_like_a_first_deployment() -> None:
    replica = deployed("F5/2/2 P4/1/1 D3/1/1", GangLayout.SINGLE_ANCHOR)
    assert updated(replica, "FPD") == ["anchor F2 P1 D1", "tail P1", "anchor F2 P1 D1", "tail P1", "leftover F1 D1"]
    assert table(replica.layout) == "F5 D0 P0@v1 | P1@v1 | P2@v1 | D1@v1 | P3@v1 | D2@v1"
    assert sum(entry.anchor for entry in replica.layout) == 1


def test_the_gang_layout_may_change_during_an_update() -> None:
    replica = deployed("F4/2/2 P4/1/1")
    replica.change("v1", keys("FP"))
    for _ in range(2):
        replica.advance()
        replica.settle()
    replica.gang_layout = GangLayout.SINGLE_ANCHOR
    replica.update()
    assert table(replica.layout) == "F4 P0@v1 | P1@v1 | P2@v1 | P3@v1"


def test_the_budget_is_limited_by_the_replicas() -> None:
    component = Component(Key(Kind.CLIQUE, "F"), 5, 2, 3)
    assert (component.minimum, component.budget, component.floor) == (2, 3, 2)
    assert clique("F", 5, 2).floor == 3
    assert clique("F", 2, 3, 9).floor == 0
