"""What a scheduler that looks at one pod at a time does to an inference service: it binds what fits, and the service is
torn: GPUs are taken, and nothing is served. Both scenes show it whatever the order of the pods.
"""

from __future__ import annotations

from conformance.grove import pods
from conformance.grove.expected import Expected, expected
from conformance.grove.fields import label
from conformance.grove.labels import CLIQUE
from conformance.history import predicates
from conformance.history.record import Record
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.suite.requirement import requirements


@requirements("SCHED-005", "SCHED-007", "INV-003", "INV-010")
def test_no_prefill_pod_is_bound_where_no_decode_pod_fits(case: Case) -> None:
    # Each of the ten prefill pods fits on one of the ten nodes. A decode pod needs two GPUs, and no node has them.
    case.nodes("single", 10)
    workload = case.workload("serve", prefills=10, decodes=2, decodeGpus=2)
    _stays_unbound(case, "SCHED-007", workload)


@requirements("SCHED-005", "SCHED-008", "INV-003", "INV-010")
def test_a_service_over_six_nodes_waits_for_the_sixth(case: Case) -> None:
    # Four prefill and two decode pods, all of them floors, and five nodes with a GPU each. Any group fits alone.
    case.nodes("single", 5)
    workload = case.workload("serve", prefills=4, prefillsFloor=4, decodes=2, decodesFloor=2)
    wanted = _stays_unbound(case, "SCHED-008", workload)
    case.nodes("single", 1)
    case.until("SCHED-008", "the gang is bound on six nodes", predicates.all_bound(list(wanted.cliques.values())))


def _stays_unbound(case: Case, id: str, workload: Object) -> Expected:
    """Has the scheduler try the set, and a later one without GPUs, which proves that it had its chance."""
    wanted = expected(workload)
    cliques = list(wanted.cliques.values())
    case.create(workload)
    case.until(id, "the pods of the gang may be scheduled", predicates.all_ungated(cliques))
    later = case.workload("frontend", setName="later")
    case.create(later)
    case.until(
        "SCHED-005", "a later gang that fits is bound", predicates.all_bound(list(expected(later).cliques.values()))
    )
    bound = predicates.bound(case.quiet(1), cliques)
    case.expect(id, "bound pods of a gang that does not fit", predicates.none(cliques), bound, at=_first(case, wanted))
    return wanted


def _first(case: Case, wanted: Expected) -> Record | None:
    """The first binding of a pod of the set."""
    found = (
        record
        for record in case.history.records("pods")
        if label(record.object, CLIQUE) in wanted.cliques and pods.bound(record.object)
    )
    return next(found, None)
