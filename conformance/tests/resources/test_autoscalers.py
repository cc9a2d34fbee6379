"""Who owns replicas once something scales: not the operator."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from conformance.grove.expected import expected
from conformance.grove.fields import items, name, number, text
from conformance.grove.selectors import normal
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import observed, predicates
from conformance.testing.comparison import same
from conformance.tests.resources.test_secondary import trigger

SCALERS = "horizontalpodautoscalers"


def _published(pcs: str, groups: list[str], cliques: list[str]) -> predicates.Predicate:
    """All of these say in their status which pods are theirs."""

    def seen(view: View) -> bool:
        own = [("podcliquesets", pcs, "hpaPodSelector")]
        own += [("podcliquescalinggroups", group, "selector") for group in groups]
        own += [("podcliques", clique, "hpaPodSelector") for clique in cliques]
        return all(text(view.get(resource, found), "status", field) for resource, found, field in own)

    return seen


@requirements("RES-032", "RES-033", "RES-034", "RES-047", "CORE-013")
def test_replicas_belong_to_whoever_scales(case: Case) -> None:
    workload = case.workload("furnished", replicas=2)
    case.create(workload)
    case.until("RES-032", "all pods exist", predicates.all_exist(list(expected(workload).cliques.values())))
    case.until("RES-033", "the autoscalers exist", observed.there(SCALERS, ["p-0-fe", "p-1-fe", "p-0-sg", "p-1-sg"]))
    wanted = expected(workload)
    case.settled("the selectors are published", _published(name(workload), [*wanted.groups], ["p-0-fe"]))
    selectors = {"p-0-fe": wanted.cliques["p-0-fe"].selector, "p-0-sg": wanted.groups["p-0-sg"].selector}
    selectors[name(workload)] = wanted.selector
    scales = {
        "p-0-fe": case.patch("podcliques", "p-0-fe", {"spec": {"replicas": 3}}, subresource="scale"),
        "p-0-sg": case.patch("podcliquescalinggroups", "p-0-sg", {"spec": {"replicas": 4}}, subresource="scale"),
        name(workload): case.patch("podcliquesets", name(workload), {"spec": {"replicas": 2}}, subresource="scale"),
    }
    told = {found: normal(text(scale, "status", "selector")) for found, scale in scales.items()}
    right = {found: normal(selector) for found, selector in selectors.items()}
    same(case, "CORE-013", "selectors in the scale subresource", right, told)
    case.until("RES-032", "the scaled clique gets its pods", _pods({"p-0-fe": 3}))
    members = {"p-0-sg-3-ld": 1, "p-0-sg-3-wk": 2}
    case.until("RES-032", "the scaled group gets its cliques and pods", _pods(members))
    gangs = [f"p-0-sg-{number}" for number in range(3)]  # of the replicas 1 to 3: the first is of the base gang
    case.until("RES-032", "each scaled replica of the group has a gang", observed.there("podgangs", gangs))
    groups = [text(g, "name") for g in items(case.history.view().get("podgangs", gangs[-1]), "spec", "podgroups")]
    case.expect("RES-032", "PodGroups of the gang of the last replica", sorted(members), sorted(groups))

    # An update in an unrelated field and one of the template's own replicas: neither is a word about these replicas.
    cliques = copy.deepcopy(workload["spec"]["template"]["cliques"])
    cliques[0]["spec"]["replicas"] = 1
    change = {"spec": {"template": {"terminationDelay": "2h0m0s", "cliques": cliques}}, **trigger("1")}
    case.patch("podcliquesets", name(workload), change)
    case.until("RES-032", "the operator has seen the update", _observed(name(workload)))
    view = case.quiet(2)
    replicas = {
        "p-0-fe": observed.replicas(view.get("podcliques", "p-0-fe")),
        "p-1-fe": observed.replicas(view.get("podcliques", "p-1-fe")),
        "p-0-sg": observed.replicas(view.get("podcliquescalinggroups", "p-0-sg")),
    }
    case.expect("RES-032", "replicas after the update", {"p-0-fe": 3, "p-1-fe": 2, "p-0-sg": 4}, replicas)
    pods = {clique: len(predicates.pods_of(view, clique)) for clique in ("p-0-fe", *members)}
    case.expect("RES-032", "pods after the update", {"p-0-fe": 3, **members}, pods)

    del cliques[0]["spec"]["autoScalingConfig"]
    change = {"spec": {"replicas": 1, "template": {"cliques": cliques}}, **trigger("2")}
    case.patch("podcliquesets", name(workload), change)
    case.patch("podcliquescalinggroups", "p-0-sg", {"spec": {"replicas": 3}}, subresource="scale")
    what = "the autoscalers of a clique without a config, and of a replica that is no more, go"
    case.eventually("RES-033", what, observed.gone(SCALERS, ["p-0-fe", "p-1-fe", "p-1-sg"]))
    of_set = ["p-1-cache", "p-1-link", "p-1-fe-0-gpu", "p-1-sg-0-gpu", "p-1-sg-all-link"]
    what = "the claims of replicas of the set and of the scaling group that are no more go"
    case.eventually("RES-047", what, observed.gone("resourceclaims", [*of_set, "p-0-sg-3-gpu"]))
    of_set = ["p-1", "p-1-sg-0", "p-1-sg-1"]
    what = "the gangs of replicas of the set and of the scaling group that are no more go"
    case.eventually("RES-034", what, observed.gone("podgangs", [*of_set, gangs[-1]]))
    view = case.quiet(1)
    case.expect("RES-034", "gangs that are still needed", ["p-0", *gangs[:-1]], view.names("podgangs"))
    kept = ["p-0-cache", "p-0-sg-0-gpu", "p-0-sg-2-gpu", "p-0-sg-all-link", "p-all-fabric"]
    have = [claim for claim in kept if view.get("resourceclaims", claim) is not None]
    case.expect("RES-047", "claims that are still needed", kept, have)
    case.expect("RES-033", "the autoscaler that is still wanted", ["p-0-sg"], view.names(SCALERS))


def _pods(sizes: Mapping[str, int]) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        have = {clique: len(predicates.pods_of(view, clique)) for clique in sizes}
        return have == sizes or Unmet(f"pods: {have}, wanted: {dict(sizes)}")

    return seen


def _observed(set_name: str) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = view.get("podcliquesets", set_name)
        generation, told = number(found, "metadata", "generation"), number(found, "status", "observedGeneration")
        return generation == told or Unmet(f"observedGeneration is {told} of {generation}")

    return seen
