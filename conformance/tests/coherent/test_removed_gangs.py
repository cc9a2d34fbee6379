"""What was removed is not waited for."""

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
from conformance.tests.coherent.sets import GROUPS, SECONDS

FIRST, LAST = "s-0-p-0-pl", "s-0-p-2-pl"
"""Cliques of the first replica of p and of the last."""


class GangsOfAnUpdateRemoved(Scene):
    """A set with a scaling group p3/1 alone. Its last replica is not Ready when an update begins, and may be moved
    first: the gangs of the others are then made later, and may wait for its gang. Then p is scaled in by one
    replica, and a pod of the first one is lost."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        workload = sets.coherent(env, "s", {}, {"p": (3, 1)})
        env.create(workload)
        env.wait_for("deployed", sets.deployed("s"), SECONDS)
        disruption.become(env, LAST, disruption.CRASHED, 1)
        env.wait_for("pod not Ready", sets.reported_ready(LAST, 0))
        before = sets.change(env, workload, "pl", "pw", tag="2")
        env.wait_for("updated", sets.updated("s", before), SECONDS)
        env.patch(GROUPS, "s-0-p", {"spec": {"replicas": 2}}, subresource="scale")
        env.wait_for("scaled in", sets.followed("s", "p", 2), SECONDS)
        env.quiet(0.7)
        env.mark("at rest")
        [lost] = predicates.pods_of(env.history.view(), FIRST)
        env.delete("pods", name(lost))
        env.settle("lost pod replaced", replaced(FIRST, lost))
        env.quiet(5.5, real=True)
        env.mark("end")


@predicate
def replaced(view: View, clique: str, lost: Mapping[str, Any]) -> bool | Unmet:
    """The only pod of a clique is Ready, and not the lost one."""
    found = predicates.pods_of(view, clique)
    done = len(found) == 1 and pods.ready(found[0]) and uid(found[0]) != uid(lost)
    return done or Unmet(f"pods of {clique}: {[name(pod) for pod in found]}")


@requirement("COHR-088", reaches="lost pod replaced")
def test_a_lost_pod_is_recreated_in_its_gang(run: Recorded[GangsOfAnUpdateRemoved]) -> None:
    """A gang that its own was made after is gone."""
    run.given("at rest")
    found = [
        {label(pod, labels.GANG) for pod in predicates.pods_of(run.at(step), FIRST)}
        for step in ("at rest", "lost pod replaced")
    ]
    run.expect("gang of the pod", found[0], found[1])


test_invariants = invariants(GangsOfAnUpdateRemoved, "INV-020", "INV-021", "INV-022")
