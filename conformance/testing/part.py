"""One scenario of gang scheduling while it is played: where its pods may be, and what its owner has to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.grove import labels
from conformance.grove.fields import items, label, name
from conformance.grove.scheduling import manifests, scenarios
from conformance.grove.scheduling.history import Bound
from conformance.grove.scheduling.instance import Gang, Instance, RunningPod, SchedulingOutcome, admitted
from conformance.grove.scheduling.manifests import Testbed
from conformance.grove.scheduling.rules import Breach, verdict
from conformance.grove.scheduling.scenarios import Scenario
from conformance.suite.scenes.api import Object

PREEMPTION = "preemption"
"""The feature of schedulers that preempt."""
CONSOLIDATION = "consolidation"
"""The feature of schedulers that move running pods: they delete a pod and expect its owner to recreate it."""
NO_PRIORITY = "no-priority"
"""The feature of schedulers whose API knows no priorities."""
OFTEN = 5
"""How often a pod is recreated that was bound and deleted again: a scheduler may move a pod more than once."""


@dataclass
class ScenarioRun:
    """A scenario while it is played."""

    scenario: Scenario
    testbed: Testbed
    instance: Instance
    begin: list[Bound] = field(default_factory=list)
    begin_seq: int = 0
    outcome: SchedulingOutcome | None = None
    wrong: str = ""
    free: list[Gang] = field(default_factory=list)
    """Scaled gangs whose base gang is placed, and whose pods still have Grove's gate."""
    open: set[str] = field(default_factory=set)
    lost: list[RunningPod] = field(default_factory=list)
    """Evicted pods that ran before and are to be recreated under a new name."""
    recreated: set[str] = field(default_factory=set)
    absent: list[Object] = field(default_factory=list)
    """Pods that the scheduler has bound and deleted in this play, and that are to be recreated as they were."""
    observed: set[str] = field(default_factory=set)
    """Names of pods that were seen since the suite has created them. The view may lag behind."""
    times: Counter[str] = field(default_factory=Counter)
    """How often each pod was recreated as it was."""

    def look(self, pods: Sequence[Mapping[str, Any]], features: Collection[str]) -> None:
        """Judge where its pods are. Most records change nothing about that."""
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
        """Return the pods that the suite has created without a node, and that do not exist any more."""
        existing = {name(pod) for pod in pods}
        self.observed |= existing
        created = manifests.pods(self.instance, self.testbed)
        created += [manifests.recreated(self.instance, pod, self.testbed)
                 for pod in self.instance.running if pod.name in self.recreated]  # fmt: skip
        absent = {
            name(pod): pod for pod in created if name(pod) in self.observed - existing and self.times[name(pod)] < OFTEN
        }
        return [self._as_it_was(pod) for pod in absent.values()]

    def _as_it_was(self, pod: Object) -> Object:
        """Return a pod without Grove's gate if that was removed from its gang before."""
        if label(pod, labels.GANG) not in map(self.testbed.name, self.open):
            return pod
        gates = [gate for gate in items(pod, "spec", "schedulingGates") if gate["name"] != labels.GATE]
        return {**pod, "spec": {**pod["spec"], "schedulingGates": gates}}

    def _stands(self, base: str) -> bool:
        return self.outcome is not None and admitted(self.instance, self.outcome, self.instance.gang(base))


def counted(
    breaches: Iterable[Breach], instance: Instance, *, at_once: bool = True, ranked: bool = True
) -> list[Breach]:
    """Return the breaches that count in this play: not what a scaled gang lost to others while its pods had gates.

    Unless everything was there `at_once`, nothing counts that depends on the order of nodes, or on who is first: a gang
    that was tried in vain may be in back-off. A scheduler for which gangs are not `ranked` need not know who is first.
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
