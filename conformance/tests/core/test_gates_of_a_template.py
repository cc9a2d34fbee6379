"""Tests of scheduling gates that the author of a PodCliqueSet puts into a clique template."""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.grove.fields import items, name, text
from conformance.testing import predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

GATE = "example.com/quota"
CREATED_OR_REJECTED = "all pods exist, or the set is rejected"


class GatedTemplate(Scene):
    """A set with a scheduling gate in its template. `rejected` is True if the API server does not accept the set."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("frontend", setName="gated")
        for clique in workload["spec"]["template"]["cliques"]:
            clique["spec"]["podSpec"]["schedulingGates"] = [{"name": GATE}]
        self.cliques = list(expected(workload).cliques.values())
        self.rejected = env.dry_run.ask(env.dry_run.create(workload)).refused
        if not self.rejected:
            env.create(workload)
            env.wait_for("all pods exist", predicates.all_exist(self.cliques))
        env.mark(CREATED_OR_REJECTED)


@requirement("CORE-044")
def test_gates_of_a_template_are_kept_or_rejected(run: Recorded[GatedTemplate]) -> None:
    """A pod that loses the gate would be scheduled before the author of the set permits it."""
    view = run.at(CREATED_OR_REJECTED)
    pods = [pod for clique in run.scene.cliques for pod in predicates.pods_of(view, clique.name)]
    gated = {name(pod): GATE in [text(gate, "name") for gate in items(pod, "spec", "schedulingGates")] for pod in pods}
    run.expect("the set is rejected, or has pods", True, run.scene.rejected or bool(pods))
    run.same("pods with the gate of their template", dict.fromkeys(gated, True), gated)
