"""What services of several components need and a scheduler of single PodGroups cannot give. Each test is named after a
gap. Operator and scheduler together."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.grove.expected import Clique, expected
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import predicates


@requirements("SCHED-061")
def test_gap_1_so_many_complete_replicas_of_several_nodes_or_none(case: Case) -> None:
    # Each worker takes three nodes; two workers are the minimum, and there is room for one and two thirds.
    case.nodes("tiny", 5)
    workload = case.workload("disaggregated", routers=1, workers=3, workersMinAvailable=2, prefills=2, prefillGpus=2,
                             decodes=1, decodeGpus=2)  # fmt: skip
    wanted = expected(workload)
    [base] = wanted.base_gangs
    [scaled] = wanted.scaled_gangs
    based, third = wanted.of_gang(base.name), wanted.of_gang(scaled.name)
    case.create(workload)
    _waits(case, "SCHED-061", based, "bound pods where two complete workers do not fit")

    case.nodes("tiny", 3)
    case.until("SCHED-061", "two complete workers are placed once they fit", predicates.all_bound(based))
    case.until("SCHED-061", "the pods of the third one lose their gates", predicates.all_ungated(third))
    view = case.quiet(1)
    case.expect(
        "SCHED-061", "bound pods of a third that does not fit", predicates.none(third), predicates.bound(view, third)
    )
    case.nodes("tiny", 1)
    case.until("SCHED-061", "the third complete worker is placed", predicates.all_bound(third))


@requirements("SCHED-062")
def test_gap_2_ten_prefill_pods_are_nothing_without_one_for_decode(case: Case) -> None:
    # Room for all ten prefill pods, and for no decode pod: it needs a bigger node.
    case.nodes("tiny", 10)
    workload = case.workload("components", prefills=10, decodes=1, decodeGpus=8)
    cliques = list(expected(workload).cliques.values())
    case.create(workload)
    _waits(case, "SCHED-062", cliques, "bound pods where no decode pod fits")
    case.nodes("dgx-h100", 1)
    case.until("SCHED-062", "all are placed once the decode pod fits", predicates.all_bound(cliques))


@requirements("SCHED-063")
def test_minimum_of_all_groups_before_extras(case: Case) -> None:
    # One of each is needed, four and two are wanted; there is room for two.
    case.nodes("tiny", 2)
    workload = case.workload("components", prefills=4, decodes=2)
    wanted = expected(workload)
    [gang] = wanted.gangs.values()
    cliques = wanted.of_gang(gang.name)
    case.create(workload)
    case.until("SCHED-063", "one of each is placed where two pods fit", predicates.admitted(wanted, gang))
    case.expect("SCHED-063", "bound pods where two fit", dict(gang.minimums), predicates.bound(case.quiet(1), cliques))


def _waits(case: Case, id: str, cliques: Sequence[Clique], what: str) -> None:
    """No pod of the cliques is bound, though they might be, and though a gang that came later is."""
    case.until(id, "the pods that wait have no gate", predicates.all_ungated(cliques))
    later = case.workload("frontend", setName="later")
    case.create(later)
    case.until(id, "a later gang that fits is bound", predicates.all_bound(list(expected(later).cliques.values())))
    case.expect(id, what, predicates.none(cliques), predicates.bound(case.quiet(1), cliques))
