"""The detection of component updates that make no progress (spec GM-110)."""

from __future__ import annotations

import time
from collections.abc import Hashable

from kube.objects import Key
from reference_impl.api.models import PodClique, PodCliqueScalingGroup
from reference_impl.plan import conditions, update_condition, update_progress


class UpdateWatch:
    """The state of each component's update, and the time since which the update has been in this state.

    Nothing is stored in the cluster. A restarted operator gives each component its whole deadline again, except for
    stuck components, which stay stuck until their state changes.
    """

    def __init__(self) -> None:
        self._observed: dict[Key, tuple[Hashable, float]] = {}

    def seconds_until_stuck(
        self, item: PodClique | PodCliqueScalingGroup, state: Hashable, deadline: float | None
    ) -> float | None:
        """Return the number of seconds until the update of a component counts as stuck. Return 0 if the update is
        stuck, and None if it cannot become stuck."""
        key = item.metadata.key
        if deadline is None or not update_progress.is_running(item):
            self.forget(key)
            return None
        current_time = time.monotonic()
        observed = self._observed.get(key)
        if observed is None:
            condition = conditions.find(item.status.conditions if item.status else None, update_condition.CONDITION)
            stuck = condition is not None and condition.status == "Unknown"
            observed = self._observed[key] = state, current_time - deadline if stuck else current_time
        elif observed[0] != state:
            observed = self._observed[key] = state, current_time
        return max(0.0, observed[1] + deadline - current_time)

    def forget(self, key: Key) -> None:
        """Forget a component."""
        self._observed.pop(key, None)
