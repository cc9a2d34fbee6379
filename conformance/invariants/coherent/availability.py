"""What keeps serving while a set is updated (COH-I01, COH-I02)."""

from __future__ import annotations

from conformance.grove.coherent import plan
from conformance.history.record import Record
from conformance.invariants.coherent.rule import CoherentRule
from conformance.invariants.coherent.state import Place, Pod, State


class _Losses:
    """Components that have lost members, or lacked some when the update began, and have not all of them since: of
    these nothing is said until they are complete."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._lacking: set[Place] = set()

    def see(self, record: Record) -> None:
        state = self._state
        if record.resource == "podcliquesets" and state.began:
            places = [place for place in state.sizes if place.set == record.name]
            self._lacking |= {place for place in places if state.available(place) < state.sizes[place]}
            return
        pod, before = state.pods.get(record.uid), state.before
        if record.resource != "pods" or pod is None:
            return
        if pod.ready and pod.place in self._lacking and state.available(pod.place) >= state.sizes.get(pod.place, 0):
            self._lacking.discard(pod.place)
        if before is not None and before.ready and not pod.ready and state.taken(record) is None:
            self._lacking.add(pod.place)

    def __contains__(self, place: Place) -> bool:
        return place in self._lacking


class Availability(CoherentRule):
    """INV-011 (COH-I01)."""

    id = "INV-011"
    what = "an update leaves all but maxUnavailable of each component available"
    nothing = "no update deleted a pod that was Ready"

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._losses = _Losses(state)

    def look(self, record: Record) -> None:
        """Judge the state after a record."""
        self._losses.see(record)
        pod = _taken_in_update(self.state, record)
        if pod is None or pod.place in self._losses:
            return
        found = self.state.components(pod.place.set, pod.place.replica, [pod.place.key])
        for component in found:
            self.judged += 1
            available = self.state.available(pod.place)
            if available < component.replicas - component.unavailable:
                reason = (
                    f"after the deletion of pod {record.name}, {available} of {component.replicas} of "
                    f"{component.key.name} are available, and maxUnavailable is {component.unavailable}"
                )
                self._violate(reason, record)


class ServingUnit(CoherentRule):
    """INV-012 (COH-I02). Judged where the plan has two steps at least, and no change came in the middle of another."""

    id = "INV-012"
    what = "at every moment of an update, one version has minAvailable of each component in scope available"
    nothing = "no update in two or more steps deleted a pod that was Ready"

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._losses = _Losses(state)

    def look(self, record: Record) -> None:
        """Judge the state after a record."""
        self._losses.see(record)
        pod = _taken_in_update(self.state, record)
        if pod is None or self.state.sets[pod.place.set].interrupted:
            return
        pcs, replica = pod.place.set, pod.place.replica
        components = self.state.components(pcs, replica, self.state.sets[pcs].scope)
        components = [each for each in components if each.replicas]
        places = {each.key: Place(pcs, replica, each.key) for each in components}
        if plan.steps(components).count < 2 or any(place in self._losses for place in places.values()):
            return
        self.judged += 1
        generation = self.state.sets[pcs].generation
        of = {each.gang for each in self.state.pods.values() if each.place.set == pcs}
        new = {gang for gang in of if self._generation(gang) == generation}
        versions = {"new": new, "old": of - new}
        lacks = {
            version: [each.key.name for each in components
                      if self.state.available(places[each.key], gangs) < each.minimum]
            for version, gangs in versions.items()
        }  # fmt: skip
        if all(lacks.values()):
            lacking = "; ".join(f"the {version} one lacks {', '.join(names)}" for version, names in lacks.items())
            reason = f"after the deletion of pod {record.name}, no version has its minimum of everything: {lacking}"
            self._violate(reason, record)

    def _generation(self, gang: str) -> str:
        return self.state.generations.get(self.state.key_of_gang(gang), "")


def _taken_in_update(state: State, record: Record) -> Pod | None:
    """A pod in the scope of a running coherent update that the operator has begun to delete."""
    pod = state.taken(record)
    if pod is None or not state.updating(pod.place.set):
        return None
    scope = state.sets[pod.place.set].scope
    return pod if not scope or pod.place.key in scope else None
