"""Tests of the claims that a set shares (GREP-390): where its pods run, and what happens to the claims over time."""

from __future__ import annotations

from collections.abc import Collection

from conformance.grove import expected_claims, pods
from conformance.grove.expected import expected
from conformance.grove.fields import name, terminating, uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import devices, disruption, observed, predicates, replaced
from conformance.testing.scaled import scale
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

CLAIMS, SETS = "resourceclaims", "podcliquesets"
SET = "shared"
NODES = 8
"""Nodes of two devices, for fifteen claims of one device each."""


class DevicesSharedInEachWay(Scene):
    """A set of two replicas that shares devices in the six ways of GREP-390. A pod of a clique that shares a device is
    replaced. The set, a scaling group and a clique with a claim for each pod are scaled in by one. Then a pod crashes
    while all nodes are cordoned: the rest of the set is terminated, and bound again when the nodes are uncordoned. In
    the end the set is deleted."""

    def play(self, env: SceneEnvironment) -> None:
        nodes = env.nodes("tiny", NODES, gpus="devices")
        workload, smaller = (
            env.workload("shared-devices"),
            env.workload("shared-devices", replicas=1, groupReplicas=1, own=1),
        )
        self.expected, rest = expected(workload), expected(smaller)
        self.claims = set(expected_claims.claims(workload, self.expected))
        removed = self.claims - set(expected_claims.claims(smaller, rest))
        pair = self.expected.cliques[f"{SET}-0-pair"]
        env.create(workload)
        env.wait_for("all pods bound", predicates.all_bound(list(self.expected.cliques.values())))
        env.wait_for("set is ready", predicates.is_available(SET, 2))

        previous_uids = replaced.pod_uids(env.history.view(), [pair])
        disruption.delete_pods(env, pair.name, 1)
        env.wait_for("pod lost", replaced.has_lost_pods([pair], previous_uids))
        env.settle("pod replaced", predicates.all_bound([pair]), 60)

        env.patch(SETS, SET, {"spec": {"replicas": 1}})
        scale(env, "podcliquescalinggroups", f"{SET}-0-group", 1)
        scale(env, "podcliques", f"{SET}-0-own", 1)
        env.settle("claims of removed replicas deleted", are_deleted(removed), 60)
        env.settle("devices of removed replicas free", devices.are_in_use(), 60)

        disruption.cordon(env, nodes)
        disruption.set_termination_delay(env, [SET], "1s")
        cliques = list(rest.cliques.values())
        previous_uids = replaced.pod_uids(env.history.view(), cliques)
        disruption.set_pod_states(env, pair.name, disruption.CRASHED, 1)
        env.wait_for("set terminated", replaced.are_replaced(cliques, previous_uids))
        env.settle("devices of the terminated set free", devices.are_in_use(), 60)
        disruption.cordon(env, nodes, undo=True)
        env.settle("terminated set bound again", predicates.all_bound(cliques), 60)

        env.delete(SETS, SET)
        env.settle("claims of the deleted set deleted", are_deleted(self.claims), 60)
        env.settle("devices of the deleted set free", devices.are_in_use(), 60)


class PodsThatNeedOneNode(Scene):
    """Nodes with two devices each, and a gang of three pods that share one device. Each node has room for two of these
    pods. Then a larger node with a device appears."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 2, gpus="devices")
        env.create(devices.claim("shared", devices.claim_spec()))
        workload = devices.with_claim(
            env.workload("frontend", setName="large", pods=3), {"resourceClaimName": "shared"}
        )
        for container in workload["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"]:
            container["resources"]["requests"]["cpu"] = "3"
        self.cliques = list(expected(workload).cliques.values())
        env.create(workload)
        env.wait_for("gang ungated", predicates.all_ungated(self.cliques))
        env.quiet(1)
        env.mark("no node has room")
        env.nodes("single", 1, gpus="devices")
        env.settle("gang bound to the larger node", predicates.all_bound(self.cliques), 60)


@requirement("DEV-006")
def test_pods_run_where_the_devices_that_they_share_are(run: Recorded[DevicesSharedInEachWay]) -> None:
    view = run.at("set is ready")
    for claim_name in sorted(run.scene.claims):
        claim = view.get(CLAIMS, claim_name) or {}
        pools = {pool for _, pool, _ in devices.allocated_devices(claim)}
        nodes = {pods.node(pod) for pod in view.list("pods") if claim_name in observed.claims_of_pod(pod)}
        run.expect(f"nodes of the pods that use {claim_name}, and of its devices", pools, nodes)


@requirement("DEV-026", reaches="gang bound to the larger node")
def test_pods_that_share_a_device_are_placed_together_or_not_at_all(run: Recorded[PodsThatNeedOneNode]) -> None:
    count = sum(predicates.bound_counts(run.at("no node has room"), run.scene.cliques).values())
    run.expect("bound pods while no node has room for all", 0, count)


@requirement("DEV-027", reaches="pod replaced")
def test_a_replaced_pod_shares_the_device_again(run: Recorded[DevicesSharedInEachWay]) -> None: ...


@requirement("DEV-028")
def test_a_claim_is_kept_when_a_pod_is_replaced(run: Recorded[DevicesSharedInEachWay]) -> None:
    before, after = (_live_claims(run.at(step)) for step in ("set is ready", "pod replaced"))
    run.expect("claims by uid after a pod was replaced", before, after)


@requirement("DEV-029", reaches=("claims of removed replicas deleted", "claims of the deleted set deleted"))
def test_claims_go_with_what_shares_them(run: Recorded[DevicesSharedInEachWay]) -> None: ...


@requirement("DEV-030", reaches=("devices of removed replicas free", "devices of the deleted set free"))
def test_devices_are_free_once_their_pods_are_gone(run: Recorded[DevicesSharedInEachWay]) -> None: ...


@requirement("DEV-031", reaches="devices of the terminated set free")
def test_a_terminated_gang_holds_no_device(run: Recorded[DevicesSharedInEachWay]) -> None: ...


@requirement("DEV-005", reaches="terminated set bound again")
def test_a_terminated_set_gets_devices_again(run: Recorded[DevicesSharedInEachWay]) -> None: ...


test_invariants = invariants(DevicesSharedInEachWay, "INV-010")


@predicate
def are_deleted(view: View, names: Collection[str]) -> bool | Unmet:
    """Return whether each of these claims is gone, or on its way."""
    rest = sorted(names & _live_claims(view).keys())
    return not rest or Unmet(f"not deleted: {', '.join(rest)}")


def _live_claims(view: View) -> dict[str, str]:
    """Return the uids of the claims that are not being deleted, by name."""
    return {name(claim): uid(claim) for claim in view.list(CLAIMS) if not terminating(claim)}
