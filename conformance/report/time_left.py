"""Estimate the remaining time of a run from the costs of its scenes, at the pace of those that are over. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

ENOUGH = 0.05
"""The share of a run that has to be over before the rest is estimated."""
USUAL = 60.0
"""Seconds for which the pace is taken to be the usual one, beside what was measured: the first scenes of a run are
slow, since programs and connections are new."""


class TimeLeft:
    """The rest of a run. `scenes` has the scene of each test, `costs` the seconds of each scene. Those in `exclusive`
    keep the other workers waiting. All times are seconds since the first test began."""

    def __init__(
        self, scenes: Mapping[str, str], costs: Mapping[str, float], exclusive: Collection[str] = (), workers: int = 1
    ) -> None:
        self._scenes = scenes
        self._share = {scene: 1.0 if scene in exclusive else 1.0 / max(workers, 1) for scene in costs}
        self._remaining_costs = dict(costs)
        self._began: dict[str, float] = {}
        self._whole = sum(cost * self._share[scene] for scene, cost in costs.items())

    def started(self, test: str, now: float) -> None:
        """Take the beginning of a test for that of its scene, if it is the first of its tests."""
        self._began.setdefault(self._scenes.get(test, ""), now)

    def ended(self, test: str) -> None:
        """Count a test that has ended. A scene is played for the first of its tests, so the others cost nothing."""
        self._remaining_costs.pop(self._scenes.get(test, ""), None)

    def seconds(self, now: float) -> float | None:
        """Return the seconds that are left; None if too little is over to know how fast this machine is. A scene that
        takes longer than it costs, since something does not come, is taken to last as long again as it is late."""
        ahead = {scene: cost - (now - self._began.get(scene, now)) for scene, cost in self._remaining_costs.items()}
        remaining = sum(max(0.0, seconds) * self._share[scene] for scene, seconds in ahead.items())
        played = self._whole - remaining
        delay = max((-seconds for seconds in ahead.values() if seconds < 0), default=0.0)
        return (
            delay + remaining * (now + USUAL) / (played + USUAL) if played and played >= ENOUGH * self._whole else None
        )


def words(seconds: float | None) -> str:
    """Return the time left for people, to the minute; nothing if it is unknown."""
    if seconds is None:
        return ""
    return "less than a minute left" if seconds < 60 else f"about {math.ceil(seconds / 60)} min left"
