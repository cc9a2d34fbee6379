"""Tests of replicas with automatic multi-node NVLink on nodes that serve their ComputeDomains."""

from __future__ import annotations

from conformance.grove import expected_domains, labels, pods
from conformance.grove.expected import expected
from conformance.suite.scenes.api import Object
from conformance.testing import devices, predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement


class ReplicasOnNodesWithFabric(Scene):
    """Four nodes with four GPUs each. A set has two replicas of two pods, each of which needs one GPU; the pods of a
    replica are in one ComputeDomain. The second replica is removed. Then another set needs the two nodes that it had,
    because each node serves one ComputeDomain."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("gb200-nvl72", 4, gpus="devices")
        self.linked, self.later = _linked_set(env, "linked", 2), _linked_set(env, "later", 1)
        (self.removed,) = (domain for domain in expected_domains.domains(self.linked) if "-1-" in domain)
        env.create(self.linked)
        env.settle("both replicas are ready", predicates.is_available("linked", 2), 60)
        nodes = devices.nodes_of_domain(env.quiet(1), self.removed)
        env.mark("replicas placed")
        env.patch("podcliquesets", "linked", {"spec": {"replicas": 1}})
        env.settle("domain of the removed replica is gone", devices.is_unserved(self.removed, nodes), 60)
        env.create(self.later)
        env.settle("later set is ready", predicates.is_available("later", 1), 60)
        env.quiet(1)
        env.mark("later set placed")


@requirement("DEV-032", reaches=("both replicas are ready", "later set is ready"))
def test_a_node_serves_the_domain_of_one_replica(run: Recorded[ReplicasOnNodesWithFabric]) -> None:
    for step, workload in (("replicas placed", run.scene.linked), ("later set placed", run.scene.later)):
        view = run.at(step)
        for clique in expected(workload).cliques.values():
            domain = expected_domains.clique_domain(workload, clique)
            nodes = {pods.node(pod) for pod in predicates.pods_of(view, clique.name)}
            run.expect(f"nodes of {domain}, as those of its replica", nodes, devices.nodes_of_domain(view, domain))
    domains = [*expected_domains.domains(run.scene.linked), *expected_domains.domains(run.scene.later)]
    run.always("no node has pods of two ComputeDomains", devices.are_apart(domains), until="later set placed")


@requirement("DEV-034", reaches="domain of the removed replica is gone")
def test_a_domain_goes_with_its_replica(run: Recorded[ReplicasOnNodesWithFabric]) -> None:
    """The domain of the replica that is left stays, with its nodes."""
    run.given("both replicas are ready")
    (domain,) = set(expected_domains.domains(run.scene.linked)) - {run.scene.removed}
    before, after = (devices.nodes_of_domain(run.at(step), domain) for step in ("replicas placed", "later set placed"))
    run.expect(f"nodes of {domain} once the other replica is removed", before, after)


test_invariants = invariants(ReplicasOnNodesWithFabric, "INV-003", "INV-010")


def _linked_set(env: SceneEnvironment, set_name: str, replicas: int) -> Object:
    """Return a set whose pods need one GPU each, and are in one multi-node NVLink group."""
    workload = env.workload("frontend", setName=set_name, replicas=replicas, pods=2, gpus=1)
    workload["metadata"]["annotations"] = {labels.MNNVL: "wide"}
    return workload
