"""Tests that the availability of scaling groups and sets follows the readiness of their pods."""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.grove.fields import condition_is, number
from conformance.testing import disruption
from conformance.testing.disruption import BREACHED, CLIQUES, GROUPS, SERVING, SETS, STALLED, STARTING
from conformance.testing.observed import all_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement
from conformance.testing.services import headless_services
from conformance.tests.core import reports

GROUP, ROUTER = "s-0-workers", "s-0-router"
DECODE_CLIQUES = [f"{GROUP}-{replica}-decode" for replica in range(3)]


class PodsLosingReadiness(Scene):
    """A set with a router clique of two pods and a scaling group with three replicas and minAvailable 1. There is room
    for all pods. One decode pod becomes unready. Then all decode pods start again, become unready and recover. Then the
    routers become unready. Finally all decode pods are deleted, and the nodes are cordoned."""

    def play(self, env: SceneEnvironment) -> None:
        nodes = env.nodes("dgx-h100", 2)
        sizes = {"routers": 2, "workers": 3, "workersMinAvailable": 1, "prefills": 1, "prefillsMinAvailable": 1}
        sizes |= {"prefillGpus": 1, "decodes": 1, "decodesMinAvailable": 1, "decodeGpus": 1}
        workload = env.workload("disaggregated", setName="s", **sizes)
        self.expected = expected(workload)
        env.create(workload)
        all_replicas_available = all_of(
            reports.has_available_replicas(SETS, "s", 1), reports.has_available_replicas(GROUPS, GROUP, 3)
        )
        env.wait_for("all available", all_replicas_available)

        disruption.set_pod_states(env, DECODE_CLIQUES[1], STALLED, 1)
        env.wait_for("replica with an unready pod unavailable", reports.has_available_replicas(GROUPS, GROUP, 2))
        env.quiet(1)
        env.mark("one replica unavailable")

        for decode in DECODE_CLIQUES:
            disruption.set_pod_states(env, decode, STARTING, 1)
        env.wait_for("replicas with starting pods unavailable", reports.has_available_replicas(GROUPS, GROUP, 0))
        env.quiet(1)
        env.mark("all replicas starting")
        for decode in DECODE_CLIQUES:
            disruption.set_pod_states(env, decode, STALLED, 1)
        env.wait_for("group breached", reports.is_group_breached(GROUP, "True"))
        env.wait_for("set without its group unavailable", reports.has_available_replicas(SETS, "s", 0))

        for decode in DECODE_CLIQUES:
            disruption.set_pod_states(env, decode, SERVING, 1)
        env.wait_for("group no longer breached", reports.is_group_breached(GROUP, "False"))
        env.wait_for("all available again", all_replicas_available)
        disruption.set_pod_states(env, ROUTER, STALLED, 2)
        env.wait_for("router breached", disruption.are_breached(CLIQUES, [ROUTER]))
        env.wait_for("set without its router unavailable", reports.has_available_replicas(SETS, "s", 0))
        env.quiet(1)
        env.mark("router unready")

        disruption.cordon(env, nodes)
        for decode in DECODE_CLIQUES:
            disruption.delete_pods(env, decode, 1)
        env.wait_for("Warning event about the group", reports.has_warning(GROUP), resources=["events"])


@requirement(
    "CORE-020",
    reaches=(
        "replica with an unready pod unavailable",
        "set without its group unavailable",
        "all available again",
        "set without its router unavailable",
    ),
)
def test_replicas_with_unready_pods_are_not_available(run: Recorded[PodsLosingReadiness]) -> None:
    """A pod that has started but is not Ready counts neither as ready nor as starting."""
    run.given("all available")
    available = number(run.at("one replica unavailable").get(SETS, "s"), "status", "availableReplicas")
    run.expect("available replicas of the set while its group has enough", 1, available)
    available = number(run.at("router unready").get(GROUPS, GROUP), "status", "availableReplicas")
    run.expect("available replicas of the group while the router is unready", 3, available)


@requirement("CORE-021", reaches=("group breached", "group no longer breached"))
def test_a_group_is_breached_below_its_minimum(run: Recorded[PodsLosingReadiness]) -> None:
    """One replica is enough, so the loss of another replica does not breach the group."""
    group = run.at("one replica unavailable").get(GROUPS, GROUP)
    run.expect(f"{BREACHED} of the group with two replicas", "False", condition_is(group, BREACHED))


@requirement("CORE-041")
def test_starting_replicas_do_not_breach_a_group(run: Recorded[PodsLosingReadiness]) -> None:
    """In one clique of every replica, no pod is Ready and one pod is starting."""
    group = run.at("all replicas starting").get(GROUPS, GROUP)
    run.expect(f"{BREACHED} of the group whose replicas start", "False", condition_is(group, BREACHED))


@requirement("CORE-042")
def test_a_set_that_asks_for_no_service_has_them(run: Recorded[PodsLosingReadiness]) -> None:
    """The template has no headlessServiceConfig."""
    run.same("headless Services", *headless_services(run.scene.expected, run.at("all available")))


@requirement("CORE-029", reaches="Warning event about the group")
def test_a_group_without_scheduled_replicas_warns(run: Recorded[PodsLosingReadiness]) -> None:
    """The pods are deleted, and no new pod can be scheduled. A group that is scaled to zero has not lost any
    replica."""


test_invariants = invariants(PodsLosingReadiness, "INV-001", "INV-003", "INV-004", "INV-005")
