"""Resource claims in time: templates that come late, and claims of pods that outlive a scale-in."""

from __future__ import annotations

from conformance.grove import expected_pods, names, pods
from conformance.grove.expected import expected
from conformance.grove.fields import at, name
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import observed, predicates
from conformance.tests.resources.test_furnished_set import OTHER_SPEC, claim_template


@requirements("RES-042", "RES-045")
def test_a_claim_waits_for_a_template_that_is_not_there(case: Case) -> None:
    workload = case.workload("borrowing")
    wanted = expected(workload)
    cliques = list(wanted.cliques.values())
    case.create(workload)
    _works_on(case, "first")
    made = [clique.name for clique in cliques if case.history.view().get("podcliques", clique.name) is not None]
    case.expect("RES-045", "cliques of a set that lacks the template of the set", [], made)

    case.create(claim_template("set-template", OTHER_SPEC))
    case.until("RES-045", "the cliques come with the template of the set", observed.there("podcliques", wanted.cliques))
    _works_on(case, "second")
    view = case.quiet(1)
    made_pods = {clique.name: len(predicates.pods_of(view, clique.name)) for clique in cliques}
    case.expect("RES-045", "pods of a clique that lacks its own template", dict.fromkeys(made_pods, 0), made_pods)

    case.create(claim_template("clique-template", OTHER_SPEC))
    case.until("RES-045", "the pods come with the template of the clique", predicates.all_exist(cliques))
    claims = ("borrowing-all-set-template", "borrowing-0-web-all-clique-template")
    view = case.settled("the claims exist", observed.there("resourceclaims", claims))
    for claim in claims:
        seen = expected_pods.kept(OTHER_SPEC, at(view.get("resourceclaims", claim), "spec"))
        case.expect("RES-042", f"the spec of {claim}", OTHER_SPEC, seen)


def _works_on(case: Case, set_name: str) -> None:
    """Waits for a set that lacks nothing: it proves that the operator is at work and has passed the other one by."""
    later = case.workload("frontend", setName=set_name)
    case.create(later)
    case.until(
        "RES-045",
        "a set that lacks nothing gets its pods",
        predicates.all_exist(list(expected(later).cliques.values())),
    )


@requirements("RES-046")
def test_a_pod_keeps_its_claim_when_its_clique_shrinks(case: Case) -> None:
    workload = case.workload("furnished", fronts=3, groupReplicas=1)
    case.create(workload)
    clique = expected(workload).cliques["p-0-fe"]
    case.until("RES-046", "all pods exist", predicates.all_exist([clique]))
    claims = [names.replica_claim(clique.name, index, "gpu") for index in range(3)]
    case.until("RES-046", "and their claims", observed.there("resourceclaims", claims))
    case.quiet(1)
    # The pod of index 0 is the only one that is not ready, so that it is the one that goes. Nobody schedules them.
    for pod in predicates.pods_of(case.history.view(), clique.name):
        if expected_pods.index(pod) != 0:
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            case.patch("pods", name(pod), {"status": {"conditions": [ready]}}, subresource="status")
    case.settled("two pods are ready", _ready(clique.name, 2))
    case.patch("podcliques", clique.name, {"spec": {"replicas": 2}}, subresource="scale")
    case.until("RES-046", "a pod goes", _left(clique.name, 2))
    view = case.quiet(2)
    for pod in predicates.pods_of(view, clique.name):
        index = expected_pods.index(pod)
        own = names.replica_claim(clique.name, -1 if index is None else index, "gpu")
        case.expect("RES-046", f"the claim {own} of {name(pod)}", True, view.get("resourceclaims", own) is not None)
        lost = [claim for claim in observed.claims_of_pod(pod) if view.get("resourceclaims", claim) is None]
        case.expect("RES-046", f"claims that {name(pod)} has lost", [], lost)


def _ready(clique: str, count: int) -> predicates.Predicate:
    return lambda view: sum(map(pods.ready, predicates.pods_of(view, clique))) == count


def _left(clique: str, count: int) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        left = len(predicates.pods_of(view, clique))
        return left == count or Unmet(f"{left} pods are left, not {count}")

    return seen
