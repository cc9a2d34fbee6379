"""Tests that scenarios are judged at rest, regardless of the number of rounds until then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformance.testing.playing import ScenarioRunner


class RepeatedEvictions(ScenarioRunner):
    """Scenarios in which the pods are evicted one after another, and the suite recreates each pod."""

    def __init__(self, evicted: int) -> None:
        self.remaining, self.rested = evicted, 0
        quiet = lambda seconds, within, unless: self._note()  # noqa: E731
        settled = lambda description, predicate, within: None  # noqa: E731
        self.alive_checks: list[tuple[str, int]] = []
        alive = lambda step: self.alive_checks.append((step, self.remaining))  # noqa: E731
        attributes = {"quiet": quiet, "settled": settled, "require_alive": alive}
        self.env: Any = SimpleNamespace(implementation=SimpleNamespace(settle=4.0), **attributes)

    def _note(self) -> None:
        self.rested += 1

    def _are_at_rest(self, runs: Any, view: Any) -> bool:
        return True

    def _act_as_operator(self, runs: Any) -> bool:
        self.remaining -= 1
        return self.remaining >= 0


@pytest.mark.parametrize("evicted", [0, 1, 8, 50])
def test_scenarios_are_judged_after_a_time_without_a_change(evicted: int) -> None:
    play = RepeatedEvictions(evicted)
    play._come_to_rest([], "at rest")
    assert play.remaining < 0 and play.rested
    assert play.alive_checks == [("at rest", play.remaining)], "what a dead scheduler has left is not judged"
