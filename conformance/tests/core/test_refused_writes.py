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

FIRST_SECONDS, SETTLE_SECONDS, WINDOW_SECONDS = 30, 5, 10
"""Seconds within which pods are rejected for the first time, seconds for the quick retries at the start of any
back-off, and seconds during which requests are counted after that."""
QUOTA_STATUS, INVALID_STATUS = 403, 422
"""The status codes with which the API server rejects the pods."""
MAX_ATTEMPTS = 10
"""The maximum number of attempts for each pod or object in the window. One attempt per second is far more than an
exponential back-off or a fixed interval needs."""
DESIRED_PODS, ALLOWED_PODS = 4, 2
STATUSES = ("podcliques", "podcliquescalinggroups", "podcliquesets", "podgangs")


class PodsRefused(Scene):
    """A quota of two pods blocks a set of four pods, and an invalid pod spec blocks another set. The quota is deleted
    later. The rejected requests are counted in the API server's audit log."""

    def play(self, env: SceneEnvironment) -> None:
        if env.audit is None:
            reason = "refused requests cannot be counted: the cluster has no audit log that we know"
            raise Blocked(reason, "circumstances")
        env.nodes("tiny", 1)
        limit_pods(env, "few", ALLOWED_PODS)
        limited_set = env.workload("frontend", setName="few", pods=DESIRED_PODS)
        [clique] = expected(limited_set).cliques
        audit_start, codes = env.audit.mark(), {QUOTA_STATUS}
        env.create(limited_set)
        env.wait_for("pods within the quota created", pods_are({clique: ALLOWED_PODS}))
        self.refused_pods = DESIRED_PODS - ALLOWED_PODS
        invalid_set = _with_invalid_pods(env.workload("frontend", setName="wrong", pods=2))
        if env.dry_run.ask(env.dry_run.create(invalid_set)).accepted:  # otherwise admission rejects the set
            env.create(invalid_set)
            self.refused_pods += 2
            codes.add(INVALID_STATUS)

        # A back-off starts with the first rejection, which may be delayed.
        waited_seconds = 0
        while waited_seconds < FIRST_SECONDS and not codes <= env.audit.refusal_codes(
            env.namespace, "pods", audit_start
        ):
            env.quiet(1, real=True, of=())
            waited_seconds += 1
        env.quiet(SETTLE_SECONDS, real=True, of=())
        env.mark("first retries over")
        window_start = env.audit.mark()
        env.quiet(WINDOW_SECONDS, real=True, of=())
        self.requests = env.audit.refused(env.namespace, window_start)
        env.mark("window over")
        env.delete("resourcequotas", "few")
        env.wait_for("missing pods created", pods_are({clique: DESIRED_PODS}))


@requirement("CORE-031", reaches="missing pods created")
def test_refused_pods_are_retried_with_back_off(run: Recorded[PodsRefused]) -> None:
    run.given("pods within the quota created")
    records = run.between("first retries over", "window over").records()
    refused_pods, requests = run.scene.refused_pods, run.scene.requests
    limit = MAX_ATTEMPTS * refused_pods
    subject = f"refused requests for {refused_pods} pods, if more than {limit} within {WINDOW_SECONDS} s"
    run.expect(subject, {}, requests if requests.total() > limit else {})
    writes_by_object = Counter(f"{record.resource}/{record.name}" for record in records if record.resource in STATUSES)
    busy_objects = {name: count for name, count in writes_by_object.items() if count > MAX_ATTEMPTS}
    run.expect(f"objects written more than {MAX_ATTEMPTS} times within {WINDOW_SECONDS} s", {}, busy_objects)


@requirement("CORE-048")
def test_refusals_that_are_the_same_are_one_event(run: Recorded[PodsRefused]) -> None:
    """The count of the event may grow, and an event with another message is a separate event."""
    run.given("pods within the quota created")
    events = {record.uid: reports.event_fields(record.object) for record in run.until("window over").records("events")}
    warnings = Counter(event for event in events.values() if event[1] == reports.WARNING)
    repeated_warnings = {" ".join(event): count for event, count in warnings.items() if count > 1}
    run.expect("Warning events that exist more than once, and how often", {}, repeated_warnings)


def _with_invalid_pods(workload: Object) -> Object:
    """Return the set after its pods have been given a preStop hook that lasts longer than the grace period. Every API
    server rejects such pods. No CRD schema detects that."""
    for clique in workload["spec"]["template"]["cliques"]:
        pod = clique["spec"]["podSpec"]
        pod["terminationGracePeriodSeconds"] = 1
        pod["containers"][0]["lifecycle"] = {"preStop": {"sleep": {"seconds": 9}}}
    return workload
