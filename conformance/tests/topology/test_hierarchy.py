"""From the constraints of a set at three levels to the racks and hosts of its pods, on NVL72 racks."""

from __future__ import annotations

from collections.abc import Iterable

from conformance.grove import labels
from conformance.grove.expected import Clique, expected
from conformance.grove.fields import label, name, text
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import predicates
from conformance.testing.topology_bindings import topology_binding

KEYS = {"block": "kubernetes.io/block", "rack": "kubernetes.io/rack", "host": "kubernetes.io/hostname"}
"""Domain → node label key, from wide to narrow."""


@requirements("TOPO-050", "TOPO-051")
def test_hierarchical_topology_at_three_levels(case: Case) -> None:
    # Two racks of 18 trays. A worker takes ten, so that a rack has room for one, and eight trays are left in each; a
    # replica of the second set takes five of these.
    case.nodes("gb200-nvl72", 36)
    binding = case.namespace
    case.create(topology_binding(binding, KEYS))
    try:
        first = case.workload("nested", setName="first", binding=binding, workers=2, decodes=9)
        wanted = expected(first)
        case.create(first)
        cliques = list(wanted.cliques.values())
        case.until(
            ("TOPO-050", "TOPO-051"), "all workers are bound, each in a rack of its own", predicates.all_bound(cliques)
        )
        view, based = case.quiet(1), [clique for clique in cliques if not clique.base_gang]
        case.expect("TOPO-050", "blocks of the set's replica", 1, len(_domains(view, "block", based)))
        for worker in ("0", "1"):
            own = [clique for clique in cliques if clique.labels.get(labels.GROUP_INDEX) == worker]
            case.expect("TOPO-050", f"racks of worker {worker}", 1, len(_domains(view, "rack", own)))
            prefill = [clique for clique in own if clique.template.name == "prefill"]
            case.expect("TOPO-050", f"hosts of the prefill pods of worker {worker}", 1,
                        len(_domains(view, "host", prefill)))  # fmt: skip
        case.expect("TOPO-051", "racks of the workers", 2, len(_domains(view, "rack", [c for c in cliques if c.group])))

        second = case.workload(
            "nested", setName="second", binding=binding, outer="rack", replicas=2, workers=1, decodes=4
        )
        cliques = list(expected(second).cliques.values())
        case.create(second)
        case.until("TOPO-051", "both replicas are bound, each in a rack of its own", predicates.all_bound(cliques))
        view = case.quiet(1)
        for replica in (0, 1):
            own = [clique for clique in cliques if clique.set_index == replica]
            case.expect("TOPO-051", f"racks of replica {replica}", 1, len(_domains(view, "rack", own)))
        case.expect("TOPO-051", "racks of the replicas", 2, len(_domains(view, "rack", cliques)))
    finally:
        case.delete("clustertopologybindings", binding)


def _domains(view: View, domain: str, cliques: Iterable[Clique]) -> set[str]:
    """The domains that the pods of cliques are in."""
    nodes = {name(node): label(node, KEYS[domain]) for node in view.list("nodes")}
    found = predicates.by_clique(view, cliques)
    return {nodes.get(text(pod, "spec", "nodeName"), "") for pods in found.values() for pod in pods}
