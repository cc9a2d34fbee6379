"""Tests that a write that the API server rejects is retried with back-off, and succeeds when nothing prevents it any
more."""

from __future__ import annotations

from collections import Counter

from conformance.grove.expected import expected
from conformance.suite.outcomes.checks import Blocked
from conformance.suite.scenes.api import Object
from conformance.testing.quotas import limit_pods
from conformance.testing.scaled import pods_are
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.tests.core import reports

FIRST, SETTLE, WINDOW = 30, 5, 10
"""Seconds within which pods are rejected for the first time, seconds for the quick retries at the start of any
back-off, and seconds during which requests are counted after that."""
QUOTA, INVALID = 403, 422
"""The status codes with which the API server rejects the pods."""
ATTEMPTS = 10
"""The maximum number of attempts for each pod or object in the window. One attempt per second is far more than an
exponential back-off or a fixed interval needs."""
PODS, ALLOWED = 4, 2
STATUSES = ("podcliques", "podcliquescalinggroups", "podcliquesets", "podgangs")


class PodsRefused(Scene):
    """A quota of two pods blocks a set of four pods, and an invalid pod spec blocks another set. The quota is deleted
    later. The rejected requests are counted in the API server's audit log."""

    def play(self, env: SceneEnvironment) -> None:
        if env.audit is None:
            reason = "refused requests cannot be counted: the cluster has no audit log that we know"
            raise Blocked(reason, "circumstances")
        env.nodes("tiny", 1)
        limit_pods(env, "few", ALLOWED)
        limited = env.workload("frontend", setName="few", pods=PODS)
        [clique] = expected(limited).cliques
        start, codes = env.audit.mark(), {QUOTA}
        env.create(limited)
        env.wait_for("pods within the quota created", pods_are({clique: ALLOWED}))
        self.refused_pods = PODS - ALLOWED
        invalid = _with_invalid_pods(env.workload("frontend", setName="wrong", pods=2))
        if env.dry_run.ask(env.dry_run.create(invalid)).accepted:  # otherwise admission rejects the set
            env.create(invalid)
            self.refused_pods += 2
            codes.add(INVALID)

        # A back-off starts with the first rejection, which may be delayed.
        waited = 0
        while waited < FIRST and not codes <= env.audit.refusals(env.namespace, "pods", start):
            env.quiet(1, real=True, of=())
            waited += 1
        env.quiet(SETTLE, real=True, of=())
        env.mark("first retries over")
        mark = env.audit.mark()
        env.quiet(WINDOW, real=True, of=())
        self.requests = env.audit.refused(env.namespace, mark)
        env.mark("window over")
        env.delete("resourcequotas", "few")
        env.wait_for("missing pods created", pods_are({clique: PODS}))


@requirement("CORE-031", reaches="missing pods created")
def test_refused_pods_are_retried_with_back_off(run: Recorded[PodsRefused]) -> None:
    run.given("pods within the quota created")
    records = run.between("first retries over", "window over").records()
    refused, requests = run.scene.refused_pods, run.scene.requests
    limit = ATTEMPTS * refused
    subject = f"refused requests for {refused} pods, if more than {limit} within {WINDOW} s"
    run.expect(subject, {}, requests if requests.total() > limit else {})
    written = Counter(f"{record.resource}/{record.name}" for record in records if record.resource in STATUSES)
    restless = {name: count for name, count in written.items() if count > ATTEMPTS}
    run.expect(f"objects written more than {ATTEMPTS} times within {WINDOW} s", {}, restless)


@requirement("CORE-048")
def test_refusals_that_are_the_same_are_one_event(run: Recorded[PodsRefused]) -> None:
    """The count of the event may grow, and an event with another message is a separate event."""
    run.given("pods within the quota created")
    events = {record.uid: reports.event(record.object) for record in run.until("window over").records("events")}
    warnings = Counter(event for event in events.values() if event[1] == reports.WARNING)
    repeated = {" ".join(event): count for event, count in warnings.items() if count > 1}
    run.expect("Warning events that exist more than once, and how often", {}, repeated)


def _with_invalid_pods(workload: Object) -> Object:
    """Return the set after its pods have been given a preStop hook that lasts longer than the grace period. Every API
    server rejects such pods. No CRD schema detects that."""
    for clique in workload["spec"]["template"]["cliques"]:
        pod = clique["spec"]["podSpec"]
        pod["terminationGracePeriodSeconds"] = 1
        pod["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 9}}}
    return workload
