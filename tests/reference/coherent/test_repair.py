"""Layouts that are read from live gangs or repaired, the scope of an update, and the stored form of a layout (spec
COH-055, COH-059, COH-178, COH-195, COH-207, COH-214, COH-215, COH-268 to COH-273)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reference_impl.api.coherent import MapEntry, PodGangMap, PodGangMapSpec
from reference_impl.plan.coherent.adoption import LiveGang, adopted
from reference_impl.plan.coherent.layout import (
    Entry,
    Layout,
    anchors,
    indices_of_group,
    of_map,
    pods_of_clique,
    to_entries,
)
from reference_impl.plan.coherent.maps import ReplicaMap
from reference_impl.plan.coherent.observed import Observed, ObservedPod, ObservedReplica
from reference_impl.plan.coherent.planner import Advance, Complete
from reference_impl.plan.coherent.repair import is_sound, repaired, violations
from reference_impl.plan.coherent.scope import ReplicaState, scope
from tests.reference.coherent.simulation import Replica, batch, components, deployed, keys, named, table


def repair(replica: Replica, layout: Layout, live: Layout = ()) -> str:
    result = repaired(layout, replica.components, replica.observed(), replica.generation, replica.names, live)
    assert violations(result, replica.components) == []
    return table(result)


@pytest.fixture
def replica() -> Replica:
    return deployed("F5/2/2 P4/1/1 D3/1/1")


def test_a_sound_layout_is_left_alone(replica: Replica) -> None:
    assert violations(replica.layout, replica.components) == []
    assert repair(replica, replica.layout) == table(replica.layout)


def test_what_is_sound_needs_no_repair(replica: Replica) -> None:
    assert is_sound(replica.layout, replica.components)
    assert not is_sound(replica.layout[1:], replica.components)
    assert not is_sound(replica.layout, replica.components[1:])


def test_violations_are_named(replica: Replica) -> None:
    broken = (replica.layout[0].with_pods("F", 4), *replica.layout[2:])
    assert violations(broken, replica.components) == [
        "PodClique F: 4 pods in gangs, 5 expected",
        "PodCliqueScalingGroup P: replica indices [0, 2, 3] in gangs, 0 to 3 expected",
    ]


def test_an_index_in_two_gangs_stays_where_it_runs(replica: Replica) -> None:
    twice = (*replica.layout[:-1], replica.layout[-1].with_indices("P", [1]))
    assert repair(replica, twice) == "F5 D0 P0 | P1 | P2 | P3 | D1 | D2"
    replica.members[named("P")].clear()
    assert repair(replica, twice).endswith("P3 | D1 | D2 P1"), "the newest, if it runs nowhere"


def test_members_return_to_their_gangs(replica: Replica) -> None:
    first, *rest = replica.layout
    stolen = (first.with_pods("F", 1), *(entry for entry in rest if entry.groups != {"P": (2,)}))
    assert repair(replica, stolen, replica.layout) == "F5 D0 P0 | P1 | P2 | P3 | D1 | D2"


def test_members_of_unknown_gangs_get_new_ones(replica: Replica) -> None:
    removed = tuple(entry for entry in replica.layout if entry.groups != {"P": (2,)})
    assert repair(replica, removed) == "F5 D0 P0 | P1 | P3 | D1 | D2 | P2"


def test_a_scale_that_came_just_before_the_update(replica: Replica) -> None:
    """New replicas of a scaling group get gangs of the present version; new pods get places in the newest gang of their
    clique, which the update moves first (COH-178)."""
    replica.change("v1", keys("FPD"))
    replica.components = components("F7/2/2 P5/1/1 D2/1/1")
    replica.layout = repaired(replica.layout, replica.components, replica.observed(), replica.generation, replica.names)
    assert table(replica.layout) == "F7 D0 P0 | P1 | P2 | P3 | D1 | P4@v1"
    replica.act()
    replica.settle()
    assert batch(replica.advance()) == "anchor F2 P1 D1"
    assert replica.available(named("F")) == 5, "the two places without pods were moved"
    replica.settle()
    replica.update()
    assert violations(replica.layout, replica.components) == []


def test_a_scale_in_that_came_just_before_the_update(replica: Replica) -> None:
    replica.change("v1", keys("FPD"))
    replica.components = components("F2/2/2 P1/1/1 D3/1/1")
    assert repair(replica, replica.layout) == "F2 D0 P0 | D1 | D2"


def test_components_that_do_not_exist_leave_the_layout(replica: Replica) -> None:
    foreign = replace(replica.layout[0], cliques={"F": 5, "Z": 1}, groups={"P": (0,), "D": (0,), "Y": (0,)})
    assert repair(replica, (foreign, *replica.layout[1:])) == "F5 D0 P0 | P1 | P2 | P3 | D1 | D2"


def test_pods_without_any_gang_get_an_anchor() -> None:
    replica = Replica(components("F2/1"))
    layout = repaired((), replica.components, Observed(), "v1", replica.names)
    assert table(layout) == "F2@v1" and layout[0].anchor


def test_a_map_deleted_during_an_update_is_read_from_the_gangs(replica: Replica) -> None:
    replica.change("v1", keys("FPD"))
    for _ in range(3):
        replica.advance()
        replica.settle()
    found = replica.observed()
    gangs = [
        LiveGang(
            entry.name,
            entry.generation,
            entry.anchor,
            {"F": len(found.pods_in("F", entry.name))} if "F" in entry.cliques else {},
            entry.groups,
        )
        for entry in reversed(replica.layout)
    ]
    assert adopted(gangs, replica.components, found, "v0", replica.names) == replica.layout


def test_adopted_gangs_with_missing_and_surplus_members() -> None:
    gangs = [
        LiveGang("s-0", None, True, {"F": 0}, {"P": [0], "D": [0, 1]}),
        LiveGang("s-0-P-0", None, False, {}, {"P": [1, 7]}),
    ]
    parts = components("F3/1 P3/1 D1/1")
    names = Replica(parts).names
    layout = adopted(gangs, parts, Observed(), "v0", names)
    assert table(layout) == "F3 D0 P0 | P1 | P2"
    assert [entry.anchor for entry in layout] == [True, False, False]
    assert adopted([], parts, Observed(), "v0", names) == ()


def state(replica: Replica) -> list[ReplicaState]:
    return [ReplicaState(replica.layout, replica.observed())]


def test_scope_of_a_first_change(replica: Replica) -> None:
    replica.versions[named("D")] = "v1"
    assert scope(keys("D"), [], state(replica), "v1") == {named("D")}


def test_a_change_taken_back_before_anything_moved_has_no_scope(replica: Replica) -> None:
    replica.change("v1", keys("FP"))
    replica.change("v0", dict.fromkeys(keys("FP"), "v0"))
    assert scope(keys("FP"), keys("FP"), state(replica), "v0") == frozenset()


def test_converged_components_leave_the_scope() -> None:
    """F and P change, F has converged; then D changes, too: F keeps its gangs and is not moved again (COH-197)."""
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


def test_the_stored_form(replica: Replica) -> None:
    replica.change("v1", keys("FPD"))
    assert isinstance(replica.advance(), Advance)
    entries = to_entries(replica.layout)
    assert entries[0] == MapEntry(
        name=replica.layout[0].name,
        pod_clique_set_generation_hash="v0",
        pod_cliques={"F": 3},
        labels={"scheduling.grove.io/anchor": "true"},
    )
    assert entries[1].pcsg_replica_indices == {"P": [1]}
    assert entries[1].depends_on == {"matchLabels": {"scheduling.grove.io/anchor": "true"}}
    assert of_map(PodGangMap(spec=PodGangMapSpec(entries=entries))) == replica.layout


def test_stored_entries_without_members_are_ignored() -> None:
    entries = [
        MapEntry(name="a", pod_clique_set_generation_hash="v0", pod_cliques={"F": 0}, pcsg_replica_indices={"P": []}),
        MapEntry(name="b", pod_clique_set_generation_hash="v0", pcsg_replica_indices={"P": [2, 1]}),
    ]
    layout = of_map(PodGangMap(spec=PodGangMapSpec(entries=entries)))
    assert layout == (Entry("b", "v0", groups={"P": (1, 2)}),)


def test_lookups(replica: Replica) -> None:
    first = replica.layout[0].name
    assert pods_of_clique(replica.layout, "F") == {first: 5}
    assert indices_of_group(replica.layout, "D")[first] == (0,)
    held = ReplicaMap(replica.layout)
    assert held.gang_of("P", 2) == replica.layout[2].name
    assert held.gang_of("P", 9) is None
    assert held.entry(first) == replica.layout[0]
    assert held.entry("other") is None
    assert held.anchors == replica.layout[:1]
    assert anchors(replica.layout) == replica.layout[:1]


def test_the_gang_of_a_replica_that_is_being_replaced_does_not_count() -> None:
    observed = Observed(
        pods={"F": [ObservedPod("f", "old", True, True)]}, replicas={"P": {0: ObservedReplica("old", True, True)}}
    )
    assert observed.replica(named("P"), 0, "new") is None
    assert observed.replica(named("P"), 0, "old") is not None
    assert observed.pods_in("F", "new") == []
