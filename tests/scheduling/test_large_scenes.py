"""Tests of single cycles on large scenes with partly occupied nodes and gangs that all differ;
tests/bench/gang_scenes.py judges thousands of such scenes."""

from __future__ import annotations

import pytest

from reference_impl.scheduler import search
from tests.scheduling import fragmented, inversions

HARD_SEEDS = (1, 7, 28, 85, 217)
"""Seeds of scenes in which a gang that fits would wait if the search gave up too early."""


@pytest.mark.parametrize("seed", HARD_SEEDS)
def test_no_gang_waits_that_fits_in_place_of_a_gang_of_lower_priority(seed):
    assert inversions.judge_seed(seed) == []


def test_a_search_that_gives_up_inverts_no_priorities(monkeypatch):
    monkeypatch.setattr(search, "STEPS_PER_GANG", 0)
    scene = fragmented.scene(50)
    plan = fragmented.plan(scene)
    assert plan.reserved_for and inversions.breaches(scene, plan) == []
