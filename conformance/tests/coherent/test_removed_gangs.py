"""Tests that updated gangs do not wait for gangs that have been removed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.grove import labels, pods
from conformance.grove.fields import label, name, uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import disruption, predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.coherent import sets
from conformance.tests.coherent.sets import GROUPS, TIMEOUT_SECONDS

FIRST_CLIQUE, LAST_CLIQUE = "s-0-p-0-pl", "s-0-p-2-pl"
"""Cliques of the first and the last replica of p."""


class GangsOfAnUpdateRemoved(Scene):
    """A set with only a scaling group, p3/1 (replicas/minAvailable). Its last replica is not Ready when an update
    starts, and may be updated first. The gangs of the other replicas are then created later and may wait for its gang.
    Then p is scaled in by one replica, and a pod of the first replica is lost."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        workload = sets.set_manifest(env, "s", {}, {"p": (3, 1)})
        env.create(workload)
        env.wait_for("deployed", sets.is_deployed("s"), TIMEOUT_SECONDS)
        disruption.set_pod_states(env, LAST_CLIQUE, disruption.CRASHED, 1)
        env.wait_for("pod not Ready", sets.reports_ready_pods(LAST_CLIQUE, 0))
        old_generation = sets.change_images(env, workload, "pl", "pw", tag="2")
        env.wait_for("updated", sets.is_updated("s", old_generation), TIMEOUT_SECONDS)
        env.patch(GROUPS, "s-0-p", {"spec": {"replicas": 2}}, subresource="scale")
        env.wait_for("scaled in", sets.is_followed("s", "p", 2), TIMEOUT_SECONDS)
        env.quiet(0.7)
        env.mark("at rest")
        [lost_pod] = predicates.pods_of(env.history.view(), FIRST_CLIQUE)
        env.delete("pods", name(lost_pod))
        env.settle("lost pod replaced", is_replaced(FIRST_CLIQUE, lost_pod))
        env.quiet(5.5, real=True)
        env.mark("end")


@predicate
def is_replaced(view: View, clique: str, lost_pod: Mapping[str, Any]) -> bool | Unmet:
    """The only pod of a clique is Ready and is not the lost pod."""
    members = predicates.pods_of(view, clique)
    has_replacement = len(members) == 1 and pods.is_ready(members[0]) and uid(members[0]) != uid(lost_pod)
    return has_replacement or Unmet(f"pods of {clique}: {[name(pod) for pod in members]}")


@requirement("COHR-088", reaches="lost pod replaced")
def test_a_lost_pod_is_recreated_in_its_gang(run: Recorded[GangsOfAnUpdateRemoved]) -> None:
    """A gang that was created before the pod's gang no longer exists."""
    run.given("at rest")
    gangs = [
        {label(pod, labels.GANG) for pod in predicates.pods_of(run.at(step), FIRST_CLIQUE)}
        for step in ("at rest", "lost pod replaced")
    ]
    run.expect("gang of the pod", gangs[0], gangs[1])


test_invariants = invariants(GangsOfAnUpdateRemoved, "INV-020", "INV-021", "INV-022")
