"""Estimate the remaining time of a run from the costs of its scenes and the pace of the scenes that have finished.
Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

MIN_FRACTION = 0.05
"""The fraction of a run that must be complete before the rest is estimated."""
DAMPING_SECONDS = 60.0
"""Seconds that are added to both the elapsed time and the completed cost, as if that much work had already been done at
the usual pace. This damps the effect of the first scenes, which are slow because processes and connections are new."""


class TimeLeft:
    """The remaining time of a run. `scenes` maps each test to its scene, `costs` maps each scene to its usual seconds.
    Scenes in `exclusive` block the other workers. All times are seconds since the first test started."""

    def __init__(
        self, scenes: Mapping[str, str], costs: Mapping[str, float], exclusive: Collection[str] = (), workers: int = 1
    ) -> None:
        self._scenes = scenes
        self._shares = {scene: 1.0 if scene in exclusive else 1.0 / max(workers, 1) for scene in costs}
        self._remaining_costs = dict(costs)
        self._start_times: dict[str, float] = {}
        self._total_cost = sum(cost * self._shares[scene] for scene, cost in costs.items())

    def start_test(self, test: str, now: float) -> None:
        """Record the start of a test. The start of a scene's first test counts as the start of the scene."""
        self._start_times.setdefault(self._scenes.get(test, ""), now)

    def end_test(self, test: str) -> None:
        """Record the end of a test. A scene is played for its first test, so its other tests cost nothing."""
        self._remaining_costs.pop(self._scenes.get(test, ""), None)

    def seconds(self, now: float) -> float | None:
        """Return the remaining seconds; None if too little is complete to know the speed of this machine. A scene that
        exceeds its cost, usually because it waits without success, is assumed to continue for as long as it has already
        exceeded its cost."""
        remaining_by_scene = {
            scene: cost - (now - self._start_times.get(scene, now)) for scene, cost in self._remaining_costs.items()
        }
        remaining = sum(max(0.0, seconds) * self._shares[scene] for scene, seconds in remaining_by_scene.items())
        completed_cost = self._total_cost - remaining
        delay = max((-seconds for seconds in remaining_by_scene.values() if seconds < 0), default=0.0)
        return (
            delay + remaining * (now + DAMPING_SECONDS) / (completed_cost + DAMPING_SECONDS)
            if completed_cost and completed_cost >= MIN_FRACTION * self._total_cost
            else None
        )


def words(seconds: float | None) -> str:
    """Return the remaining time in words, to the minute; empty if it is unknown."""
    if seconds is None:
        return ""
    return "less than a minute left" if seconds < 60 else f"about {math.ceil(seconds / 60)} min left"
