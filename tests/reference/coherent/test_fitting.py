"""Tests of layouts that are fitted to the set's size or read from live gangs, and of an update's scope (spec GM-38 to
GM-47, COH-059, COH-178, COH-195, COH-207, COH-215)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reference_impl.api.models import PodGang, PodGroup
from reference_impl.plan import labels
from reference_impl.plan.adoption import adopted_layout, live_layout, named_members
from reference_impl.plan.coherent.planner import Complete
from reference_impl.plan.coherent.scope import ReplicaState, scope
from reference_impl.plan.fitting import fits, fitted_layout, violations
from reference_impl.plan.layout import Layout, Role
from reference_impl.plan.observed import Observed, ObservedPod, ObservedReplica
from tests.reference.coherent.simulation import Replica, batch, components, deployed, keys, named, table
from tests.reference.examples import disaggregated


def fit(replica: Replica, layout: Layout, live: Layout = ()) -> str:
    assert not fits(layout, replica.components)
    result = fitted_layout(layout, replica.components, replica.observed(), replica.generation, replica.epochs, live)
    assert fits(result, replica.components)
    return table(result)


@pytest.fixture
def replica() -> Replica:
    return deployed("F5/2/2 P4/1/1 D3/1/1")


def test_a_layout_that_fits_is_unchanged(replica: Replica) -> None:
    assert fits(replica.layout, replica.components)
    refitted = fitted_layout(
        replica.layout, replica.components, replica.observed(), "v0", replica.epochs, replica.layout
    )
    assert refitted == replica.layout


def test_violations_are_reported_by_name(replica: Replica) -> None:
    anchor, tail, scale_out = replica.layout
    broken = (anchor.with_pods("F", 4), tail.with_indices("P", [2, 3]), scale_out)
    assert violations(broken, replica.components) == [
        "PodClique F: 4 pods in gangs, 5 expected",
        "PodCliqueScalingGroup P: replica indices [0, 2, 3] in gangs, 0 to 3 expected",
    ]


def test_an_index_in_two_entries_stays_in_the_entry_where_it_runs(replica: Replica) -> None:
    anchor, tail, scale_out = replica.layout
    duplicated = (anchor, tail, scale_out.with_indices("P", [1]))
    assert fit(replica, duplicated) == "F5 D0 P0 | P1 | P2 | P3 | D1 | D2"
    replica.members[named("P")].clear()
    assert fit(replica, duplicated) == "F5 D0 P0 | P2 | P3 | D1 | D2 | P1", "the newest, if it runs nowhere"


def test_members_return_to_their_entries(replica: Replica) -> None:
    anchor, _, scale_out = replica.layout
    stolen = (anchor.with_pods("F", 1), scale_out)
    assert fit(replica, stolen, replica.layout) == "F5 D0 P0 | P1 | P2 | P3 | D1 | D2"


def test_members_of_unknown_entries_join_the_scale_out_entry(replica: Replica) -> None:
    anchor, tail, scale_out = replica.layout
    edited = (anchor, tail.with_indices("P", [1, 3]), scale_out)
    assert fit(replica, edited) == "F5 D0 P0 | P1 | P2 | P3 | D1 | D2", "it runs there"
    replica.members[named("P")].clear()
    assert fit(replica, edited) == "F5 D0 P0 | P1 | P3 | D1 | D2 | P2"


def test_a_missing_anchor_is_restored_from_live_gangs_or_the_layout_starts_over(replica: Replica) -> None:
    remaining = replica.layout[1:]
    result = fitted_layout(remaining, replica.components, replica.observed(), "v0", replica.epochs, replica.layout)
    assert result == replica.layout
    assert fit(replica, remaining) == "F5 D0 P0 | P1 | P2 | P3 | D1 | D2"


def test_a_dependency_on_a_missing_entry_becomes_a_dependency_on_the_anchor(replica: Replica) -> None:
    anchor, tail, scale_out = replica.layout
    for unknown in ((), ("",), ("17",), (scale_out.key,)):
        edited = (anchor, replace(tail, depends_on=unknown), scale_out)
        assert not fits(edited, replica.components)
        assert fitted_layout(edited, replica.components, replica.observed(), "v0", replica.epochs) == replica.layout


def test_a_changed_role_is_restored_from_the_live_gangs(replica: Replica) -> None:
    anchor, tail, scale_out = replica.layout
    edited = (replace(anchor, role=Role.TAIL), replace(tail, role=Role.ANCHOR), scale_out)
    result = fitted_layout(edited, replica.components, replica.observed(), "v0", replica.epochs, replica.layout)
    assert result == replica.layout


def test_scaling_out_before_the_update_adds_places_that_move_first(replica: Replica) -> None:
    """New replicas of a scaling group and new pods get places in entries of the old version, which the update then
    moves first (COH-178)."""
    replica.change("v1", keys("FPD"))
    replica.components = components("F7/2/2 P5/1/1 D2/1/1")
    replica.fit()
    assert table(replica.layout) == "F7 D0 P0 | P1 | P2 | P3 | D1 | P4"
    replica.act()
    replica.settle()
    assert batch(replica.advance()) == "anchor F2 P1 D1"
    assert replica.available(named("F")) == 5, "the two places without pods were moved"
    replica.settle()
    replica.update()
    assert violations(replica.layout, replica.components) == []


def test_scaling_in_before_the_update_removes_places(replica: Replica) -> None:
    replica.change("v1", keys("FPD"))
    replica.components = components("F2/2/2 P1/1/1 D3/1/1")
    assert fit(replica, replica.layout) == "F2 D0 P0 | D1 | D2"


def test_unknown_components_are_removed_from_the_layout(replica: Replica) -> None:
    foreign = replace(replica.layout[0], cliques={"F": 5, "Z": 1}, groups={"P": (0,), "D": (0,), "Y": (0,)})
    assert fit(replica, (foreign, *replica.layout[1:])) == "F5 D0 P0 | P1 | P2 | P3 | D1 | D2"


def live_gangs(layout: Layout) -> list[PodGang]:
    """Return the gangs of a layout, one for each entry, with their labels."""
    gangs = []
    for entry in layout:
        gang = PodGang()
        gang.metadata.labels = {
            labels.EPOCH: entry.key,
            labels.GANG_ROLE: entry.role,
            labels.GENERATION_HASH: entry.generation,
        }
        gangs.append(gang)
    return gangs


def test_a_deleted_map_is_restored_from_the_gangs(replica: Replica) -> None:
    replica.change("v1", keys("FPD"))
    for _ in range(3):
        replica.advance()
        replica.settle()
    observed, observed_gangs = replica.observed(), tuple(entry for entry in replica.layout if not entry.is_empty)
    result = adopted_layout(
        live_layout(live_gangs(observed_gangs)[::-1], observed), replica.components, observed, "v0", replica.epochs
    )
    assert result[-1].role is Role.SCALE_OUT and result[-1].is_empty, "there is a place for more replicas again"
    for before, after in zip(observed_gangs, result[:-1], strict=True):
        assert (before.key, before.role, before.generation) == (after.key, after.role, after.generation)
        assert (before.cliques, before.groups) == (after.cliques, after.groups)
        if before.role is not Role.SCALE_OUT:
            assert before.depends_on == after.depends_on, "no entry depends on one of another generation"


def test_a_scale_out_entry_depends_on_an_anchor_of_its_own_generation(replica: Replica) -> None:
    replica.change("v1", keys("FPD"))
    replica.advance()
    replica.settle()
    observed, observed_gangs = replica.observed(), tuple(entry for entry in replica.layout if not entry.is_empty)
    result = adopted_layout(
        live_layout(live_gangs(observed_gangs), observed), replica.components, observed, "v1", replica.epochs
    )
    anchor = next(entry for entry in result if entry.anchor and entry.generation == "v1")
    assert (result[-1].role, result[-1].depends_on) == (Role.SCALE_OUT, (anchor.key,))


def test_a_moving_replica_is_placed_where_the_newest_gang_says(replica: Replica) -> None:
    """The old clique of that replica is gone, and the new one does not exist yet."""
    replica.change("v1", keys("P"))
    for _ in range(2):
        replica.advance()
        replica.settle()
    before = [entry for entry in replica.layout if not entry.is_empty]
    [moved] = before[-1].groups["P"]
    replica.members[named("P")] = [member for member in replica.members[named("P")] if member.index != moved]
    observed = replica.observed()
    live = live_layout(live_gangs(before), observed, {"P": {moved: before[-1].key, 0: before[-1].key}})
    result = adopted_layout(live, replica.components, observed, "v1", replica.epochs)
    assert [entry.groups for entry in result if not entry.is_empty] == [entry.groups for entry in before]


def test_gang_groups_determine_which_replicas_a_gang_holds() -> None:
    pcs, gangs = disaggregated(group_replicas=2), []
    for epoch, index in (("10", 0), ("9", 0), ("9", 1)):
        gang = PodGang()
        gang.metadata.labels = {labels.EPOCH: epoch}
        cliques = ("llm-0-router", f"llm-0-workers-{index}-prefill", "llm-0-workers-3-none")
        gang.spec.podgroups = [PodGroup(name=name, min_replicas=1) for name in cliques]
        gangs.append(gang)
    assert named_members(pcs, 0, gangs) == {"workers": {0: "10", 1: "9"}}, "of two gangs, the newest"


def test_live_gangs_keep_their_missing_members(replica: Replica) -> None:
    replica.members[named("F")].pop()
    replica.members[named("P")].pop()
    observed = replica.observed()
    result = adopted_layout(
        live_layout(live_gangs(replica.layout), observed), replica.components, observed, "v0", replica.epochs
    )
    assert table(result) == "F5 D0 P0 | P1 | P2 | D1 | D2 | P3"


def test_gangs_of_another_release_line_are_ignored(replica: Replica) -> None:
    assert live_layout([PodGang()], replica.observed()) == ()
    result = adopted_layout((), replica.components, Observed(), "v0", replica.epochs)
    assert table(result) == "F5 D0 P0 | P1 | P2 | P3 | D1 | D2"


def state(replica: Replica) -> list[ReplicaState]:
    return [ReplicaState(replica.layout, replica.observed())]


def test_a_first_change_puts_its_component_into_scope(replica: Replica) -> None:
    replica.versions[named("D")] = "v1"
    assert scope(keys("D"), [], state(replica), "v1") == {named("D")}


def test_a_change_reverted_before_any_move_has_no_scope(replica: Replica) -> None:
    replica.change("v1", keys("FP"))
    replica.change("v0", dict.fromkeys(keys("FP"), "v0"))
    assert scope(keys("FP"), keys("FP"), state(replica), "v0") == frozenset()


def test_converged_components_are_removed_from_the_scope() -> None:
    """F and P change, and F has converged when D changes as well. F keeps its gangs and is not moved again
    (COH-197)."""
    replica = deployed("F2/2/2 P3/1/1 D2/1/1")
    replica.change("v1", keys("FP"))
    for _ in range(2):
        replica.advance()
        replica.settle()
    replica.retarget({named("D"): "v2"})
    assert replica.scope == set(keys("PD"))
    before = list(replica.members[named("F")])
    assert [batch(step) for step in replica.update()] == ["anchor P1 D1", "anchor D1"]
    assert replica.members[named("F")] == before
    assert isinstance(replica.plan(), Complete)


def test_a_component_stays_in_scope_if_another_replica_is_not_done(replica: Replica) -> None:
    other = deployed("F5/2/2 P4/1/1 D3/1/1")
    other.versions[named("F")] = "v1"
    both = [*state(replica), *state(other)]
    assert scope([], keys("F"), both, "v1") == {named("F")}


def test_the_gang_of_a_replica_being_replaced_does_not_count() -> None:
    observed = Observed(
        pods={"F": [ObservedPod("f", "old", True, True)]}, replicas={"P": {0: ObservedReplica("old", True, True)}}
    )
    assert observed.replica(named("P"), 0, "new") is None
    assert observed.replica(named("P"), 0, "old") is not None
    assert observed.pods_in("F", "new") == []
