"""Tests of generated histories on a real control plane: a few in `make test`, 200 in `make histories`.

Each history has a small set in its own namespace. The set is changed, reverted and scaled, and loses pods and nodes,
while the operator is killed, the garbage collector is suspended, and the strategy is switched. The suite's invariants
judge the recorded events. A history that breaks an invariant is reduced, and kept as a manifest with kubectl commands
in `reports/histories/`.
"""

from __future__ import annotations

import os

import pytest

from tests.coherent.histories.drawing import draw_histories, draw_switches, find_counterexamples
from tests.coherent.histories.live import live_cluster

HISTORY_COUNT = int(os.environ.get("HISTORIES", "2"))
SWITCH_COUNT = int(os.environ.get("SWITCHES", HISTORY_COUNT // 24))
"""The number of histories, and the number of additional histories for each direction of a strategy switch."""
NODE_POOL_COUNT = int(os.environ.get("LANES", "12"))
"""The number of histories that run at the same time."""

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200 + 30 * (HISTORY_COUNT + 6 * SWITCH_COUNT))]


def test_no_history_breaks_an_invariant() -> None:
    histories = [*draw_histories(HISTORY_COUNT), *draw_switches(SWITCH_COUNT)]
    with live_cluster(min(NODE_POOL_COUNT, len(histories))) as cluster:
        failing_histories = find_counterexamples(histories, cluster.run_all, "live")
    assert not failing_histories, "\n\n".join(failing_histories)
