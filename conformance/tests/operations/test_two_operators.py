"""Tests with two operators: one leads, and the other is ready to take over."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove.expected import expected
from conformance.grove.fields import name, terminating
from conformance.history.query import Unmet, predicate
from conformance.history.record import ADDED, DELETED, Record
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.incarnations import Records
from conformance.testing.scene import Exclusive, Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.operations import leases

SMALL: Mapping[str, object] = {"workers": 3, "prefills": 2, "decodes": 2, "prefillGpus": 1, "decodeGpus": 1}


class LeaderEndsTwice(Scene):
    """Two operators, and room for all pods. The leader is killed while it creates the pods of a set, and a pod is
    deleted while no operator leads. Later the next leader is stopped while another operator is running."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        start = env.machine.now()
        env.roles.restart_with_election()
        self.first = env.wait_for("an operator holds the Lease", leases.led)
        env.roles.start_second_operator()
        env.wait_for("the leader renews the Lease", leases.renewed(self.first))
        # The API server calls the webhooks of the second operator.
        right, wrong = env.workload("frontend", setName="right"), env.workload("frontend", setName="wrong")
        cliques = wrong["spec"]["template"]["cliques"]
        cliques.append(cliques[0])
        self.right, self.wrong = env.dry_run.all([env.dry_run.create(right), env.dry_run.create(wrong)])

        workload = env.workload("disaggregated", setName="s", **SMALL)
        expected_set = expected(workload)
        self.total = sum(clique.template.replicas for clique in expected_set.cliques.values())
        env.create(workload)
        env.wait_for("the leader has begun with the set", _two_pods)
        if leases.holders(env.history.records(leases.LEASES)) != [self.first]:
            env.machine.require(start, "a leader renewed its Lease in time")
        env.roles.hand_over(kill=True)
        env.mark("leader killed")
        # Requests that the former leader sent before it was killed may still arrive. The pod is deleted after a quiet
        # period, so only an operator that does not hold the Lease could replace the pod before the Lease changes hands.
        self.lost = name(env.quiet(1.5, 6, real=True).list("pods")[0])
        env.delete("pods", self.lost)
        env.wait_for("another operator takes the Lease", leases.led_by_another(self.first), timeout=120)
        env.wait_for("the lost pod is gone", lambda view: view.get("pods", self.lost) is None)
        env.wait_for("the set is available", predicates.is_available("s", 1))
        env.wait_for("all pods bound", predicates.all_bound(list(expected_set.cliques.values())))
        env.quiet(1)
        env.mark("nothing moves")

        self.second = env.wait_for("the new leader holds the Lease", leases.led)
        env.roles.start_second_operator()
        env.roles.hand_over(kill=False)
        stopped, led = env.machine.now(), leases.led_by_another(self.second)
        env.wait_for("another operator takes the Lease of the stopped one", led, timeout=120)
        seconds, good_for = leases.waited(env.history, self.second)
        if seconds >= good_for:
            env.machine.require(stopped, "another operator took a Lease that was released")
        before = {name(pod) for pod in env.history.view().list("pods")}
        env.delete("pods", min(before))
        env.wait_for("the last leader replaces a lost pod", _replaced(before, self.total))


@requirement("OPS-001", reaches=("an operator holds the Lease", "the leader renews the Lease"))
def test_one_operator_leads(run: Recorded[LeaderEndsTwice]) -> None:
    """The holders are read from the records of the Lease up to the time at which the first leader is killed."""
    records = run.until("leader killed").records(leases.LEASES)
    run.expect("who had the Lease while its holder lived", [run.scene.first], leases.holders(records))


@requirement("OPS-002")
def test_webhooks_answer_where_no_leader_is(run: Recorded[LeaderEndsTwice]) -> None:
    """The API server calls the webhooks of the second operator, which does not lead."""
    run.expect("a set that is right", "accepted", str(run.scene.right))
    wrong = run.scene.wrong
    run.expect("a set with two cliques of one name is refused", True, wrong.refused or str(wrong))


@requirement("OPS-003", reaches=("another operator takes the Lease", "the set is available", "all pods bound"))
def test_another_operator_completes_the_set(run: Recorded[LeaderEndsTwice]) -> None:
    """The leader is killed when two pods exist."""
    run.given("the leader has begun with the set")


@requirement("OPS-006")
def test_no_pod_is_created_twice(run: Recorded[LeaderEndsTwice]) -> None:
    """The test itself has deleted one pod, so one pod is created a second time."""
    run.given("the leader has begun with the set", "the set is available", "all pods bound")
    span = run.until("nothing moves")
    actual = [len(_created(span)), _deleted(span)]
    run.expect("number of pods created, and pods deleted", [run.scene.total + 1, [run.scene.lost]], actual)


@requirement(
    "OPS-004", reaches=("another operator takes the Lease of the stopped one", "the last leader replaces a lost pod")
)
def test_a_stopped_leader_releases_the_lease(run: Recorded[LeaderEndsTwice]) -> None:
    """The time from the last renewal until another operator holds the Lease is measured."""
    run.given("the new leader holds the Lease")
    span = run.until("another operator takes the Lease of the stopped one")
    seconds, good_for = leases.waited(span, run.scene.second)
    description = f"it takes over before the {good_for} s of the Lease are over"
    run.expect(description, True, seconds < good_for or f"after {seconds:.1f} s")


@requirement("OPS-005")
def test_an_operator_that_does_not_lead_creates_nothing(run: Recorded[LeaderEndsTwice]) -> None:
    """An operator that acts without being the leader would replace the pod that was deleted while no operator led."""
    run.given("the lost pod is gone")
    span = run.until("the lost pod is gone")
    early = _created_before_another_led(span, run.scene.first)
    beyond = [str(record) for record in early[run.scene.total :]]
    run.expect("pods created beyond those of the set before another led", [], beyond)
    leaderless = [str(record) for record in _after_deletion(span, early, run.scene.lost)]
    run.expect("pods created while nobody led", [], leaderless)


test_invariants = invariants(LeaderEndsTwice, "INV-001", "INV-004", "INV-005")


def _two_pods(view: View) -> bool | Unmet:
    """There are at least two pods: one that the scene deletes, and one that the next leader finds."""
    return len(view.list("pods")) >= 2 or Unmet("there are fewer than two pods")


def _created(history: Records) -> list[Record]:
    return [record for record in history.records("pods") if record.kind == ADDED]


def _deleted(history: Records) -> list[str]:
    """Return the names of the pods that were deleted or marked for deletion."""
    records = history.records("pods")
    return sorted({r.name for r in records if r.kind == DELETED or terminating(r.object)})


def _created_before_another_led(history: Records, former: str) -> list[Record]:
    """Return the pods that were created before another operator held the Lease."""
    takeover = leases.takeover_from(history, former)
    return [record for record in _created(history) if takeover is None or record.revision < takeover.revision]


def _after_deletion(history: Records, records: list[Record], lost: str) -> list[Record]:
    """Return the `records` that were written after the pod `lost` was deleted."""
    ends = [r.revision for r in history.records("pods", lost) if r.kind == DELETED or terminating(r.object)]
    return [record for record in records if ends and record.revision > min(ends)]


@predicate
def _replaced(view: View, before: set[str], count: int) -> bool | Unmet:
    """There are `count` pods, and at least one of them is new."""
    names = {name(pod) for pod in view.list("pods") if not terminating(pod)}
    new = names - before
    return (len(names) == count and bool(new)) or Unmet(f"{len(names)} of {count} pods, {len(new)} of them new")
