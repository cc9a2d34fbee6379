"""Tests on NVL72 racks of topology constraints at three levels of a set, down to the racks and hosts of its pods."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.grove import labels, pods
from conformance.grove.expected import ExpectedClique, expected
from conformance.grove.fields import label, name, text
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import predicates
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.topology_bindings import topology_binding

KEYS = {"block": "kubernetes.io/block", "rack": "kubernetes.io/rack", "host": "kubernetes.io/hostname"}
"""Domain → node label key, from wide to narrow."""


class SetsWithConstraintsAtThreeLevels(Scene):
    """Two racks of 18 trays. In each rack, half of one tray is taken by another pod. A worker of the first set takes
    ten trays, so a rack has room for only one worker, and seven and a half trays remain. A replica of the second set
    takes five of the remaining trays."""

    def play(self, env: SceneEnvironment) -> None:
        trays = env.nodes("gb200-nvl72", 36)
        for tray in (trays[0], trays[18]):  # a scheduler that packs pods would place one of the two prefill pods here
            env.create(_half_tray_pod(tray))
        env.wait_for("half trays taken", _are_half_trays_used)
        binding = env.namespace
        env.create(topology_binding(binding, KEYS))
        try:
            first = env.workload("nested", setName="first", binding=binding, workers=2, decodes=9)
            self.first = list(expected(first).cliques.values())
            env.create(first)
            env.wait_for("workers of the first set bound", predicates.all_bound(self.first))
            env.quiet(1)
            env.mark("first set at rest")

            sizes = {"replicas": 2, "workers": 1, "decodes": 4}
            second = env.workload("nested", setName="second", binding=binding, outer="rack", **sizes)
            self.second = list(expected(second).cliques.values())
            env.create(second)
            env.wait_for("replicas of the second set bound", predicates.all_bound(self.second))
            env.quiet(1)
            env.mark("second set at rest")
        finally:
            env.delete("clustertopologybindings", binding)


@requirement("TOPO-050")
def test_pods_run_where_each_level_says(run: Recorded[SetsWithConstraintsAtThreeLevels]) -> None:
    run.given("workers of the first set bound")
    view, cliques = run.at("first set at rest"), run.scene.first
    based = [clique for clique in cliques if not clique.base_gang]
    run.expect("blocks of the set's replica", 1, len(_domains(view, "block", based)))
    for worker in ("0", "1"):
        worker_cliques = [clique for clique in cliques if clique.labels.get(labels.GROUP_INDEX) == worker]
        run.expect(f"racks of worker {worker}", 1, len(_domains(view, "rack", worker_cliques)))


@requirement("TOPO-054")
def test_pods_of_a_clique_run_in_one_domain(run: Recorded[SetsWithConstraintsAtThreeLevels]) -> None:
    run.given("workers of the first set bound")
    for prefill in (clique for clique in run.scene.first if clique.template.name == "prefill"):
        hosts = _domains(run.at("first set at rest"), "host", [prefill])
        run.expect(f"hosts of the pods of {prefill.name}", 1, len(hosts))


@requirement("TOPO-050")
def test_pods_of_a_replica_run_in_one_rack(run: Recorded[SetsWithConstraintsAtThreeLevels]) -> None:
    """The second set requires that each of its replicas is placed in one rack."""
    run.given("replicas of the second set bound")
    for replica in (0, 1):
        replica_cliques = [clique for clique in run.scene.second if clique.set_index == replica]
        run.expect(
            f"racks of replica {replica}", 1, len(_domains(run.at("second set at rest"), "rack", replica_cliques))
        )


@requirement("TOPO-051", reaches=("workers of the first set bound", "replicas of the second set bound"))
def test_domains_of_replicas_are_independent(run: Recorded[SetsWithConstraintsAtThreeLevels]) -> None:
    """No rack has room for both workers of the first set, or for both replicas of the second set."""
    run.given("workers of the first set bound")
    workers = [clique for clique in run.scene.first if clique.group]
    run.expect("racks of the workers", 2, len(_domains(run.at("first set at rest"), "rack", workers)))
    run.given("replicas of the second set bound")
    run.expect("racks of the replicas", 2, len(_domains(run.at("second set at rest"), "rack", run.scene.second)))


def _half_tray_pod(tray: str) -> Object:
    """Return a pod that takes half of a tray's GPUs."""
    resources = {"limits": {"nvidia.com/gpu": "2"}}
    container = {"name": "main", "image": "registry.example/other:1", "resources": resources}
    metadata = {"name": f"other-{tray}"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": tray, "containers": [container]},
    }


def _are_half_trays_used(view: View) -> bool:
    """The two pods that take half a tray are Ready."""
    return sum(map(pods.is_ready, view.list("pods"))) == 2


def _domains(view: View, domain: str, cliques: Iterable[ExpectedClique]) -> set[str]:
    """Return the domains of the nodes on which the cliques' pods run."""
    nodes = {name(node): label(node, KEYS[domain]) for node in view.list("nodes")}
    members = predicates.pods_by_clique(view, cliques)
    return {nodes.get(text(pod, "spec", "nodeName"), "") for clique_pods in members.values() for pod in clique_pods}
