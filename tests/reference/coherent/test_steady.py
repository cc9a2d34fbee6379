"""Tests of scaling between updates (spec GM-38 to GM-42), and of epochs."""

from __future__ import annotations

import pytest

from reference_impl.plan.coherent.planner import Complete
from reference_impl.plan.epochs import EpochSource, sort_key
from reference_impl.plan.fitting import fits
from reference_impl.plan.layout import Role
from tests.reference.coherent.simulation import Replica, components, deployed, keys, table

T = 1_700_000_000_000_000_000


def scaled(replica: Replica, text: str) -> str:
    replica.components = components(text)
    assert not fits(replica.layout, replica.components)
    replica.fit()
    assert fits(replica.layout, replica.components)
    return table(replica.layout)


def test_replicas_that_scaling_adds_join_the_entry_for_them() -> None:
    replica = deployed("F2/1 P2/1")
    assert scaled(replica, "F2/1 P4/1") == "F2 P0 | P1 | P2 | P3"
    assert [(entry.role, entry.groups) for entry in replica.layout[1:]] == [
        (Role.TAIL, {"P": (1,)}),
        (Role.SCALE_OUT, {"P": (2, 3)}),
    ]
    assert scaled(replica, "F2/1 P1/1") == "F2 P0"
    assert [entry.role for entry in replica.layout] == [Role.ANCHOR, Role.SCALE_OUT], "an empty place stays (GM-42)"
    assert scaled(replica, "F2/1 P2/1") == "F2 P0 | P1"
    assert replica.layout[-1].groups == {"P": (1,)}, "also what the template had (GM-40)"


@pytest.mark.parametrize(("pods", "expected"), [(7, "F7 P0 | P1"), (1, "F1 P0 | P1"), (0, "P0 | P1")])
def test_scaling_a_clique_changes_the_pods_in_the_only_anchor(pods: int, expected: str) -> None:
    assert scaled(deployed("F4/1 P2/1"), f"F{pods}/1 P2/1") == expected


def test_a_set_of_groups_scaled_to_zero_starts_over() -> None:
    replica = deployed("P3/1")
    old = {entry.key for entry in replica.layout}
    assert scaled(replica, "P0/1") == "" and replica.layout == ()
    assert scaled(replica, "P3/1") == "P0 | P1 | P2"
    assert replica.layout[0].anchor and not old & {entry.key for entry in replica.layout}
    assert all(entry.depends_on == (replica.layout[0].key,) for entry in replica.layout[1:])


def test_the_scale_out_entry_depends_on_the_oldest_remaining_anchor() -> None:
    """The update removes the anchor on which that place depended (GM-155)."""
    replica = deployed("F2/1/1 P2/1/1")
    replica.change("v1", keys("FP"))
    while not isinstance(replica.advance(), Complete):
        replica.settle()
    oldest = next(entry for entry in replica.layout if entry.anchor)
    [scale_out] = [entry for entry in replica.layout if entry.role is Role.SCALE_OUT]
    assert scale_out.depends_on in ((), (oldest.key,)) and scale_out.generation == "v1"


def test_epochs_grow_even_if_the_clock_steps_back() -> None:
    now = [T]
    source = EpochSource(lambda: now[0])
    assert source.take(2, []) == [str(T), str(T + 1)]
    now[0] = T - 50
    assert source.take(1, [str(T + 5)]) == [str(T + 6)]
    assert source.take(1, []) == [str(T + 7)], "none is given twice"
    assert source.take(0, []) == []
    assert source.take(1, []) == [str(T + 8)]


def test_epochs_are_ordered_by_number() -> None:
    assert sorted(["10", "9", "x"], key=sort_key) == ["x", "9", "10"]
