"""Tests with old pods that are running but not Ready. An update does not wait for these pods or their successors."""

from __future__ import annotations

from conformance.grove import pods
from conformance.grove.fields import uid
from conformance.testing import disruption, predicates, replay
from conformance.testing.observed import all_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.tests.update import changes

CLIQUE, LAST_REPLICA = "weak-0-web", "frail-0-g-2"
"""A standalone clique of three pods, and the last replica of a scaling group with three replicas."""
MEMBER = f"{LAST_REPLICA}-b"


class PodsThatRunUnready(Scene):
    """A set with a standalone clique in which two of three pods are running but not Ready, and a set with a scaling
    group whose last replica has a pod that is running but not Ready. Both sets are changed. New pods of the first set
    become Ready only when they are released."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        weak = env.workload("waiting", setName="weak", pods=3, minAvailable=1)
        changes.template(weak, "web").pop("annotations")
        minimums = {"aloneMinAvailable": 1, "groupsMinAvailable": 1, "membersMinAvailable": 1}
        frail = env.workload("kept", setName="frail", alone=1, groups=3, members=1, **minimums)
        for workload in (weak, frail):
            env.create(workload)
        env.wait_for(
            "sets available", all_of(*(predicates.is_available(set_name, 1) for set_name in ("weak", "frail"))), 150
        )
        members = {f"frail-0-g-{j}-{clique}": 1 for j in range(3) for clique in "bc"}
        env.wait_for("all pods Ready", changes.report_ready({CLIQUE: 3, **members}))
        disruption.set_pod_states(env, CLIQUE, disruption.STALLED, 2)
        disruption.set_pod_states(env, MEMBER, disruption.STALLED, 1)
        env.wait_for("three pods run and are not Ready", changes.report_ready({CLIQUE: 1, MEMBER: 0}))
        env.quiet(0.7)
        env.mark("change")
        current = predicates.pods_of(env.history.view(), CLIQUE)
        self.unready = {uid(pod) for pod in current if not pods.is_ready(pod)}
        changes.hold_pods(weak, "web")
        before = {
            "weak": changes.change_image(env, weak, "web", tag="2"),
            "frail": changes.change_image(env, frail, "b", tag="2"),
        }
        changes.require_held(env, CLIQUE)
        env.settle("unready pods replaced", changes.are_deleted(CLIQUE, self.unready), 60)
        env.quiet(1, real=True)
        env.mark("successors not Ready")
        ends = {set_name: changes.has_ended(set_name, before[set_name]) for set_name in before}
        changes.release_until(env, "all updates end", [CLIQUE], all_of(*ends.values()))
        for set_name, ended in ends.items():
            env.settle(f"{set_name}: update ended", ended, 60)
        env.quiet(0.7)
        env.mark("end")


@requirement("UPD-014", reaches="unready pods replaced")
def test_pods_that_run_unready_are_replaced_at_once(run: Recorded[PodsThatRunUnready]) -> None:
    """The update does not wait for a pod that is running but does not serve requests."""
    run.given("three pods run and are not Ready")
    view = run.at("successors not Ready")
    new = [pod for pod in predicates.pods_of(view, CLIQUE) if changes.image_tag(pod) == "2"]
    run.expect("successors that are Ready by then", [], [uid(pod) for pod in new if pods.is_ready(pod)])


@requirement("UPD-025")
def test_a_replica_that_runs_unready_is_recreated_at_once(run: Recorded[PodsThatRunUnready]) -> None:
    """The pod of the replica is running, but the replica is not available. One available replica may be recreated at
    the same time."""
    run.given("three pods run and are not Ready")
    order = replay.deleted_parts(run.between("change", "end"), _replica_of)
    before = order[: order.index(LAST_REPLICA)] if LAST_REPLICA in order else order
    run.expect("replicas, beyond one, that were recreated before the one that is not available", [], before[1:])
    run.given("frail: update ended")
    run.expect("the replica was recreated", True, LAST_REPLICA in order)


test_invariants = invariants(PodsThatRunUnready, "INV-001", "INV-004", "INV-005")


def _replica_of(clique: str) -> str:
    """Return the scaling group replica to which a clique belongs, or an empty string for other cliques."""
    return clique.rpartition("-")[0] if clique.startswith("frail-0-g-") else ""
