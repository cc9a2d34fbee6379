"""What admission says of restart policies is true of the pods."""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.grove.fields import text
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import predicates

FORCED = "set to Always"
"""Words of the warning that the policy of the template does not count (VAL-44)."""


@requirements("ADM-046")
def test_pods_have_the_restart_policy_that_was_announced(case: Case) -> None:
    """Pods MUST have the restart policy of their template, unless a warning has announced that it is set to Always."""
    workload = case.workload("frontend")
    for clique in workload["spec"]["template"]["cliques"]:
        clique["spec"]["podSpec"]["restartPolicy"] = "Never"
    warnings = case.dry_run.ask(case.dry_run.create(workload)).warnings
    case.create(workload)
    cliques = list(expected(workload).cliques.values())
    case.until("ADM-046", "all pods exist", predicates.all_exist(cliques))
    view = case.history.view()
    policies = {text(pod, "spec", "restartPolicy") for each in cliques for pod in predicates.pods_of(view, each.name)}
    announced = "Always" if any(FORCED in warning for warning in warnings) else "Never"
    case.expect("ADM-046", "restart policies of the pods", [announced], sorted(policies))
