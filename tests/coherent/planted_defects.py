"""Tests that histories on a real control plane detect defects that are planted in the reference.

Each test needs a separate cluster, so `make histories` runs this file and `make test` does not. In `make test`, the
same histories detect the same defects in memory (`test_histories.py`).
"""

from __future__ import annotations

import pytest

from mutants.registry import MUTANTS
from tests.coherent.histories.live import live_cluster
from tests.coherent.histories.model import GeneratedHistory
from tests.coherent.test_histories import COUNTED_PROGRESS, INDEX_GAPS, KEPT_OLD_PODS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]


@pytest.mark.parametrize(
    ("mutant", "history", "problem"),
    [
        ("progress-by-count", COUNTED_PROGRESS, "the set is at rest: not seen"),
        ("scale-in-leaves-gaps", INDEX_GAPS, "INV-022 broken"),
        ("pods-left-to-collector", KEPT_OLD_PODS, "INV-019 broken"),
    ],
)
def test_planted_defects_are_detected(
    mutant: str, history: GeneratedHistory, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The histories detect the defects also on a real control plane (COH-D03, COH-D05)."""
    assert mutant in MUTANTS.all()
    monkeypatch.setattr("tests.coherent.histories.live.WAIT_SECONDS", 40.0)
    with live_cluster(1, mutant) as cluster:
        assert any(line.startswith(problem) for line in cluster.run_history(history))
