"""Generated histories on a real control plane: a handful in `make test`, 200 in `make histories`.

Each is a small set in a namespace of its own that is changed, reverted, scaled, loses pods and nodes, while the
operator is killed, the garbage collector stands still, and the strategy is switched. The suite's invariants judge what
happened. A history that breaks one is made smaller, and kept as a manifest with kubectl commands in
`reports/histories/`.
"""

from __future__ import annotations

import os

import pytest

from tests.coherent.histories.drawing import counterexamples, drawn, switched
from tests.coherent.histories.live import stage

HISTORIES = int(os.environ.get("HISTORIES", "2"))
SWITCHES = int(os.environ.get("SWITCHES", HISTORIES // 24))
"""How many histories are played, and how many more for each direction in which the strategy can be switched."""
LANES = int(os.environ.get("LANES", "12"))
"""How many of them are played at a time."""

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1200 + 30 * (HISTORIES + 6 * SWITCHES))]


def test_no_history_breaks_an_invariant() -> None:
    histories = [*drawn(HISTORIES), *switched(SWITCHES)]
    with stage(min(LANES, len(histories))) as on:
        wrong = counterexamples(histories, on.play_all, "live")
    assert not wrong, "\n\n".join(wrong)
