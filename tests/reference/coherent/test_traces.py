"""Tests of the specification's worked traces, COH-T1 to COH-T9: the layout after each write, and the available
members."""

from __future__ import annotations

from reference_impl.plan.coherent.planner import Advance, Wait
from tests.reference.coherent.simulation import Replica, components, deployed, gangs, keys, named, table


def trace(replica: Replica) -> list[tuple[str, str]]:
    """Update a replica whose pods all become Ready. Return, for each write, the layout and the number of available
    members of each component in scope before the new members are Ready."""
    result = []
    while isinstance(replica.advance(), Advance):
        ready = " ".join(f"{c.key.name}{replica.available(c.key)}" for c in replica.in_scope())
        result.append((table(replica.layout), ready))
        replica.settle()
    return result


def test_t1_all_components_are_updated() -> None:
    replica = deployed("F5/2/2 P4/1/1 D3/1/1")
    assert table(replica.layout) == "F5 D0 P0 | P1 | P2 | P3 | D1 | D2"
    replica.change("v1", keys("FPD"))
    assert trace(replica) == [
        ("F3 | P1 | P2 | P3 | D1 | D2 | F2 D0 P0@v1", "F3 P3 D2"),
        ("F3 | P2 | P3 | D1 | D2 | F2 D0 P0@v1 | P1@v1", "F5 P3 D3"),
        ("F1 | P3 | D2 | F2 D0 P0@v1 | P1@v1 | F2 D1 P2@v1", "F3 P3 D2"),
        ("F1 | D2 | F2 D0 P0@v1 | P1@v1 | F2 D1 P2@v1 | P3@v1", "F5 P3 D3"),
        ("F2 D0 P0@v1 | P1@v1 | F3 D1 P2@v1 | P3@v1 | D2@v1", "F4 P4 D2"),
    ]


def test_t2_only_scaling_groups_are_updated() -> None:
    replica = deployed("F5/2/2 P4/1/1 D3/1/1")
    replica.change("v1", keys("PD"))
    assert [layout for layout, _ in trace(replica)] == [
        "F5@v1 | P1 | P2 | P3 | D1 | D2 | D0 P0@v1",
        "F5@v1 | P2 | P3 | D2 | D0 P0@v1 | D1 P1@v1",
        "F5@v1 | P3 | D0 P0@v1 | D1 P1@v1 | D2 P2@v1",
        "F5@v1 | D0 P0@v1 | D1 P1@v1 | D2 P2@v1 | P3@v1",
    ]
    assert replica.layout[0].anchor, "the anchor keeps the standalone pods, and stays one (COH-186)"
    replica.components = components("F6/2/2 P4/1/1 D3/1/1")
    replica.fit()
    assert replica.layout[0].cliques == {"F": 6}, "new pods join the gang that holds the clique (COH-189)"


def test_t3_only_standalone_cliques_are_updated() -> None:
    replica = deployed("F5/2/2 P4/1/1 D3/1/1")
    replica.change("v1", keys("F"))
    unchanged_members = " | P1@v1 | P2@v1 | P3@v1 | D1@v1 | D2@v1"
    assert trace(replica) == [
        (f"F3 D0 P0{unchanged_members} | F2@v1", "F3"),
        (f"F1 D0 P0{unchanged_members} | F4@v1", "F3"),
        (f"D0 P0@v1{unchanged_members} | F5@v1", "F4"),
    ], "one anchor, which takes the others in (GM-154); what holds nothing in scope is of the new generation (GM-160)"


def test_t4_floors_hold_and_the_last_step_absorbs_the_remainder() -> None:
    replica = deployed("F20/2/2 P10/3/3 D20/3/4")
    assert len(gangs(replica.layout)) == 25
    replica.change("v1", keys("FPD"))
    steps = trace(replica)
    assert [ready for _, ready in steps] == [
        *["F18 P7 D17", "F18 P10 D17", "F18 P10 D20"] * 3,
        "F18 P9 D18",
    ]
    assert "F4 D0,1,2 P0,1,2@v1 | D3@v1 | D4@v1 | D5@v1" in steps[1][0]
    assert "F6 D0,1,2 P0,1,2@v1 | D3@v1 | D4@v1 | D5@v1" in steps[2][0]
    assert len(gangs(replica.layout)) == 15
    anchors = [entry for entry in replica.layout if entry.anchor]
    assert [entry.cliques["F"] for entry in anchors] == [6, 6, 8]
    assert [entry.groups["D"] for entry in anchors] == [(0, 1, 2), (6, 7, 8), (12, 13, 14)]


def test_t5_a_restart_in_the_middle_moves_nothing_else() -> None:
    """The operator restarts between the write of the layout and the creation of the gang, and nothing else moves
    (COH-221)."""
    replica = deployed("F2/1/1 P2/1/1")
    replica.change("v1", keys("FP"))
    first = replica.plan()
    assert isinstance(first, Advance)
    replica.layout = first.layout
    assert table(replica.layout) == "F1 | P1 | F1 P0@v1"
    for _ in range(3):
        assert isinstance(waiting := replica.plan(), Wait)
        assert waiting.in_flight == first.in_flight == (replica.layout[-1].key,)
        replica.act()
    replica.settle()
    assert [layout for layout, _ in trace(replica)] == ["F1 P0@v1 | F1 P1@v1"]


def test_t6_a_broken_version_is_fixed() -> None:
    replica = deployed("F4/2/2 P4/2/2")
    replica.works = lambda _, version: version != "v1"
    replica.change("v1", keys("FP"))
    assert isinstance(replica.advance(), Advance)
    assert table(replica.layout) == "F2 | P2 | P3 | F2 P0,1@v1"
    replica.settle()
    assert isinstance(waiting := replica.advance(), Wait)
    assert "to become Ready" in waiting.reason
    replica.change("v2", keys("FP"))
    assert trace(replica) == [
        ("F2 | P2 | P3 | F2 P0,1@v2", "F2 P2"),
        ("F2 P0,1@v2 | F2 P2,3@v2", "F2 P2"),
    ]


def test_t7_an_update_is_reverted() -> None:
    replica = deployed("F2/1/1 P4/1/1")
    replica.change("v1", keys("P"))
    for _ in range(2):
        assert isinstance(replica.advance(), Advance)
        replica.settle()
    assert table(replica.layout) == "F2@v1 | P2 | P3 | P0@v1 | P1@v1"
    replica.change("v0", {named("P"): "v0"})
    assert [layout for layout, _ in trace(replica)] == ["F2 | P2 | P3 | P1@v1 | P0", "F2 | P2 | P3 | P0 | P1"]
    assert {member.index: member.version for member in replica.members[named("P")]} == dict.fromkeys(range(4), "v0")


def scaled(replica: Replica, text: str) -> str:
    """Scale between updates, and return the layout."""
    replica.components = components(text)
    replica.fit()
    replica.act()
    replica.settle()
    return table(replica.layout)


def test_t8_components_are_scaled_after_an_update() -> None:
    replica = deployed("F5/2/2 P4/1/1 D3/1/1")
    replica.change("v1", keys("FPD"))
    replica.update()
    assert table(replica.layout) == "F2 D0 P0@v1 | P1@v1 | F3 D1 P2@v1 | P3@v1 | D2@v1"
    grown = "P4@v1 | P5@v1 | F2 D0 P0@v1 | P1@v1 | F3 D1 P2@v1 | P3@v1 | D2@v1"
    assert scaled(replica, "F5/2/2 P6/1/1 D3/1/1") == grown, "the entry for scale-out is older than the update"
    assert scaled(replica, "F5/2/2 P3/1/1 D3/1/1") == "F2 D0 P0@v1 | P1@v1 | F3 D1 P2@v1 | D2@v1"
    assert scaled(replica, "F5/2/2 P3/1/1 D1/1/1") == "F2 D0 P0@v1 | P1@v1 | F3 P2@v1", "its partners run (COH-250)"
    assert scaled(replica, "F5/2/2 P2/1/1 D1/1/1") == "F2 D0 P0@v1 | P1@v1 | F3@v1"
    assert scaled(replica, "F2/2/2 P2/1/1 D1/1/1") == "F2 D0 P0@v1 | P1@v1", "the newest anchor first (GM-39)"
    assert scaled(replica, "F0/2/2 P0/1/1 D0/1/1") == ""
    assert replica.layout == (), "without an anchor, no place is kept (GM-42)"
    assert scaled(replica, "F2/2/2 P2/1/1 D0/1/1") == "F2 P0@v1 | P1@v1", "as a new replica (GM-89)"
