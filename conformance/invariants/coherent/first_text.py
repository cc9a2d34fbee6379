"""INV-023: the members that an update may take down if templates have no maxUnavailable (COH-I14), according to the
first text of the proposal."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.grove.coherent import plan
from conformance.grove.coherent.model import Component, Entry
from conformance.history.record import Record
from conformance.invariants.coherent.availability import LostMembers, deleted_in_update
from conformance.invariants.coherent.rule import CoherentRule
from conformance.invariants.coherent.state import CoherentState


class FirstText(CoherentRule):
    """INV-023 (COH-I14). With each new anchor, an update may take down minAvailable of each component; with the last
    anchor, also all remaining pods of standalone cliques; after that, all remaining replicas of scaling groups."""

    id = "INV-023"
    statement = "without maxUnavailable, an update takes down minAvailable at a time, and in the end what is left"
    idle_reason = "no update of a set without maxUnavailable deleted a pod that was Ready"

    def __init__(self, state: CoherentState) -> None:
        super().__init__(state)
        self._losses = LostMembers(state)

    def judge_state(self, record: Record) -> None:
        """Judge the state after a record."""
        self._losses.observe(record)
        pod = deleted_in_update(self.state, record)
        if pod is None or pod.component in self._losses or self.state.has_budget(pod.component.set):
            return
        coherent_set = self.state.sets[pod.component.set]
        if coherent_set.interrupted:
            return
        components = self.state.components(pod.component.set, pod.component.replica, coherent_set.scope)
        component = next((candidate for candidate in components if candidate.key == pod.component.key), None)
        if component is None:
            return
        self.judged += 1
        lacking = component.replicas - self.state.count_available(pod.component)
        limit = self._max_unavailable(
            component, components, self._current_anchors(pod.component.set, pod.component.replica)
        )
        if lacking > limit:
            reason = (
                f"after the deletion of pod {record.name}, {lacking} of {component.replicas} of {component.key.name} "
                f"are unavailable; {limit} may be"
            )
            self._report_violation(reason, record)

    def _current_anchors(self, set_name: str, replica: int) -> list[Entry]:
        """Return the anchors of the current generation."""
        generation = self.state.sets[set_name].generation
        return [e for e in self.state.maps.get((set_name, replica), ()) if e.anchor and e.generation == generation]

    def _max_unavailable(self, component: Component, components: Sequence[Component], anchors: Sequence[Entry]) -> int:
        """Return how many members of a component may currently be unavailable."""
        steps = plan.steps(components).count
        if len(anchors) < steps:
            return component.minimum
        if component.key.kind == "clique":
            return component.replicas - (steps - 1) * component.minimum
        all_were_ready = all(self.state.gang_was_ready(entry.key) for entry in anchors)
        return component.replicas - steps * component.minimum if all_were_ready else component.minimum
