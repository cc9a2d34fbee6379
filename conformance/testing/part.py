"""One run of a gang-scheduling scenario: whether its pods are where they may be, and what the suite has to do next as
the owner of the pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.grove import labels
from conformance.grove.fields import items, label, name
from conformance.grove.scheduling import manifests, scenarios
from conformance.grove.scheduling.history import PodBound
from conformance.grove.scheduling.instance import Gang, Instance, RunningPod, SchedulingOutcome, is_admitted
from conformance.grove.scheduling.manifests import Testbed
from conformance.grove.scheduling.rules import Breach, verdict
from conformance.grove.scheduling.scenarios import Scenario
from conformance.suite.scenes.api import Object

PREEMPTION = "preemption"
"""The feature of schedulers that preempt pods."""
CONSOLIDATION = "consolidation"
"""The feature of schedulers that move running pods. Such a scheduler deletes a pod and expects the pod's owner to
recreate it."""
NO_PRIORITY = "no-priority"
"""The feature of schedulers whose API has no priorities."""
MAX_RECREATIONS = 5
"""Maximum number of times that the suite recreates a pod that was bound and then deleted. A scheduler may move a pod
more than once."""


@dataclass
class ScenarioRun:
    """The state of one scenario while it runs."""

    scenario: Scenario
    testbed: Testbed
    instance: Instance
    initial_bindings: list[PodBound] = field(default_factory=list)
    change_mark: int = 0
    outcome: SchedulingOutcome | None = None
    violation: str = ""
    gangs_to_ungate: list[Gang] = field(default_factory=list)
    """Scaled gangs whose base gang is placed and whose pods still have Grove's gate."""
    ungated_gangs: set[str] = field(default_factory=set)
    pods_to_replace: list[RunningPod] = field(default_factory=list)
    """Evicted pods that were running from the start and that the suite recreates under a new name."""
    replaced_pods: set[str] = field(default_factory=set)
    pods_to_recreate: list[Object] = field(default_factory=list)
    """Pods that the scheduler bound and deleted during this run, and that the suite recreates unchanged."""
    observed_names: set[str] = field(default_factory=set)
    """Names of pods that have been seen since the suite created them. The view may lag behind."""
    recreation_counts: Counter[str] = field(default_factory=Counter)
    """Number of times that each pod has been recreated unchanged."""

    def judge_placement(self, pods: Sequence[Mapping[str, Any]], features: Collection[str]) -> None:
        """Judge the current placement of the pods. Most records do not change the placement."""
        if CONSOLIDATION in features:
            self.pods_to_recreate = self._find_absent_pods(pods)
        outcome = manifests.outcome(self.instance, pods, self.testbed)
        if outcome == self.outcome:
            return
        self.outcome = outcome
        has_priorities = NO_PRIORITY not in features
        breaches = counted_breaches(verdict(self.instance, outcome), self.instance, has_priorities=has_priorities)
        must_breaches = [breach for breach in breaches if breach.level == "MUST"]
        self.violation = f"{scenarios.notation(outcome)}: {must_breaches[0]}" if must_breaches else ""
        if (
            PREEMPTION in features
            and not self.violation
            and any(self.scenario.expected.victims)
            and not outcome.victims
        ):
            self.violation = "nothing has been evicted"
        evicted_pods = [pod for pod in self.instance.running if pod.name in outcome.evicted - self.replaced_pods]
        self.pods_to_replace = evicted_pods if CONSOLIDATION in features else []
        self.gangs_to_ungate = [
            gang
            for gang in self.instance.gangs
            if gang.base and gang.name not in self.ungated_gangs and self._is_admitted(gang.base)
        ]

    def _find_absent_pods(self, pods: Iterable[Mapping[str, Any]]) -> list[Object]:
        """Return the pods that the suite created without a node and that no longer exist."""
        existing_names = {name(pod) for pod in pods}
        self.observed_names |= existing_names
        created_pods = manifests.pods(self.instance, self.testbed)
        created_pods += [manifests.recreated_pod(self.instance, pod, self.testbed)
                 for pod in self.instance.running if pod.name in self.replaced_pods]  # fmt: skip
        absent_pods = {
            name(pod): pod
            for pod in created_pods
            if name(pod) in self.observed_names - existing_names and self.recreation_counts[name(pod)] < MAX_RECREATIONS
        }
        return [self._manifest_to_recreate(pod) for pod in absent_pods.values()]

    def _manifest_to_recreate(self, pod: Object) -> Object:
        """Return the manifest of a pod to recreate. It has no Grove gate if the suite has already removed the gates of
        the pod's gang."""
        if label(pod, labels.GANG) not in map(self.testbed.name, self.ungated_gangs):
            return pod
        gates = [gate for gate in items(pod, "spec", "schedulingGates") if gate["name"] != labels.GATE]
        return {**pod, "spec": {**pod["spec"], "schedulingGates": gates}}

    def _is_admitted(self, base: str) -> bool:
        return self.outcome is not None and is_admitted(self.instance, self.outcome, self.instance.gang(base))


def counted_breaches(
    breaches: Iterable[Breach], instance: Instance, *, saw_everything_at_once: bool = True, has_priorities: bool = True
) -> list[Breach]:
    """Return the breaches that count in this run. A scaled gang that lost room to other gangs while its pods had gates
    does not count.

    Unless `saw_everything_at_once`, a breach that depends on the order of nodes or gangs does not count
    either, because a gang that could not be scheduled may be in back-off. A scheduler without priorities need
    not schedule gangs in any order.
    """
    scaled_gangs = {gang.name for gang in instance.gangs if gang.base}
    several_nodes = sum(node.schedulable for node in instance.nodes) > 1
    return [
        breach
        for breach in breaches
        if not (breach.rule in ("GS-28", "OR-6") and breach.gang in scaled_gangs)
        and not (breach.rule == "GS-28" and not (has_priorities and saw_everything_at_once))
        and not (breach.level == "SHOULD" and several_nodes and not saw_everything_at_once)
    ]
