"""Since when the updates of components have not moved (spec GM-110)."""

from __future__ import annotations

import time
from collections.abc import Hashable

from kube.objects import Key
from reference_impl.api.models import PodClique, PodCliqueScalingGroup
from reference_impl.plan import conditions, update_condition, update_progress


class UpdateWatch:
    """Remembers what the update of each component looked like, and since when it has looked so.

    Nothing is stored in the cluster: an operator that is started again gives a component its whole deadline, unless it
    was stuck, which it stays until it moves.
    """

    def __init__(self) -> None:
        self._seen: dict[Key, tuple[Hashable, float]] = {}

    def remaining(
        self, item: PodClique | PodCliqueScalingGroup, looks: Hashable, deadline: float | None
    ) -> float | None:
        """Seconds until the update of a component counts as stuck, 0 if it does; None if it cannot."""
        key = item.metadata.key
        if deadline is None or not update_progress.running(item):
            self.forget(key)
            return None
        present = time.monotonic()
        known = self._seen.get(key)
        if known is None:
            found = conditions.find(item.status.conditions if item.status else None, update_condition.CONDITION)
            stuck = found is not None and found.status == "Unknown"
            known = self._seen[key] = looks, present - deadline if stuck else present
        elif known[0] != looks:
            known = self._seen[key] = looks, present
        return max(0.0, known[1] + deadline - present)

    def forget(self, key: Key) -> None:
        """Forget a component."""
        self._seen.pop(key, None)
