"""Cycles on large scenes of nodes that are partly occupied and gangs that all differ; tests/bench/gang_scenes.py judges
thousands of them."""

from __future__ import annotations

import pytest

from tests.scheduling import inversions

HARD = (1, 7, 28, 85, 217)
"""Seeds of scenes where a gang waits that fits if the search gives up too early."""


@pytest.mark.parametrize("seed", HARD)
def test_no_gang_waits_that_fits_where_one_of_lower_priority_is_placed(seed):
    assert inversions.judged(seed) == []
