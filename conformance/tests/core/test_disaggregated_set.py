"""A set as it is used for disaggregated inference: what it becomes, and what is said about it once it is ready."""

from __future__ import annotations

from conformance.grove.expected import Expected, expected
from conformance.grove.fields import name
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import predicates
from conformance.tests.core import gang_objects, objects, pod_contents, statuses


@requirements(
    *(f"CORE-{number:03}" for number in range(1, 16)),
    "CORE-030",
    *(f"GANG-{number:03}" for number in range(1, 6)),
    "GANG-023",
    "GANG-024",
    "INV-001",
    "INV-002",
    "INV-003",
    "INV-004",
    "INV-005",
)
def test_a_disaggregated_inference_set_becomes_ready_with_the_right_objects(case: Case) -> None:
    # The workers need 24 of these 32 GPUs: there is room however a scheduler spreads them.
    case.nodes("dgx-h100", 4)
    workload = case.workload("disaggregated")
    wanted, set_name = expected(workload), name(workload)
    case.create(workload)
    case.eventually("CORE-010", "the set reports its replica as available", predicates.available(set_name, 1))
    view = case.settled("the statuses have caught up", _caught_up(wanted, set_name), 60)

    objects.check_names_and_labels(case, wanted, view)
    objects.check_owners(case, wanted, view)
    objects.check_finalizers(case, wanted, view, set_name)
    objects.check_services(case, wanted, view)
    objects.check_specs(case, wanted, view)
    pod_contents.check_pods(case, wanted, view, set_name)
    statuses.check_statuses(case, wanted, view, set_name)
    gang_objects.check_gangs(case, wanted, view)


def _caught_up(wanted: Expected, set_name: str) -> predicates.Predicate:
    """A set is available as soon as its scaling group has minAvailable replicas: the rest follows. What never catches
    up fails its own requirement."""

    def seen(view: View) -> bool | Unmet:
        right, told = statuses.told(wanted, view, set_name)
        listed, seen_listed = gang_objects.references(wanted, view)
        return (right == told and listed == seen_listed) or Unmet("statuses or references are behind")

    return seen
