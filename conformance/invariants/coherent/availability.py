"""Rules about the members that must keep serving during an update (COH-I01, COH-I02)."""

from __future__ import annotations

from conformance.grove.coherent import plan
from conformance.history.record import Record
from conformance.invariants.coherent.rule import CoherentRule
from conformance.invariants.coherent.state import CoherentPod, CoherentState, ReplicaComponent


class LostMembers:
    """Components that have lost members, or were incomplete at the start of the update. They are not judged until they
    are complete again or, with `lasting`, until the update has ended, because lost members return in the new
    version."""

    def __init__(self, state: CoherentState, *, lasting: bool = False) -> None:
        self._state, self._lasting = state, lasting
        self._lacking: set[ReplicaComponent] = set()

    def see(self, record: Record) -> None:
        """Track the components that lose members, or become complete again, with this record."""
        state = self._state
        if record.resource == "podcliquesets" and state.began:
            if self._lasting:
                self._lacking = {place for place in self._lacking if place.set != record.name}
            places = [place for place in state.sizes if place.set == record.name]
            self._lacking |= {place for place in places if state.available(place) < state.sizes[place]}
            return
        pod, before = state.pods.get(record.uid), state.before
        if record.resource != "pods" or pod is None:
            return
        lacking = pod.place in self._lacking and not self._lasting
        if lacking and pod.ready and state.available(pod.place) >= state.sizes.get(pod.place, 0):
            self._lacking.discard(pod.place)
        if before is not None and before.ready and not pod.ready and state.deleted_by_operator(record) is None:
            self._lacking.add(pod.place)

    def __contains__(self, place: ReplicaComponent) -> bool:
        return place in self._lacking


class _WhileUpdating(CoherentRule):
    """A rule about the pods that an update deletes. Each rule has its own losses, so that a component that one rule
    ignores is still judged by the other."""

    lasting = False
    """Whether a component that has lost members counts as incomplete until the update has ended."""

    def __init__(self, state: CoherentState) -> None:
        super().__init__(state)
        self._losses = LostMembers(state, lasting=self.lasting)

    def look(self, record: Record) -> None:
        """Judge the state after a record."""
        self._losses.see(record)
        pod = deleted_in_update(self.state, record)
        if pod is not None:
            self._judge(pod, record)

    def _judge(self, pod: CoherentPod, record: Record) -> None:
        """Judge the state in which the update has started to delete a pod that was Ready."""
        raise NotImplementedError


class Availability(_WhileUpdating):
    """INV-011 (COH-I01). If no template of a set has maxUnavailable, INV-023 judges the set instead."""

    id = "INV-011"
    statement = "an update leaves all but maxUnavailable of each component available"
    nothing = "no update deleted a pod that was Ready"

    def _judge(self, pod: CoherentPod, record: Record) -> None:
        if pod.place in self._losses or not self.state.budgeted(pod.place.set):
            return
        for component in self.state.components(pod.place.set, pod.place.replica, [pod.place.key]):
            self.judged += 1
            available = self.state.available(pod.place)
            if available < component.replicas - component.unavailable:
                reason = (
                    f"after the deletion of pod {record.name}, {available} of {component.replicas} of "
                    f"{component.key.name} are available, and maxUnavailable is {component.unavailable}"
                )
                self._violate(reason, record)


class ServingUnit(_WhileUpdating):
    """INV-012 (COH-I02). Judged if the plan has at least two steps, a scaling group is in scope, no maxUnavailable is
    above minAvailable, all members were available at the start of the update, none has been lost since, and no change
    interrupted another update."""

    id = "INV-012"
    lasting = True
    statement = "at every moment of an update, one version has minAvailable of each component in scope available"
    nothing = "no update in two or more steps deleted a pod that was Ready"

    def _judge(self, pod: CoherentPod, record: Record) -> None:
        pcs, replica = pod.place.set, pod.place.replica
        if self.state.sets[pcs].interrupted:
            return
        components = self.state.components(pcs, replica, self.state.sets[pcs].scope)
        components = [component for component in components if component.replicas]
        places = {component.key: ReplicaComponent(pcs, replica, component.key) for component in components}
        if plan.steps(components).count < 2 or any(place in self._losses for place in places.values()):
            return
        if not any(component.key.kind == "group" for component in components):
            return  # the newest text plans a single step for standalone cliques alone
        if any(component.unavailable > component.minimum for component in components):
            return  # a proposal whose updates wait only for scheduling does not guarantee it then
        self.judged += 1
        generation = self.state.sets[pcs].generation
        set_gangs = {candidate.gang for candidate in self.state.pods.values() if candidate.place.set == pcs}
        new_gangs = {gang for gang in set_gangs if self._generation(gang) == generation}
        versions = {"new": new_gangs, "old": set_gangs - new_gangs}
        lacks = {
            version: [component.key.name for component in components
                      if self.state.available(places[component.key], gangs) < component.minimum]
            for version, gangs in versions.items()
        }  # fmt: skip
        if all(lacks.values()):
            lacking = "; ".join(f"the {version} one lacks {', '.join(names)}" for version, names in lacks.items())
            reason = f"after the deletion of pod {record.name}, no version has its minimum of everything: {lacking}"
            self._violate(reason, record)

    def _generation(self, gang: str) -> str:
        return self.state.generations.get(self.state.key_of_gang(gang), "")


def deleted_in_update(state: CoherentState, record: Record) -> CoherentPod | None:
    """Return the pod in the scope of a running coherent update that the operator starts to delete with this record, if
    any."""
    pod = state.deleted_by_operator(record)
    if pod is None or not state.updating(pod.place.set):
        return None
    scope = state.sets[pod.place.set].scope
    return pod if not scope or pod.place.key in scope else None
