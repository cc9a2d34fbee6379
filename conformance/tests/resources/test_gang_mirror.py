"""What a gang takes over from its set, and what it keeps: labels, annotations, priority."""

from __future__ import annotations

from conformance.grove.expected import expected
from conformance.grove.fields import at, mapping, name, number, text, texts
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import observed, predicates
from conformance.testing.comparison import of
from conformance.tests.resources.test_secondary import trigger


@requirements("RES-021", "RES-022", "RES-026", "RES-027")
def test_gangs_follow_the_labels_of_their_set(case: Case) -> None:
    workload = case.workload("furnished")
    wanted = expected(workload)
    case.create(workload)
    case.until("RES-022", "the gangs exist", observed.there("podgangs", wanted.gangs))
    observed.rest(case, wanted)  # nothing but the trigger is to make the operator look at the set
    for key in ("grove.io/by-hand", "example.com/by-hand"):
        case.patch("podgangs", "p-0", {"metadata": {"annotations": {key: "x"}}})
    reservation = {"namespace": case.namespace, "name": "kept"}
    case.patch("podgangs", "p-0", {"spec": {"priorityClassName": "by-hand", "reuseReservationRef": reservation}})
    gone = {"metadata": {"labels": {"example.com/team": None, "example.com/new": "y"}, **trigger("1")["metadata"]}}
    case.patch("podcliquesets", name(workload), gone)
    given = observed.all_of(*(_labelled(gang, "new", "y") for gang in wanted.gangs))
    case.eventually("RES-022", "the gangs have the label that their set was given", given)
    by_hand = _annotated("p-0", "example.com/by-hand", "")
    lost = observed.all_of(*(_labelled(gang, "team", None) for gang in wanted.gangs), by_hand)
    case.eventually("RES-021", "the gangs have lost the label that their set has lost, and what a hand put there", lost)
    found = observed.annotation(case.history.view().get("podgangs", "p-0"), "grove.io/by-hand")
    case.expect("RES-021", "an annotation of Grove that the operator doesn't know", "x", found)

    what = "what a hand has written into a gang's spec goes"
    case.eventually("RES-026", what, lambda view: not text(view.get("podgangs", "p-0"), "spec", "priorityClassName"))
    kept = mapping(case.history.view().get("podgangs", "p-0"), "spec", "reuseReservationRef")
    case.expect("RES-026", "what the operator says nothing about", reservation, kept)

    case.patch("podcliques", "p-0-fe", {"spec": {"minAvailable": 2}})
    case.patch("podcliquescalinggroups", "p-0-sg", {"spec": {"minAvailable": 2, "cliqueNames": ["wk", "ld"]}})
    case.patch("podcliquesets", name(workload), trigger("2"))
    case.eventually("RES-027", "cliques and scaling groups follow their template again", _as_templates)


def _as_templates(view: View) -> bool | Unmet:
    """The floors of a standalone clique and of a scaling group, and its members, are those of `furnished`."""
    group = at(view.get("podcliquescalinggroups", "p-0-sg"), "spec")
    found = [number(view.get("podcliques", "p-0-fe"), "spec", "minAvailable"), number(group, "minAvailable")]
    members = texts(group, "cliqueNames")
    return (found == [1, 1] and members == ["ld", "wk"]) or Unmet(f"floors are {found}, the group has {members}")


def _labelled(gang: str, key: str, value: str | None) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = mapping(view.get("podgangs", gang), "metadata", "labels").get(f"example.com/{key}")
        return found == value or Unmet(f"its value on {gang} is {found!r}")

    return seen


def _annotated(gang: str, key: str, value: str) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = observed.annotation(view.get("podgangs", gang), key)
        return found == value or Unmet(f"its value on {gang} is {found!r}")

    return seen


@requirements("RES-024", "RES-025")
def test_the_priority_class_of_a_set_is_that_of_its_gangs_and_pods(case: Case) -> None:
    workload = case.workload("frontend", setName="urgent")
    # Every cluster has this class, and pods of any namespace may have it.
    workload["spec"]["template"]["priorityClassName"] = "system-cluster-critical"
    wanted = expected(workload)
    case.create(workload)
    case.until("RES-025", "all pods exist", predicates.all_exist(list(wanted.cliques.values())))
    view = case.quiet(1)
    classes = {
        gang: of(found := view.get("podgangs", gang), text(found, "spec", "priorityClassName")) for gang in wanted.gangs
    }
    case.expect("RES-024", "classes of the gangs", dict.fromkeys(wanted.gangs, "system-cluster-critical"), classes)
    pods = [pod for clique in wanted.cliques for pod in predicates.pods_of(view, clique)]
    of_pods = {text(pod, "spec", "priorityClassName") for pod in pods}
    case.expect("RES-025", "classes of the pods", ["system-cluster-critical"], sorted(of_pods))
