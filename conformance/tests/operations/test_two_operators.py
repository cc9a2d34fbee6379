"""Two operators: one leads, the other one is ready to follow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.grove.expected import Expected, expected
from conformance.grove.fields import name, terminating
from conformance.grove.kinds import LEASE
from conformance.history.query import Unmet
from conformance.history.record import ADDED, DELETED, Record
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import predicates
from conformance.tests.operations import leases

SMALL: Mapping[str, object] = {"workers": 3, "prefills": 2, "decodes": 2, "prefillGpus": 1, "decodeGpus": 1}


@requirements("OPS-001", "OPS-002", "OPS-003", "OPS-004", "OPS-005", "INV-001", "INV-004", "INV-005")
def test_a_second_operator_follows_the_first(case: Case) -> None:
    case.nodes("dgx-h100", 2)
    case.roles.elect()
    first = case.until("OPS-001", f"an operator holds the Lease {LEASE}", leases.led)
    case.roles.second_operator()
    case.until("OPS-001", "the leader renews the Lease", leases.renewed(first))
    ask_for_admission(case)

    workload = case.workload("disaggregated", setName="s", **SMALL)
    wanted = expected(workload)
    case.create(workload)
    case.until("OPS-003", "the leader has begun with the set", some_pod)
    case.roles.hand_over(kill=True)
    killed = case.history.mark()
    # What the leader had asked for last may still come. After that, whoever works without leading replaces this pod.
    lost = name(case.quiet(1.5, 6, real=True).list("pods")[0])
    case.delete("pods", lost)
    case.until("OPS-003", "another operator takes the Lease", leases.led_by_another(first), timeout=120)
    case.expect("OPS-001", "who had the Lease while its holder lived", [first], holders_until(case, killed))
    case.until("OPS-005", "the lost pod is gone", lambda view: view.get("pods", lost) is None)
    early = made_before_another_led(case, first)
    case.expect("OPS-005", "pods made beyond those of the set before another led", [], texts(early[total(wanted) :]))
    case.expect("OPS-005", "pods made while nobody led", [], texts(made_while_nobody_led(early, lost, case)))
    case.until("OPS-003", "the set becomes available", predicates.available("s", 1))
    case.until("OPS-003", "every pod is bound", predicates.all_bound(list(wanted.cliques.values())))
    case.quiet(1)
    case.expect("OPS-003", "pods made and deleted", [total(wanted) + 1, [lost]], [len(pods_made(case)), gone(case)])

    second = case.until("OPS-004", "somebody leads", leases.led)
    case.roles.second_operator()
    case.roles.hand_over(kill=False)
    what = "another operator takes the Lease of one that was stopped"
    case.until("OPS-004", what, leases.led_by_another(second), timeout=120)
    seconds, good_for = leases.waited(case.history, second)
    what = f"it takes over before the {good_for} s of the Lease are over"
    case.expect("OPS-004", what, True, seconds < good_for or f"after {seconds:.1f} s")
    before = {name(pod) for pod in case.history.view().list("pods")}
    case.delete("pods", min(before))
    case.until("OPS-004", "the new leader replaces a lost pod", replaced(before, total(wanted)))


def ask_for_admission(case: Case) -> None:
    """The second operator's webhooks are those that are asked: a set is accepted, a senseless one is not."""
    right = case.workload("frontend", setName="right")
    wrong = case.workload("frontend", setName="wrong")
    cliques = wrong["spec"]["template"]["cliques"]
    cliques.append(cliques[0])
    accepted, refused = case.dry_run.all([case.dry_run.create(right), case.dry_run.create(wrong)])
    case.expect("OPS-002", "a set that is right", "accepted", str(accepted))
    case.expect("OPS-002", "a set with two cliques of one name is refused", True, refused.refused or str(refused))


def some_pod(view: View) -> bool | Unmet:
    return bool(view.list("pods")) or Unmet("there is no pod")


def total(wanted: Expected) -> int:
    return sum(clique.template.replicas for clique in wanted.cliques.values())


def pods_made(case: Case) -> list[Record]:
    return [record for record in case.history.records("pods") if record.kind == ADDED]


def gone(case: Case) -> list[str]:
    """Pods that were deleted, or marked for it."""
    records = case.history.records("pods")
    return sorted({r.name for r in records if r.kind == DELETED or terminating(r.object)})


def holders_until(case: Case, mark: int) -> list[str]:
    return leases.holders(case.history.records(leases.LEASES, LEASE, until=mark))


def made_before_another_led(case: Case, former: str) -> list[Record]:
    """Pods that were made before somebody else had the Lease."""
    taken = leases.taken_from(case.history, former)
    return [record for record in pods_made(case) if taken is None or record.revision < taken.revision]


def made_while_nobody_led(early: list[Record], lost: str, case: Case) -> list[Record]:
    """Of these pods those that were made after one was lost: the leader was dead already."""
    ends = [r.revision for r in case.history.records("pods", lost) if r.kind == DELETED or terminating(r.object)]
    return [record for record in early if ends and record.revision > min(ends)]


def texts(records: list[Record]) -> list[str]:
    return [str(record) for record in records]


def replaced(before: set[str], count: int) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found: list[Mapping[str, Any]] = [pod for pod in view.list("pods") if not terminating(pod)]
        new = {name(pod) for pod in found} - before
        return (len(found) == count and bool(new)) or Unmet(f"{len(found)} of {count} pods, {len(new)} of them new")

    return seen
