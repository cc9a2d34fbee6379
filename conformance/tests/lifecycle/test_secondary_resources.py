"""Objects beside cliques and gangs that somebody deletes, while nothing else wakes the operator."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.fields import label
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import incarnations, predicates

RESOURCES = ("services", "horizontalpodautoscalers", "serviceaccounts", "roles", "rolebindings", "podgangs")


@requirements("LIFE-010")
def test_deleted_secondary_resources_come_back_without_another_event(case: Case) -> None:
    case.nodes("tiny", 1)
    workload = case.workload("frontend", setName="s", pods=1)
    scaling = {"minReplicas": 1, "maxReplicas": 2}
    workload["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"] = scaling
    case.create(workload)
    case.until("LIFE-010", "the set is available", predicates.available("s", 1))
    view = case.quiet(2, real=True)
    found = {
        resource: [name for name in view.names(resource) if label(view.get(resource, name), labels.PART_OF) == "s"]
        for resource in RESOURCES
    }
    case.expect("LIFE-010", "resources that the set lacks", [], [resource for resource in found if not found[resource]])
    before = {resource: incarnations.uids(view, resource) for resource in RESOURCES}
    # Each alone, and a gang last: its deletion may wake an operator that then looks at everything.
    for resource in RESOURCES:
        for name in found[resource]:
            case.delete(resource, name)
        what = f"the deleted {resource} are there again"
        case.eventually("LIFE-010", what, incarnations.renewed(resource, found[resource], before[resource]), 30)
        case.quiet(1)
