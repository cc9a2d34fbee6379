"""Tests that updates without failures follow the sub-steps of the specification's worked plans (COH-130 to COH-141;
without a scaling group, GM-154)."""

from __future__ import annotations

import pytest

from reference_impl.api.coherent import GangLayout
from tests.reference.coherent.simulation import batch, deployed, keys

PLANS = {
    "COH-130": (
        "F10/2/2 P10/3/3 D20/3/4",
        "FPD",
        [*["anchor F2 P3 D3", "tail F1 D3"] * 3, "leftover F1 P1 D2"],
    ),
    "COH-131": (
        "F10/1/1 P100/3/3 D80/3/4",
        "FPD",
        ["anchor F1 P3 D3", "tail P3 D4", "tail P3 D1", "tail P1"] * 10,
    ),
    "COH-132": (
        "F20/2/2 P10/3/3 D20/3/4",
        "FPD",
        [
            *["anchor F2 P3 D3", "tail F2 D3", "tail F2"] * 3,
            "leftover F2 P1 D2",
        ],
    ),
    "COH-133": ("F10/1/1 P100/3/3 D80/3/4", "F", ["anchor F1", *["tail F1"] * 9]),
    "COH-134": (
        "F5/2/2 P4/1/1 D3/1/1",
        "FPD",
        ["anchor F2 P1 D1", "tail P1", "anchor F2 P1 D1", "tail P1", "leftover F1 D1"],
    ),
    "COH-135": ("F5/2/2 P4/1/1 D3/1/1", "PD", [*["anchor P1 D1"] * 3, "leftover P1"]),
    "COH-136": ("F5/2/2 P4/1/1 D3/1/1", "F", ["anchor F2", "tail F2", "tail F1"]),
    "COH-137": ("F2/2/2 P2/2/2", "FP", ["anchor F2 P2"]),
    "COH-138": ("F7/3/3 P5/2/2", "FP", ["anchor F3 P2", "anchor F3 P2", "leftover F1 P1"]),
    "COH-139": ("F2/1/1 P12/2/2", "FP", ["anchor F1 P2", "tail P2", "tail P2"] * 2),
    "COH-140": ("F3/2/2 P9/1/1", "FP", ["anchor F2 P1", "tail F1 P1", *["tail P1"] * 7]),
    "COH-141": ("F4/2/2 P4/1/1", "FP", ["anchor F2 P1", "tail P1"] * 2),
}


@pytest.mark.parametrize("layout", GangLayout)
@pytest.mark.parametrize("plan", PLANS)
def test_updates_follow_the_worked_plans(plan: str, layout: GangLayout) -> None:
    """The gang layout decides which gang a member joins, but not which members move when."""
    text, changed, expected = PLANS[plan]
    replica = deployed(text, layout)
    replica.change("v1", keys(changed))
    assert [batch(step) for step in replica.update()] == expected
