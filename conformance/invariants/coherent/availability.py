"""Rules about the members that must keep serving during an update (COH-I01, COH-I02)."""

from __future__ import annotations

from conformance.grove.coherent import plan
from conformance.history.record import Record
from conformance.invariants.coherent.rule import CoherentRule
from conformance.invariants.coherent.state import CoherentPod, CoherentState, ReplicaComponent


class LostMembers:
    """Components that have lost members, or were incomplete at the start of the update. They are not judged until they
    are complete again or, with `is_lasting`, until the update has ended, because lost members return in the new
    version."""

    def __init__(self, state: CoherentState, *, is_lasting: bool = False) -> None:
        self._state, self._is_lasting = state, is_lasting
        self._incomplete: set[ReplicaComponent] = set()

    def observe(self, record: Record) -> None:
        """Track the components that lose members, or become complete again, with this record."""
        state = self._state
        if record.resource == "podcliquesets" and state.update_starts:
            if self._is_lasting:
                self._incomplete = {
                    replica_component for replica_component in self._incomplete if replica_component.set != record.name
                }
            places = [replica_component for replica_component in state.sizes if replica_component.set == record.name]
            self._incomplete |= {
                replica_component
                for replica_component in places
                if state.count_available(replica_component) < state.sizes[replica_component]
            }
            return
        pod, before = state.pods.get(record.uid), state.previous_pod
        if record.resource != "pods" or pod is None:
            return
        is_incomplete = pod.component in self._incomplete and not self._is_lasting
        if is_incomplete and pod.ready and state.count_available(pod.component) >= state.sizes.get(pod.component, 0):
            self._incomplete.discard(pod.component)
        if before is not None and before.ready and not pod.ready and state.deleted_by_operator(record) is None:
            self._incomplete.add(pod.component)

    def __contains__(self, replica_component: ReplicaComponent) -> bool:
        return replica_component in self._incomplete


class _DeletionRule(CoherentRule):
    """A rule about the pods that an update deletes. Each rule has its own losses, so that a component that one rule
    ignores is still judged by the other."""

    is_lasting = False
    """Whether a component that has lost members counts as incomplete until the update has ended."""

    def __init__(self, state: CoherentState) -> None:
        super().__init__(state)
        self._losses = LostMembers(state, is_lasting=self.is_lasting)

    def judge_state(self, record: Record) -> None:
        """Judge the state after a record."""
        self._losses.observe(record)
        pod = deleted_in_update(self.state, record)
        if pod is not None:
            self._judge(pod, record)

    def _judge(self, pod: CoherentPod, record: Record) -> None:
        """Judge the state in which the update has started to delete a pod that was Ready."""
        raise NotImplementedError


class Availability(_DeletionRule):
    """INV-011 (COH-I01). If no template of a set has maxUnavailable, INV-023 judges the set instead."""

    id = "INV-011"
    statement = "an update leaves all but maxUnavailable of each component available"
    idle_reason = "no update deleted a pod that was Ready"

    def _judge(self, pod: CoherentPod, record: Record) -> None:
        if pod.component in self._losses or not self.state.has_budget(pod.component.set):
            return
        for component in self.state.components(pod.component.set, pod.component.replica, [pod.component.key]):
            self.judged += 1
            available = self.state.count_available(pod.component)
            if available < component.replicas - component.unavailable:
                reason = (
                    f"after the deletion of pod {record.name}, {available} of {component.replicas} of "
                    f"{component.key.name} are available, and maxUnavailable is {component.unavailable}"
                )
                self._report_violation(reason, record)


class ServingUnit(_DeletionRule):
    """INV-012 (COH-I02). Judged if the plan has at least two steps, a scaling group is in scope, no maxUnavailable is
    above minAvailable, all members were available at the start of the update, none has been lost since, and no change
    interrupted another update."""

    id = "INV-012"
    is_lasting = True
    statement = "at every moment of an update, one version has minAvailable of each component in scope available"
    idle_reason = "no update in two or more steps deleted a pod that was Ready"

    def _judge(self, pod: CoherentPod, record: Record) -> None:
        set_name, replica = pod.component.set, pod.component.replica
        if self.state.sets[set_name].interrupted:
            return
        components = self.state.components(set_name, replica, self.state.sets[set_name].scope)
        components = [component for component in components if component.replicas]
        places = {component.key: ReplicaComponent(set_name, replica, component.key) for component in components}
        if plan.steps(components).count < 2 or any(
            replica_component in self._losses for replica_component in places.values()
        ):
            return
        if not any(component.key.kind == "group" for component in components):
            return  # the newest text plans a single step for standalone cliques alone
        if any(component.unavailable > component.minimum for component in components):
            return  # a proposal whose updates wait only for scheduling does not guarantee it then
        self.judged += 1
        generation = self.state.sets[set_name].generation
        set_gangs = {candidate.gang for candidate in self.state.pods.values() if candidate.component.set == set_name}
        new_gangs = {gang for gang in set_gangs if self._generation(gang) == generation}
        versions = {"new": new_gangs, "old": set_gangs - new_gangs}
        lacking_names = {
            version: [component.key.name for component in components
                      if self.state.count_available(places[component.key], gangs) < component.minimum]
            for version, gangs in versions.items()
        }  # fmt: skip
        if all(lacking_names.values()):
            is_incomplete = "; ".join(
                f"the {version} one lacks {', '.join(names)}" for version, names in lacking_names.items()
            )
            reason = (
                f"after the deletion of pod {record.name}, no version has its minimum of everything: {is_incomplete}"
            )
            self._report_violation(reason, record)

    def _generation(self, gang: str) -> str:
        return self.state.generation_hashes.get(self.state.key_of_gang(gang), "")


def deleted_in_update(state: CoherentState, record: Record) -> CoherentPod | None:
    """Return the pod in the scope of a running coherent update that the operator starts to delete with this record, if
    any."""
    pod = state.deleted_by_operator(record)
    if pod is None or not state.is_updating(pod.component.set):
        return None
    scope = state.sets[pod.component.set].scope
    return pod if not scope or pod.component.key in scope else None
