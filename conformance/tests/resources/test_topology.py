"""Topology constraints: from the domains of the set to the node labels of its gangs, and away again."""

from __future__ import annotations

from conformance.grove import expected_topology, labels
from conformance.grove.expected import Expected, expected
from conformance.grove.expected_topology import Levels
from conformance.grove.fields import Document, at, condition, text
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import observed, predicates
from conformance.testing.comparison import of, same

LEVELS = {"zone": "example.com/zone", "rack": "example.com/rack", "host": "example.com/host"}
"""Domain → node label key, from wide to narrow."""
LOOKS = 8
"""How often the operator looks at a set: a random order of two domains is the same each time once in 128 runs."""


@requirements("RES-060", "RES-061", "RES-062", "RES-063", "RES-064", "RES-065", "RES-066", "RES-092")
def test_constraints_follow_the_binding_of_their_set(case: Case) -> None:
    binding = case.namespace  # a binding is of the whole cluster: no other test may have this name
    workload = case.workload("packed", binding=binding)
    wanted = expected(workload)
    case.create(topology_binding(binding, LEVELS))
    try:
        case.create(workload)
        case.create(case.workload("frontend", setName="free"))
        case.until("RES-060", "the gangs exist", observed.there("podgangs", wanted.gangs))
        view = case.settled("the gangs are constrained", _placed(workload, wanted, LEVELS, binding))
        _check(case, "RES-060", workload, wanted, LEVELS, view)
        loose = expected_topology.seen(view.get("podgangs", "p-0-loose-0")).gang
        case.expect(
            "RES-062", "constraint of a scaled gang of an unconstrained group", {"required": LEVELS["zone"]}, loose
        )
        same(case, "RES-061", "the binding that gangs name", dict.fromkeys(wanted.gangs, binding), _named(wanted, view))
        told = _condition("False", "AllClusterTopologyLevelsAvailable")
        case.eventually("RES-065", "the set says that all levels are there", told)
        told = _condition("False", "AllClusterTopologyLevelsAvailable", of="free")
        case.eventually("RES-066", "a set without constraints says that none is missing", told)

        observed.rest(case, wanted)  # nothing but the binding is to make the operator look at the set
        fewer = {domain: key for domain, key in LEVELS.items() if domain != "rack"}
        case.patch("clustertopologybindings", binding, {"spec": _spec(fewer)})
        told = _condition("True", "ClusterTopologyLevelsUnavailable")
        case.eventually("RES-065", "the set says that a level is no more", told)
        view = case.settled("the gangs have lost it", _placed(workload, wanted, fewer, binding))
        _check(case, "RES-063", workload, wanted, fewer, view)
        _several_missing(case, binding)
    finally:
        case.delete("clustertopologybindings", binding)
    told = _condition("Unknown", "ClusterTopologyNotFound")
    case.eventually("RES-065", "the set says that the binding is no more", told)
    view = case.settled("the gangs are free", _placed(workload, wanted, {}, ""))
    _check(case, "RES-064", workload, wanted, {}, view)
    same(case, "RES-061", "the binding that free gangs name", dict.fromkeys(wanted.gangs, ""), _named(wanted, view))


def _several_missing(case: Case, binding: str) -> None:
    """Two levels are missing, and the operator looks at the set again and again."""
    case.patch("clustertopologybindings", binding, {"spec": _spec({"zone": LEVELS["zone"]})})
    told, other = (_condition("True", "ClusterTopologyLevelsUnavailable", domain) for domain in ("rack", "host"))
    case.settled("the set names both levels, in whatever words", observed.all_of(told, other))
    since = case.history.mark()
    for hours in range(5, 5 + LOOKS):
        case.patch("podcliquesets", "p", {"spec": {"template": {"terminationDelay": f"{hours}h0m0s"}}})
        case.settled("the operator has looked at the set", _observed("p"), 5)
    records = case.history.records("podcliquesets", "p", since=since)
    messages = {text(condition(record.object, "TopologyLevelsUnavailable"), "message") for record in records}
    first = sorted(messages)[:1]
    case.expect("RES-092", "messages about the same missing levels", first, sorted(messages))


def topology_binding(binding: str, levels: Levels) -> Object:
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": binding},
        "spec": _spec(levels),
    }


def _spec(levels: Levels) -> Object:
    return {"levels": [{"domain": domain, "key": key} for domain, key in levels.items()]}


def _placed(workload: Document, wanted: Expected, levels: Levels, binding: str) -> predicates.Predicate:
    right = expected_topology.placements(workload, wanted, levels)

    def seen(view: View) -> bool:
        constrained = {gang: expected_topology.seen(view.get("podgangs", gang)) for gang in right} == right
        return constrained and set(_named(wanted, view).values()) == {binding}

    return seen


def _named(wanted: Expected, view: View) -> dict[str, str]:
    """The binding that each gang names."""
    return {gang: observed.annotation(view.get("podgangs", gang), labels.TOPOLOGY) for gang in wanted.gangs}


def _check(case: Case, id: str, workload: Document, wanted: Expected, levels: Levels, view: View) -> None:
    for gang, right in expected_topology.placements(workload, wanted, levels).items():
        found = view.get("podgangs", gang)
        case.expect(id, f"constraints of {gang}", right, of(found, expected_topology.seen(found)))


def _observed(of: str) -> predicates.Predicate:
    def seen(view: View) -> bool:
        found = view.get("podcliquesets", of)
        return at(found, "status", "observedGeneration") == at(found, "metadata", "generation")

    return seen


def _condition(status: str, reason: str, word: str = "", of: str = "p") -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = condition(view.get("podcliquesets", of), "TopologyLevelsUnavailable")
        told = (text(found, "status"), text(found, "reason"))
        if told == (status, reason) and word in text(found, "message"):
            return True
        return Unmet(f"TopologyLevelsUnavailable is {told}: {text(found, 'message')}")

    return seen
