"""Generated histories on a real control plane: a handful in `make test`, 200 in `make histories`.

Each history is about a small set in its own namespace. The set is changed, reverted and scaled, and loses pods and
nodes, while the operator is killed, the garbage collector is suspended, and the strategy is switched. The suite's
invariants judge the recorded events. A history that breaks an invariant is reduced, and kept as a manifest with kubectl
commands in `reports/histories/`.
"""

from __future__ import annotations

import os

import pytest

from tests.coherent.histories.drawing import counterexamples, drawn, switched
from tests.coherent.histories.live import stage

HISTORIES = int(os.environ.get("HISTORIES", "2"))
SWITCHES = int(os.environ.get("SWITCHES", HISTORIES // 24))
"""The number of histories, and the number of additional histories for each direction of a strategy switch."""
LANES = int(os.environ.get("LANES", "12"))
"""The number of histories that run at the same time."""

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200 + 30 * (HISTORIES + 6 * SWITCHES))]


def test_no_history_breaks_an_invariant() -> None:
    histories = [*drawn(HISTORIES), *switched(SWITCHES)]
    with stage(min(LANES, len(histories))) as on:
        wrong = counterexamples(histories, on.play_all, "live")
    assert not wrong, "\n\n".join(wrong)
