"""Pods that the API server refuses at first: their gang has never run, however late its conditions appear."""

from __future__ import annotations

from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import disruption, observed
from conformance.testing.comparison import same
from conformance.testing.disruption import CLIQUES
from conformance.testing.quotas import limit_pods
from conformance.testing.scaled import pods_are

REFUSED = 8.0
"""Seconds for which pods are refused. Operators are known that take a condition which appears later than five seconds
after the creation of its clique for one that has changed (CHG-DF04)."""
NAMES = ("late-0-a", "late-0-g-0-b", "late-0-g-0-c")


@requirements("TERM-021", "INV-001", "INV-004")
def test_a_gang_whose_pods_were_refused_at_first_has_never_run(case: Case) -> None:
    # No node takes its pods: once they exist, they stay Pending.
    limit_pods(case, "none", 0)
    case.create(case.workload("kept", setName="late", groups=1, groupsFloor=1, members=1, membersFloor=1, delay="1s"))
    case.until("TERM-021", "its cliques exist", observed.there(CLIQUES, NAMES))
    made = case.history.now()
    while (rest := made + REFUSED - case.history.now()) > 0:
        case.quiet(rest, rest, real=True)
    case.delete("resourcequotas", "none")
    case.until("TERM-021", "its pods exist", pods_are({"late-0-a": 2, "late-0-g-0-b": 1, "late-0-g-0-c": 1}), 120)
    # A set that comes later gets everything: whoever terminates has had its time to.
    case.create(case.workload("frontend", setName="later", pods=1))
    case.until("TERM-021", "a later set has its pods", pods_are({"later-0-web": 1}))
    case.quiet(6, real=True)
    once = dict.fromkeys(NAMES, 1)
    same(case, "TERM-021", "cliques of what had never run", once, disruption.counts(case.history, once))
