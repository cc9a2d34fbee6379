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

SMALL_SIZES: Mapping[str, object] = {"workers": 3, "prefills": 2, "decodes": 2, "prefillGpus": 1, "decodeGpus": 1}


class LeaderEndsTwice(Scene):
    """Two operators, and room for all pods. The leader is killed while it creates the pods of a set, and a pod is
    deleted while no operator leads. Later the next leader is stopped while another operator is running."""

    exclusive = Exclusive.ROLES

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("dgx-h100", 2)
        start_time = env.machine.now()
        env.roles.restart_with_election()
        self.first_leader = env.wait_for("an operator holds the Lease", leases.current_holder)
        env.roles.start_second_operator()
        env.wait_for("the leader renews the Lease", leases.is_renewed(self.first_leader))
        # The API server calls the webhooks of the second operator.
        right, wrong = env.workload("frontend", setName="right"), env.workload("frontend", setName="wrong")
        cliques = wrong["spec"]["template"]["cliques"]
        cliques.append(cliques[0])
        self.valid_set_reply, self.invalid_set_reply = env.dry_run.all(
            [env.dry_run.create(right), env.dry_run.create(wrong)]
        )

        workload = env.workload("disaggregated", setName="s", **SMALL_SIZES)
        expected_set = expected(workload)
        self.pod_count = sum(clique.template.replicas for clique in expected_set.cliques.values())
        env.create(workload)
        env.wait_for("the leader has begun with the set", _has_two_pods)
        if leases.successive_holders(env.history.records(leases.LEASES)) != [self.first_leader]:
            env.machine.require(start_time, "a leader renewed its Lease in time")
        env.roles.hand_over(kill=True)
        env.mark("leader killed")
        # Requests that the former leader sent before it was killed may still arrive. The pod is deleted after a quiet
        # period, so only an operator that does not hold the Lease could replace the pod before the Lease changes hands.
        self.lost_pod = name(env.quiet(1.5, 6, real=True).list("pods")[0])
        env.delete("pods", self.lost_pod)
        env.wait_for("another operator takes the Lease", leases.has_other_holder(self.first_leader), timeout=120)
        env.wait_for("the lost pod is gone", lambda view: view.get("pods", self.lost_pod) is None)
        env.wait_for("the set is available", predicates.is_available("s", 1))
        env.wait_for("all pods bound", predicates.all_bound(list(expected_set.cliques.values())))
        env.quiet(1)
        env.mark("nothing moves")

        self.second_leader = env.wait_for("the new leader holds the Lease", leases.current_holder)
        env.roles.start_second_operator()
        env.roles.hand_over(kill=False)
        stopped_at, has_other_holder = env.machine.now(), leases.has_other_holder(self.second_leader)
        env.wait_for("another operator takes the Lease of the stopped one", has_other_holder, timeout=120)
        seconds, lease_seconds = leases.takeover_delay(env.history, self.second_leader)
        if seconds >= lease_seconds:
            env.machine.require(stopped_at, "another operator took a Lease that was released")
        pod_names = {name(pod) for pod in env.history.view().list("pods")}
        env.delete("pods", min(pod_names))
        env.wait_for("the last leader replaces a lost pod", _are_pods_replaced(pod_names, self.pod_count))


@requirement("OPS-001", reaches=("an operator holds the Lease", "the leader renews the Lease"))
def test_one_operator_leads(run: Recorded[LeaderEndsTwice]) -> None:
    """The holders are read from the records of the Lease up to the time at which the first leader is killed."""
    records = run.until("leader killed").records(leases.LEASES)
    run.expect("who had the Lease while its holder lived", [run.scene.first_leader], leases.successive_holders(records))


@requirement("OPS-002")
def test_webhooks_answer_where_no_leader_is(run: Recorded[LeaderEndsTwice]) -> None:
    """The API server calls the webhooks of the second operator, which does not lead."""
    run.expect("a set that is right", "accepted", str(run.scene.valid_set_reply))
    wrong = run.scene.invalid_set_reply
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
    actual = [len(_created_objects(span)), _deleted_objects(span)]
    run.expect("number of pods created, and pods deleted", [run.scene.pod_count + 1, [run.scene.lost_pod]], actual)


@requirement(
    "OPS-004", reaches=("another operator takes the Lease of the stopped one", "the last leader replaces a lost pod")
)
def test_a_stopped_leader_releases_the_lease(run: Recorded[LeaderEndsTwice]) -> None:
    """The time from the last renewal until another operator holds the Lease is measured."""
    run.given("the new leader holds the Lease")
    span = run.until("another operator takes the Lease of the stopped one")
    seconds, lease_seconds = leases.takeover_delay(span, run.scene.second_leader)
    description = f"it takes over before the {lease_seconds} s of the Lease are over"
    run.expect(description, True, seconds < lease_seconds or f"after {seconds:.1f} s")


@requirement("OPS-005")
def test_an_operator_that_does_not_lead_creates_nothing(run: Recorded[LeaderEndsTwice]) -> None:
    """An operator that acts without being the leader would replace the pod that was deleted while no operator led."""
    run.given("the lost pod is gone")
    span = run.until("the lost pod is gone")
    early_records = _created_before_another_led(span, run.scene.first_leader)
    excess_records = [str(record) for record in early_records[run.scene.pod_count :]]
    run.expect("pods created beyond those of the set before another led", [], excess_records)
    records_without_leader = [
        str(record) for record in _created_after_deletion(span, early_records, run.scene.lost_pod)
    ]
    run.expect("pods created while nobody led", [], records_without_leader)


test_invariants = invariants(LeaderEndsTwice, "INV-001", "INV-004", "INV-005")


def _has_two_pods(view: View) -> bool | Unmet:
    """There are at least two pods: one that the scene deletes, and one that the next leader finds."""
    return len(view.list("pods")) >= 2 or Unmet("there are fewer than two pods")


def _created_objects(history: Records) -> list[Record]:
    return [record for record in history.records("pods") if record.kind == ADDED]


def _deleted_objects(history: Records) -> list[str]:
    """Return the names of the pods that were deleted or marked for deletion."""
    records = history.records("pods")
    return sorted({r.name for r in records if r.kind == DELETED or terminating(r.object)})


def _created_before_another_led(history: Records, former: str) -> list[Record]:
    """Return the pods that were created before another operator held the Lease."""
    takeover = leases.takeover_from(history, former)
    return [record for record in _created_objects(history) if takeover is None or record.revision < takeover.revision]


def _created_after_deletion(history: Records, records: list[Record], lost: str) -> list[Record]:
    """Return the `records` that were written after the pod `lost` was deleted."""
    deletions = [r.revision for r in history.records("pods", lost) if r.kind == DELETED or terminating(r.object)]
    return [record for record in records if deletions and record.revision > min(deletions)]


@predicate
def _are_pods_replaced(view: View, before: set[str], count: int) -> bool | Unmet:
    """There are `count` pods, and at least one of them is new."""
    pod_names = {name(pod) for pod in view.list("pods") if not terminating(pod)}
    new_pods = pod_names - before
    return (len(pod_names) == count and bool(new_pods)) or Unmet(
        f"{len(pod_names)} of {count} pods, {len(new_pods)} of them new"
    )
