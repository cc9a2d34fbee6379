"""Tests of the plan according to the first version of the proposal (spec COH-166 to COH-169)."""

from __future__ import annotations

import pytest

from reference_impl.plan.coherent import first_text
from reference_impl.plan.coherent.planner import Advance, Complete
from reference_impl.plan.fitting import violations
from tests.reference.coherent.simulation import Replica, components, gangs, keys, table

REMAINING_D_GANGS = [f"D{index}" for index in range(9, 20)]
LAYOUTS = {
    "F10/2 P10/3 D20/3": ["F2 D0,1,2 P0,1,2", "F2 D3,4,5 P3,4,5", "F6 D6,7,8 P6,7,8", "P9", *REMAINING_D_GANGS],
    "F20/2 P10/3 D20/3": ["F2 D0,1,2 P0,1,2", "F2 D3,4,5 P3,4,5", "F16 D6,7,8 P6,7,8", "P9", *REMAINING_D_GANGS],
    "F5/2 P4/1 D3/1": ["F2 D0 P0", "F3 D1 P1", "P2", "P3", "D2"],
    "F3/2 P9/1": ["F3 P0", *[f"P{index}" for index in range(1, 9)]],
    "F3/1 P4/2 D5/2": ["F1 D0,1 P0,1", "F2 D2,3 P2,3", "D4"],
    "F5/2": ["F2", "F3"],
    "P3/1": ["P0", "P1", "P2"],
}


def first(text: str) -> Replica:
    parts = components(text)
    replica = Replica(parts)
    replica.layout = first_text.first_layout(parts, "v0", replica.epochs)
    return replica.deploy()


@pytest.mark.parametrize("text", LAYOUTS)
def test_the_first_layout_has_the_expected_gangs(text: str) -> None:
    replica = first(text)
    assert gangs(replica.layout) == LAYOUTS[text]
    assert violations(replica.layout, replica.components) == []


def updated(replica: Replica) -> list[str]:
    """Update all components, and return the contents of the new gangs in each iteration."""
    replica.change("v1", [component.key for component in replica.components])
    result = []
    while isinstance(step := plan(replica), Advance):
        result.append(" | ".join(gangs(tuple(e for e in step.layout if e.key in step.in_flight))))
        replica.layout = step.layout
        replica.act()
        replica.settle()
        assert violations(replica.layout, replica.components) == []
    assert isinstance(step, Complete)
    return result


def plan(replica: Replica) -> object:
    return first_text.next_step(
        replica.layout, replica.in_scope(), replica.observed(), replica.generation, replica.epochs
    )


@pytest.mark.parametrize("text", LAYOUTS)
def test_updates_form_the_expected_gangs(text: str) -> None:
    iterations = updated(first(text))
    assert " | ".join(iterations).split(" | ") == LAYOUTS[text]


def test_all_tails_move_at_once() -> None:
    """Eight of nine replicas are down at the same time (COH-169)."""
    assert updated(first("F3/2 P9/1")) == ["F3 P0", "P1 | P2 | P3 | P4 | P5 | P6 | P7 | P8"]


def test_a_partial_update_moves_only_changed_components() -> None:
    replica = first("F3/1 P4/2 D5/2")
    replica.change("v1", keys("D"))
    step = plan(replica)
    assert isinstance(step, Advance)
    assert table(step.layout) == "F1 P0,1 | F2 D2,3 P2,3 | D4 | D0,1@v1"
