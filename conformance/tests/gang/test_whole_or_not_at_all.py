"""A gang is bound whole or not at all: it waits without holding anything, and is bound once there is room."""

from __future__ import annotations

from conformance.grove.expected import Expected, expected
from conformance.history import predicates
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements

GPUS = 8
"""Of one dgx-h100 node: every GPU pod here fills a node, so that counting nodes is counting pods."""


@requirements(
    "GANG-004",
    "GANG-006",
    "SCHED-001",
    "SCHED-002",
    "SCHED-003",
    "SCHED-004",
    "SCHED-005",
    "SCHED-006",
    "INV-001",
    "INV-003",
    "INV-004",
    "INV-005",
    "INV-009",
    "INV-010",
)
def test_a_gang_that_does_not_fit_binds_nothing_and_binds_whole_once_nodes_appear(case: Case) -> None:
    # Floors: a router, 2 prefill and 1 decode pods, so 3 nodes; 2 more pods are beyond the floors. There are 2 nodes.
    case.nodes("dgx-h100", 2)
    large = case.workload(
        "disaggregated",
        setName="large",
        routers=1,
        workers=1,
        prefills=3,
        prefillsFloor=2,
        prefillGpus=GPUS,
        decodes=2,
        decodesFloor=1,
        decodeGpus=GPUS,
    )
    wanted = expected(large)
    [gang] = wanted.gangs.values()
    pods = wanted.of_gang(gang.name)
    case.create(large)
    case.until("GANG-004", "the waiting gang is initialized", predicates.initialized(gang.name))
    case.until("GANG-006", "every pod of the waiting gang loses its gate", predicates.all_ungated(pods))

    # A gang that comes later and fits proves that the scheduler is at work; it has had its chance with the large one.
    small = case.workload("frontend", setName="small")
    case.create(small)
    case.until("SCHED-005", "a later gang that fits is bound", _bound(expected(small)))
    nothing_bound(case, wanted, case.quiet(1), "while it does not fit")

    # And one that needs all GPUs that there are proves that the large one holds none of them back.
    filler = case.workload("frontend", setName="filler", gpus=GPUS)
    case.create(filler)
    case.until("SCHED-004", "a gang that needs every GPU of the nodes is bound", _bound(expected(filler)))
    nothing_bound(case, wanted, case.quiet(1), "while the nodes are full")

    # A gang that waits in vain is looked at again when nodes appear. The large one does not fit on these either.
    late = case.workload("frontend", setName="late", gpus=GPUS)
    case.create(late)
    case.until(
        "GANG-006",
        "the late gang's pods lose their gates",
        predicates.all_ungated(list(expected(late).cliques.values())),
    )
    nothing_bound(case, expected(late), case.quiet(1), "while the nodes are full")
    case.nodes("dgx-h100", 2)
    case.until("SCHED-002", "the late gang is bound once nodes appear", _bound(expected(late)))
    nothing_bound(case, wanted, case.quiet(1), "while it still does not fit")

    case.nodes("dgx-h100", 3)
    case.until("SCHED-003", "the gang is bound where just its floors fit", predicates.admitted(wanted, gang))
    view = case.quiet(1)
    case.expect("SCHED-003", "bound pods where only the floors fit", dict(gang.floors), predicates.bound(view, pods))

    case.nodes("dgx-h100", 2)
    case.until("SCHED-006", "the pods beyond the floors are bound", predicates.all_bound(pods))


def nothing_bound(case: Case, wanted: Expected, view: View, when: str) -> None:
    bound = predicates.bound(view, list(wanted.cliques.values()))
    case.expect("SCHED-001", f"bound pods of the gang {when}", dict.fromkeys(bound, 0), bound)


def _bound(wanted: Expected) -> predicates.Predicate:
    return predicates.all_bound(list(wanted.cliques.values()))
