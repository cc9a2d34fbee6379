"""A PodCliqueSet under load: phases with one change each, waits whose cost does not depend on the number of pods, and
the timing markers of each phase.

No result depends on a time limit. A wait fails only when the phase has made no progress for a while.
"""

from __future__ import annotations

from collections.abc import Callable

from conformance.grove.fields import Document, number
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.scale import final_check
from conformance.scale.markers import Target, conditions, markers_of
from conformance.scale.phases import LoadPhase
from conformance.scale.tracker import Tracker
from conformance.testing.scene import SceneEnvironment

MAX_STALL_SECONDS = 60.0
"""Seconds without progress after which a wait fails."""

MissingPart = Callable[[Tracker], str]
"""A function that returns what is missing, or an empty string if nothing is missing."""


class Load:
    """One set, observed through its watch events. During a wait, `tracker` is ahead of the history."""

    def __init__(self, env: SceneEnvironment) -> None:
        self._env, self.tracker = env, Tracker(env.history.log, env.namespace)
        self._phase: LoadPhase | None = None
        self._started_at = 0.0
        self._initial_objects = 0
        """The number of pods, Grove objects and Services at the start of the phase."""
        self.target = Target(0, 0, 0, 0, 0)

    def start_phase(self, phase: LoadPhase, pods: int, act: Callable[[], Document | None]) -> None:
        """Start a phase: `act` changes the set, which is expected to have `pods` pods after the change."""
        self.record_markers()
        pods_before, deleted, self._started_at = len(self.tracker.pods), self.tracker.deleted, self._env.history.now()
        self._initial_objects = self.tracker.remaining_objects
        changed = act()
        generation = number(changed, "metadata", "generation") or 0
        self._phase, self.target = phase, Target(pods, phase.replicas, generation, pods_before, deleted)
        self.tracker.mark(conditions(phase, self.target), self._started_at)

    def wait(self, step: str, missing_part: MissingPart, *, required: bool = True) -> None:
        """Wait until nothing is missing, and mark that time as a step. If a `required` step is not reached, the scene
        ends."""
        env, best_progress = self._env, -1
        try:
            while missing_part(self.tracker) and (progress := self._progress()) > best_progress:
                best_progress = progress
                env.settled(step, self._predicate(missing_part), MAX_STALL_SECONDS)
            if required:
                env.wait_for(step, self._predicate(missing_part), MAX_STALL_SECONDS)
            else:
                env.settle(step, self._predicate(missing_part), 1)
        finally:
            self.record_markers()

    def record_markers(self) -> None:
        """Record the timing markers that the phase has reached so far."""
        self.tracker.read()
        if self._phase is not None:
            reached = [(name, self.tracker.times.get(name)) for name in markers_of(self._phase)]
            times = {name: round(max(0.0, at - self._started_at), 3) for name, at in reached if at is not None}
            self._env.markers[self._phase.name] = dict(sorted(times.items(), key=lambda item: item[1]))

    # -- what may be lacking -------------------------------------------------------------------------------------

    def missing_ready_pods(self, now: Tracker) -> str:
        """Return the pod counts unless at least as many pods are Ready as the target requires."""
        return "" if now.ready >= self.target.pods else self._counts(now)

    def missing_status_updates(self, now: Tracker) -> str:
        """Return the first difference of the set from the target, or the first status that is not current."""
        return next(final_check.outdated_statuses(now, self.target), "")

    def status_errors(self, now: Tracker) -> str:
        """Return the first error in a status. Grove's own scale tests do not permit errors (E2E-334)."""
        return next(final_check.last_errors(now), "")

    def remaining_set(self, now: Tracker) -> str:
        """Report that the set still exists. As in Grove's own tests, its pods may outlive it (E2E-312)."""
        return "the set still exists" if now.set_exists else ""

    # -- within --------------------------------------------------------------------------------------------------

    def _predicate(self, missing_part: MissingPart) -> Callable[[View], bool | Unmet]:
        def check(_: View) -> bool | Unmet:
            self.tracker.read()
            missing = missing_part(self.tracker)
            return not missing or Unmet(missing)

        return check

    def _progress(self) -> int:
        """Return the progress of the phase as a number. The number is bounded, so every wait ends."""
        now, target = self.tracker, self.target
        pods = sum(min(count, target.pods) for count in (now.present, now.bound, now.ready))
        replicas = sum(min(n, target.replicas) for n in (now.status.available_replicas, now.status.updated_replicas))
        return pods + replicas + max(0, self._initial_objects - now.remaining_objects if target.pods == 0 else 0)

    def _counts(self, now: Tracker) -> str:
        return f"{now.present} pods exist, {now.bound} are bound, {now.ready} Ready; {self.target.pods} are wanted"
