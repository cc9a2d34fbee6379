"""Which pods of a clique go when it is scaled in."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from conformance.grove import health, labels
from conformance.grove.fields import label, name, uid
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import disruption, predicates
from conformance.testing.comparison import same
from conformance.testing.disruption import CLIQUES, SERVING
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are, scale

NAMES = ("assigned", "aged", "outdated", "phased", "leaving")
UNREADY: Mapping[str, Any] = {"phase": "Running", "containers": {"started": True}}
STATES: Mapping[str, list[Mapping[str, Any]]] = {
    "assigned": [UNREADY, SERVING, SERVING],
    "phased": [UNREADY, {**SERVING, "phase": "Unknown"}, {**SERVING, "phase": "Pending"}],
}


@requirements("SCALE-010", "SCALE-011", "SCALE-012", "INV-001", "INV-004", "INV-005")
def test_those_pods_go_that_serve_least(case: Case) -> None:
    nodes = case.nodes("tiny", 1)
    case.create(workload_of(case))
    cliques = {each: f"v-0-{each}" for each in NAMES}
    case.until("SCALE-010", "all pods are bound", disruption.bound(dict.fromkeys(cliques.values(), 3)))
    for each, clique in cliques.items():
        states(case, clique, STATES.get(each, [SERVING] * 3))
    # The first pod becomes the youngest, and of another clique the oldest is of another template.
    case.quiet(1.2, real=True)
    first = {each: disruption.by_index(case, clique)[0] for each, clique in cliques.items()}
    case.delete("pods", name(first["aged"]))
    case.until(
        "SCALE-010", "a pod that was deleted is replaced", pods_are({cliques["aged"]: 3}, but=uid(first["aged"]))
    )
    case.until("SCALE-010", "its successor is bound", disruption.bound({cliques["aged"]: 3}))
    disruption.become(case, cliques["aged"], SERVING, 1)
    case.patch("pods", name(first["outdated"]), {"metadata": {"labels": {labels.TEMPLATE_HASH: "another"}}})
    disruption.cordon(case, nodes)
    scale(case, CLIQUES, cliques["assigned"], 4)
    case.until("SCALE-010", "a pod too many for the nodes is made", pods_are({cliques["assigned"]: 4}))
    case.quiet(1)
    before = {each: uids(case, clique) for each, clique in cliques.items()}

    # One pod is going, and the operator learns of it together with its clique's new size.
    case.roles.kill("operator")
    case.patch("pods", name(first["leaving"]), {"metadata": {"annotations": {health.HOLD_DELETION: "yes"}}})
    case.delete("pods", name(first["leaving"]))
    for clique in cliques.values():
        scale(case, CLIQUES, clique, 2)
    case.roles.restart("operator")
    what = "each clique has as many pods as it is to have"
    case.until("SCALE-010", what, pods_are(dict.fromkeys(cliques.values(), 2)))
    case.quiet(1)
    right = {"assigned": "12", "aged": "12", "outdated": "12", "phased": "01"}
    stayed = {each: {index: before[each][index] for index in indices} for each, indices in right.items()}
    same(case, "SCALE-010", "pods that stay", stayed, {each: uids(case, cliques[each]) for each in right})
    leaving = {index: before["leaving"][index] for index in "12"}
    case.expect("SCALE-011", "pods beside the one that was going", leaving, uids(case, cliques["leaving"]))
    case.patch("pods", name(first["leaving"]), {"metadata": {"annotations": {health.HOLD_DELETION: None}}})

    scale(case, CLIQUES, cliques["phased"], 1)
    disruption.cordon(case, nodes, off=True)
    scale(case, CLIQUES, cliques["aged"], 3)
    sizes = {cliques["phased"]: 1, cliques["aged"]: 3}
    case.eventually("SCALE-012", "each clique has as many pods as it is to have", all_of(pods_are(sizes)))
    remaining = {"0": before["phased"]["0"]}
    case.expect("SCALE-010", "the pod that stays last", remaining, uids(case, cliques["phased"]))
    case.expect("SCALE-012", "indices after one more", ["0", "1", "2"], sorted(uids(case, cliques["aged"])))


def workload_of(case: Case) -> Object:
    """One set with a clique for each case; nothing is updated, whatever pods say of their template."""
    workload = case.workload("waiting", setName="v", pods=3)
    workload["spec"]["updateStrategy"] = {"type": "OnDelete"}
    cliques = workload["spec"]["template"]["cliques"]
    [pattern] = cliques
    cliques.clear()
    for each in NAMES:
        clique = copy.deepcopy(pattern)
        clique["name"] = clique["spec"]["roleName"] = each
        cliques.append(clique)
    return workload


def states(case: Case, clique: str, wanted: list[Mapping[str, Any]]) -> None:
    for pod, state in zip(disruption.by_index(case, clique), wanted, strict=False):
        case.patch("pods", name(pod), health.status(pod, state), subresource="status")


def uids(case: Case, clique: str) -> dict[str, str]:
    """Index → uid of the pods of a clique."""
    return {label(pod, labels.POD_INDEX): uid(pod) for pod in predicates.pods_of(case.history.view(), clique)}
