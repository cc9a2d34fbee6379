"""Tests of which changes to gangs scaling may make, according to COH-T8 and COH-T9."""

from __future__ import annotations

import pytest

from conformance.grove.coherent import steady
from conformance.grove.coherent.change import LayoutChange
from conformance.grove.coherent.model import Key
from conformance.grove.coherent.traces import layout

F, P, D = Key("clique", "F"), Key("group", "P"), Key("group", "D")
M1, T1, T2, T3 = "s-0-1*@v: F2 P[0] D[0]", "s-0-2@v: P[1]", "s-0-4@v: P[3]", "s-0-5@v: D[2]"
AFTER_UPDATE = [M1, T1, "s-0-3*@v: F3 P[2] D[1]", T2, T3]
T4, T5 = "s-0-6@v: P[4]", "s-0-7@v: P[5]"
WORKED_WALK = [
    (AFTER_UPDATE, (5, 4, 3)),
    ([*AFTER_UPDATE, T4, T5], (5, 6, 3)),
    ([M1, T1, "s-0-3*@v: F3 P[2] D[1]", T3], (5, 3, 3)),
    ([M1, T1, "s-0-3*@v: F3 P[2] D[1]"], (5, 3, 2)),
    ([M1, T1, "s-0-3*@v: F3 P[2]"], (5, 3, 1)),
    ([M1, T1, "s-0-3*@v: F3"], (5, 2, 1)),
    ([M1, T1], (2, 2, 1)),
]
"""COH-T8: the gangs after each change, and the sizes of F, P and D."""


def problems(layout_before: list[str], layout_after: list[str], sizes: tuple[int, int, int]) -> list[str]:
    return steady.problems(
        LayoutChange(layout(layout_before), layout(layout_after)), dict(zip((F, P, D), sizes, strict=True))
    )


@pytest.mark.parametrize("step", range(1, len(WORKED_WALK)))
def test_the_worked_walk_is_permitted(step: int) -> None:
    assert problems(WORKED_WALK[step - 1][0], *WORKED_WALK[step]) == []


def test_legacy_gangs_are_scaled_by_index() -> None:
    """COH-T9: a set that was created without maps."""
    layout_before = ["s-0*@v: F3 P[0]", "s-0-prefill-0@v: P[1]", "s-0-9@v: P[2]"]
    right_layout, layout_with_gap = [layout_before[0], layout_before[1]], [layout_before[0], layout_before[2]]
    assert problems(layout_before, right_layout, (3, 2, 0)) == []
    assert problems(layout_before, layout_with_gap, (3, 2, 0)) == ["entries hold replicas [0, 2] of P, which has 2"]


WRONG_LAYOUTS = [
    ([M1, T1, "s-0-3*@v: F3 P[2,4] D[1]", T2, T3], (5, 5, 3), "gains replicas of P"),
    ([*AFTER_UPDATE, "s-0-6@v: P[4,5]"], (5, 6, 3), "holds {P[4,5]}, not one replica"),
    ([*AFTER_UPDATE, "s-0-6*@v: P[4]"], (5, 5, 3), "is new and an anchor"),
    (["s-0-1*@v: F3 P[0] D[0]", *AFTER_UPDATE[1:]], (6, 4, 3), "join s-0-1, and not s-0-3"),
    ([*AFTER_UPDATE, "s-0-6@v: F1"], (6, 4, 3), "holds pods of a standalone clique"),
    ([M1, T1, "s-0-3*@v: F3 P[2] D[1]", T3, "s-0-8@v: P[3]"], (5, 4, 3), "replicas [3] of P are in another gang"),
]


@pytest.mark.parametrize(("layout_after", "sizes", "problem"), WRONG_LAYOUTS)
def test_forbidden_changes_by_scaling_are_reported(
    layout_after: list[str], sizes: tuple[int, int, int], problem: str
) -> None:
    assert problem in "; ".join(problems(AFTER_UPDATE, layout_after, sizes))
