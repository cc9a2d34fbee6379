"""A write that the API server refuses is retried with back-off, and succeeds once nothing is in its way."""

from __future__ import annotations

from collections import Counter
from typing import Any

from conformance.grove.expected import expected
from conformance.suite.case import Case
from conformance.suite.checks import Blocked
from conformance.suite.requirement import requirements
from conformance.testing.quotas import limit_pods
from conformance.testing.scaled import pods_are

SETTLE, WINDOW = 5, 10
"""Seconds of the first quick retries, which any back-off begins with; seconds in which requests are counted then."""
ATTEMPTS = 10
"""Attempts permitted in the window: one per second, far more than an exponential back-off or a fixed interval needs."""
PODS, ALLOWED = 4, 2
STATUSES = ("podcliques", "podcliquescalinggroups", "podcliquesets", "podgangs")


@requirements("CORE-031")
def test_refused_pods_are_retried_with_back_off(case: Case) -> None:
    """A quota stops one set, an invalid pod spec another one; the operator keeps trying without a hot loop."""
    if case.audit is None:
        raise Blocked("refused requests cannot be counted: the cluster has no audit log that we know", "circumstances")
    case.nodes("tiny", 1)
    limit_pods(case, "few", ALLOWED)
    few = case.workload("frontend", setName="few", pods=PODS)
    [clique] = expected(few).cliques
    case.create(few)
    case.until("CORE-031", "the pods that the quota permits are created", pods_are({clique: ALLOWED}))
    refused_pods = PODS - ALLOWED
    wrong = _with_invalid_pods(case.workload("frontend", setName="wrong", pods=2))
    if case.dry_run.ask(case.dry_run.create(wrong)).accepted:  # else admission sees the mistake, which is even better
        case.create(wrong)
        refused_pods += 2

    case.quiet(SETTLE, real=True, of=())
    begin, mark = case.history.mark(), case.audit.mark()
    case.quiet(WINDOW, real=True, of=())
    limit = ATTEMPTS * refused_pods
    requests = case.audit.refused(case.namespace, mark)
    what = f"refused requests for {refused_pods} pods, if more than {limit} within {WINDOW} s"
    case.expect("CORE-031", what, {}, requests if requests.total() > limit else {})
    written = Counter(f"{r.resource}/{r.name}" for r in case.history.records(since=begin) if r.resource in STATUSES)
    restless = {name: count for name, count in written.items() if count > ATTEMPTS}
    case.expect("CORE-031", f"objects written more than {ATTEMPTS} times within {WINDOW} s", {}, restless)

    case.delete("resourcequotas", "few")
    case.until("CORE-031", "the missing pods are created after the quota is deleted", pods_are({clique: PODS}))


def _with_invalid_pods(workload: dict[str, Any]) -> dict[str, Any]:
    """A set whose pods no API server accepts: a pre-stop hook that outlasts the grace period. CRDs do not see it."""
    for clique in workload["spec"]["template"]["cliques"]:
        pod = clique["spec"]["podSpec"]
        pod["terminationGracePeriodSeconds"] = 1
        pod["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 9}}}
    return workload
