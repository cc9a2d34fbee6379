"""Tests that pods have the restart policy that admission announces."""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.grove.fields import text
from conformance.testing import predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement

WARNING_TEXT = "set to Always"
"""A part of the warning that the restart policy of the template is ignored (VAL-44)."""


class RestartPolicyNever(Scene):
    """A small set whose templates have the restart policy Never. There are no nodes, so no pod is scheduled."""

    def play(self, env: SceneEnvironment) -> None:
        workload = env.workload("frontend")
        for clique in workload["spec"]["template"]["cliques"]:
            clique["spec"]["podSpec"]["restartPolicy"] = "Never"
        self.warnings = env.dry_run.ask(env.dry_run.create(workload)).warnings
        env.create(workload)
        self.cliques = list(expected(workload).cliques.values())
        env.wait_for("all pods exist", predicates.all_exist(self.cliques))


@requirement("ADM-046")
def test_pods_have_the_restart_policy_that_was_announced(run: Recorded[RestartPolicyNever]) -> None:
    """The templates specify Never. Pods have that policy unless a warning says that they get Always."""
    run.given("all pods exist")
    view, cliques = run.at("all pods exist"), run.scene.cliques
    policies = {
        text(pod, "spec", "restartPolicy") for clique in cliques for pod in predicates.pods_of(view, clique.name)
    }
    announced = "Always" if any(WARNING_TEXT in warning for warning in run.scene.warnings) else "Never"
    run.expect("restart policies of the pods", [announced], sorted(policies))
