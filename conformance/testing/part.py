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
OFTEN = 5
"""Maximum number of times that the suite recreates a pod that was bound and then deleted. A scheduler may move a pod
more than once."""


@dataclass
class ScenarioRun:
    """The state of one scenario while it runs."""

    scenario: Scenario
    testbed: Testbed
    instance: Instance
    begin: list[PodBound] = field(default_factory=list)
    begin_seq: int = 0
    outcome: SchedulingOutcome | None = None
    wrong: str = ""
    free: list[Gang] = field(default_factory=list)
    """Scaled gangs whose base gang is placed and whose pods still have Grove's gate."""
    open: set[str] = field(default_factory=set)
    lost: list[RunningPod] = field(default_factory=list)
    """Evicted pods that were running from the start and that the suite recreates under a new name."""
    recreated: set[str] = field(default_factory=set)
    absent: list[Object] = field(default_factory=list)
    """Pods that the scheduler bound and deleted during this run, and that the suite recreates unchanged."""
    observed: set[str] = field(default_factory=set)
    """Names of pods that have been seen since the suite created them. The view may lag behind."""
    times: Counter[str] = field(default_factory=Counter)
    """Number of times that each pod has been recreated unchanged."""

    def look(self, pods: Sequence[Mapping[str, Any]], features: Collection[str]) -> None:
        """Judge the current placement of the pods. Most records do not change the placement."""
        if CONSOLIDATION in features:
            self.absent = self._absent(pods)
        current = manifests.outcome(self.instance, pods, self.testbed)
        if current == self.outcome:
            return
        self.outcome = current
        ranked = NO_PRIORITY not in features
        breaches = counted(verdict(self.instance, current), self.instance, ranked=ranked)
        must = [breach for breach in breaches if breach.level == "MUST"]
        self.wrong = f"{scenarios.notation(current)}: {must[0]}" if must else ""
        if PREEMPTION in features and not self.wrong and any(self.scenario.expected.victims) and not current.victims:
            self.wrong = "nothing has been evicted"
        lost = [pod for pod in self.instance.running if pod.name in current.evicted - self.recreated]
        self.lost = lost if CONSOLIDATION in features else []
        self.free = [
            gang for gang in self.instance.gangs if gang.base and gang.name not in self.open and self._stands(gang.base)
        ]

    def _absent(self, pods: Iterable[Mapping[str, Any]]) -> list[Object]:
        """Return the pods that the suite created without a node and that no longer exist."""
        existing = {name(pod) for pod in pods}
        self.observed |= existing
        created = manifests.pods(self.instance, self.testbed)
        created += [manifests.recreated_pod(self.instance, pod, self.testbed)
                 for pod in self.instance.running if pod.name in self.recreated]  # fmt: skip
        absent = {
            name(pod): pod for pod in created if name(pod) in self.observed - existing and self.times[name(pod)] < OFTEN
        }
        return [self._as_it_was(pod) for pod in absent.values()]

    def _as_it_was(self, pod: Object) -> Object:
        """Return the manifest of a pod to recreate. It has no Grove gate if the suite has already removed the gates of
        the pod's gang."""
        if label(pod, labels.GANG) not in map(self.testbed.name, self.open):
            return pod
        gates = [gate for gate in items(pod, "spec", "schedulingGates") if gate["name"] != labels.GATE]
        return {**pod, "spec": {**pod["spec"], "schedulingGates": gates}}

    def _stands(self, base: str) -> bool:
        return self.outcome is not None and is_admitted(self.instance, self.outcome, self.instance.gang(base))


def counted(
    breaches: Iterable[Breach], instance: Instance, *, at_once: bool = True, ranked: bool = True
) -> list[Breach]:
    """Return the breaches that count in this run. A scaled gang that lost room to other gangs while its pods had gates
    does not count.

    Unless the scheduler saw everything `at_once`, a breach that depends on the order of nodes or gangs does not count
    either, because a gang that could not be scheduled may be in back-off. A scheduler whose gangs are not `ranked` need
    not schedule gangs in any order.
    """
    scaled = {gang.name for gang in instance.gangs if gang.base}
    several = sum(node.schedulable for node in instance.nodes) > 1
    return [
        breach
        for breach in breaches
        if not (breach.rule in ("GS-28", "OR-6") and breach.gang in scaled)
        and not (breach.rule == "GS-28" and not (ranked and at_once))
        and not (breach.level == "SHOULD" and several and not at_once)
    ]
