"""Scaled gangs wait for their base gang, even where they would fit and it does not."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove.expected import Clique, expected
from conformance.grove.fields import condition, condition_is, number, text
from conformance.history import predicates
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.tests.core.comparison import of, same
from conformance.tests.resources.observed import there

Statuses = dict[str, dict[str, object]]
"""By clique: what its status says."""
BREACHED = "MinAvailableBreached"


@requirements(
    "GANG-001",
    "GANG-006",
    "GANG-007",
    "GANG-008",
    "SCHED-001",
    "SCHED-002",
    "SCHED-005",
    "CORE-027",
    "CORE-028",
    "INV-001",
    "INV-002",
    "INV-003",
    "INV-004",
    "INV-005",
    "INV-008",
    "INV-010",
)
def test_scaled_gangs_wait_for_their_base_gang(case: Case) -> None:
    # Each replica of the workers fills a node. The base gang has two of them, each scaled gang one: on the one node
    # that there is, a scaled gang fits and the base gang does not. One more prefill pod of each is beyond the floor.
    case.nodes("dgx-h100", 1)
    workload = case.workload(
        "disaggregated", routers=1, workers=4, workersFloor=2, prefills=2, prefillsFloor=1, prefillGpus=4, decodeGpus=4
    )
    wanted = expected(workload)
    [base] = wanted.base_gangs
    based = wanted.of_gang(base.name)
    scaled = [clique for gang in wanted.scaled_gangs for clique in wanted.of_gang(gang.name)]
    case.create(workload)
    case.until("GANG-007", "all pods exist, those of the scaled gangs too", predicates.all_exist([*based, *scaled]))
    gangs = case.settled("all gangs exist", there("podgangs", wanted.gangs)).names("podgangs")
    case.expect("GANG-001", "gangs by name", sorted(wanted.gangs), gangs)
    case.until("GANG-006", "the pods of the waiting base gang lose their gates", predicates.all_ungated(based))

    # A later set that becomes bound proves that operator and scheduler have gone on working.
    later = case.workload("frontend", setName="later")
    case.create(later)
    case.until(
        "SCHED-005", "a later gang that fits is bound", predicates.all_bound(list(expected(later).cliques.values()))
    )
    view = case.quiet(1)
    waiting(case, scaled, view)
    bound = predicates.bound(view, based)
    case.expect("SCHED-001", "bound pods of the base gang", dict.fromkeys(bound, 0), bound)
    view = case.settled("the statuses say that nothing is scheduled", _unscheduled(based, scaled))
    same(case, "CORE-027", "statuses of cliques without scheduled pods", *_statuses(based, scaled, view))
    case.expect("CORE-028", "scaling groups that were called sound while no pod was scheduled", [], _sound(case))

    # There is room for just the floors of the base gang, and that is enough for the scaled gangs to lose their gates.
    case.nodes("dgx-h100", 1)
    case.until("SCHED-002", "the base gang is bound once it fits", predicates.admitted(wanted, base))
    case.until("GANG-008", "then all pods of the scaled gangs lose their gates", predicates.all_ungated(scaled))
    case.nodes("dgx-h100", 4)
    case.until("SCHED-002", "and the scaled gangs are bound", predicates.all_bound(scaled))


def _statuses(based: list[Clique], scaled: list[Clique], view: View) -> tuple[Statuses, Mapping[str, object]]:
    """What the cliques are to say of pods that nobody has scheduled, and what they say."""
    right: Statuses = {}
    seen: dict[str, object] = {}
    for clique in (*based, *scaled):
        found, pods = view.get("podcliques", clique.name), clique.template.replicas
        right[clique.name] = {
            "scheduledReplicas": 0,
            "scheduleGatedReplicas": pods if clique in scaled else 0,
            "PodCliqueScheduled": ["False", "InsufficientScheduledPods"],
            BREACHED: ["True", "ScheduledReplicasBelowMinAvailable"],
        }
        told: dict[str, object] = {
            key: number(found, "status", key) for key in ("scheduledReplicas", "scheduleGatedReplicas")
        }
        for kind in ("PodCliqueScheduled", BREACHED):
            one = condition(found, kind)
            told[kind] = [text(one, "status"), text(one, "reason")]
        seen[clique.name] = of(found, told)
    return right, seen


def _unscheduled(based: list[Clique], scaled: list[Clique]) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        right, told = _statuses(based, scaled, view)
        return right == told or Unmet("the statuses are behind")

    return seen


def _sound(case: Case) -> list[str]:
    records = case.history.records("podcliquescalinggroups")
    return [str(record) for record in records if condition_is(record.object, BREACHED) == "False"]


def waiting(case: Case, scaled: list[Clique], view: View) -> None:
    """The scaled pods are all there, all gated, none bound."""
    case.expect("GANG-007", "gated pods of the scaled gangs", predicates.sizes(scaled), predicates.gated(view, scaled))
    case.expect("GANG-007", "bound pods of the scaled gangs", predicates.none(scaled), predicates.bound(view, scaled))
