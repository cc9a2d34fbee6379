"""Tests with two kinds of hardware in a cluster. Each kind has its own ClusterTopologyBinding for the same domains."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.grove.expected import ExpectedClique, expected
from conformance.grove.fields import label, name, text
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.observed import all_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, requirement
from conformance.testing.topology_bindings import topology_binding

GPU_TYPES = ("hopper", "grace")
"""The names of the sets, which are also the prefixes of the label keys on the nodes where the sets belong."""
NODES_PER_TYPE, NODES_PER_RACK = 6, 3


class SetsOfTwoBindings(Scene):
    """Twelve trays, six for each kind of hardware. Their labels for the block and the rack have keys that depend on the
    kind. A rack has three trays. Each set needs three trays in one rack of its kind. Without a constraint, any three
    trays would be sufficient."""

    def play(self, env: SceneEnvironment) -> None:
        nodes = env.nodes("gb200-nvl72", 2 * NODES_PER_TYPE)
        self.keys = {kind: _label_keys(kind) for kind in GPU_TYPES}
        for place, node in enumerate(nodes):
            keys, index = self.keys[GPU_TYPES[place % 2]], place // 2
            values = {keys["block"]: "b0", keys["rack"]: f"r{index // NODES_PER_RACK}"}
            env.patch("nodes", node, {"metadata": {"labels": values}})
        bindings = {kind: f"{env.namespace}-{kind}" for kind in GPU_TYPES}
        workloads = {
            kind: env.workload("nested", setName=kind, binding=binding, workers=1, decodes=2)
            for kind, binding in bindings.items()
        }
        self.cliques = {kind: list(expected(workload).cliques.values()) for kind, workload in workloads.items()}
        created = list[str]()
        try:
            for kind, binding in bindings.items():
                env.create(topology_binding(binding, self.keys[kind]))
                created.append(binding)
            for workload in workloads.values():
                env.create(workload)
            env.wait_for("both sets bound", all_of(*map(predicates.all_bound, self.cliques.values())))
            env.quiet(1)
            env.mark("at rest")
        finally:
            for binding in created:
                env.delete("clustertopologybindings", binding)


@requirement("TOPO-050", reaches="both sets bound")
def test_each_set_follows_its_own_binding(run: Recorded[SetsOfTwoBindings]) -> None:
    """A domain is the node label to which the set's binding maps it. A node without that label is not in any domain."""
    view = run.at("at rest")
    for kind, cliques in run.scene.cliques.items():
        keys = run.scene.keys[kind]
        run.expect(f"blocks of {kind}", {"b0"}, _domains(view, keys["block"], cliques))
        workers = [clique for clique in cliques if clique.group]
        racks = _domains(view, keys["rack"], workers)
        run.expect(f"racks of the worker of {kind}", [1, False], [len(racks), "" in racks])


def _label_keys(kind: str) -> dict[str, str]:
    """Return domain → node label key, from wide to narrow."""
    return {"block": f"{kind}.example.com/block", "rack": f"{kind}.example.com/rack", "host": "kubernetes.io/hostname"}


def _domains(view: View, key: str, cliques: Iterable[ExpectedClique]) -> set[str]:
    """Return the values of a label on the nodes of the cliques' pods. The value is empty for a node without the
    label."""
    values = {name(node): label(node, key) for node in view.list("nodes")}
    members = predicates.pods_by_clique(view, cliques)
    return {values.get(text(pod, "spec", "nodeName"), "") for pods in members.values() for pod in pods}
