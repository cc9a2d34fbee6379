"""Updates of components that make no progress (spec GM-110)."""

from __future__ import annotations

import time
from collections.abc import Hashable

from kube.objects import Key
from reference_impl.api.models import PodClique, PodCliqueScalingGroup
from reference_impl.plan import conditions, update_condition, update_progress


class UpdateWatch:
    """Remembers the state of each component's update, and since when the update has been in this state.

    Nothing is stored in the cluster. An operator that is restarted gives a component its whole deadline again, unless
    the component was stuck; a stuck component stays stuck until its state changes.
    """

    def __init__(self) -> None:
        self._observed: dict[Key, tuple[Hashable, float]] = {}

    def remaining(
        self, item: PodClique | PodCliqueScalingGroup, state: Hashable, deadline: float | None
    ) -> float | None:
        """Return the number of seconds until the update of a component counts as stuck, or 0 if it is stuck, None if it
        cannot be."""
        key = item.metadata.key
        if deadline is None or not update_progress.running(item):
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
