"""Names that are alike: cliques with a common ending, and sets whose objects would be called the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.grove import labels
from conformance.grove.expected import Clique, expected
from conformance.grove.fields import condition_is, controller, items, number, text
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import observed, predicates
from conformance.testing.comparison import same
from conformance.testing.services import headless_services

TIER = "example.com/tier"
"""A label of a template of the workload `namesakes`."""


@requirements("RES-050", "CORE-006")
def test_a_clique_is_made_from_the_template_of_its_whole_name(case: Case) -> None:
    workload = case.workload("namesakes")
    wanted = expected(workload)
    case.create(workload)
    case.until("RES-050", "every clique exists", observed.there("podcliques", wanted.cliques))
    every = (predicates.all_exist(list(wanted.cliques.values())), observed.there("services", wanted.services))
    view = case.settled("all pods and Services exist", observed.all_of(*every))
    right = {clique.name: _from_template(clique) for clique in wanted.cliques.values()}
    seen = {found: _seen(view, found) for found in right}
    same(case, "RES-050", "cliques, and the images of their pods", right, seen)
    same(case, "CORE-006", "headless Services", *headless_services(wanted, view))


def _from_template(clique: Clique) -> dict[str, object]:
    return {
        "replicas": clique.template.replicas,
        "minAvailable": clique.template.floor,
        "roleName": clique.template.role,
        TIER: clique.labels.get(TIER, ""),
        "images": [text(container, "image") for container in items(clique.template.pod_spec, "containers")],
    }


def _seen(view: View, clique: str) -> dict[str, object]:
    found, pods = view.get("podcliques", clique), predicates.pods_of(view, clique)
    return {
        "replicas": number(found, "spec", "replicas"),
        "minAvailable": number(found, "spec", "minAvailable"),
        "roleName": text(found, "spec", "roleName"),
        TIER: text(found, "metadata", "labels", TIER),
        "images": sorted({text(c, "image") for pod in pods for c in items(pod, "spec", "containers")}),
    }


@requirements("RES-053")
def test_names_as_long_as_admission_lets_them_be_work(case: Case) -> None:
    # The names of set, scaling group and clique have 45 characters together (OBJ-120).
    workload = case.workload("chain", setName="n" * 41, startup="CliqueStartupTypeAnyOrder")
    wanted = expected(workload)
    case.create(workload)
    case.until("RES-053", "all pods exist", predicates.all_exist(list(wanted.cliques.values())))
    view = case.history.view()
    for clique in wanted.cliques:
        hosts = sorted(text(pod, "spec", "hostname") for pod in predicates.pods_of(view, clique))
        right = [f"{clique}-{index}" for index in range(len(hosts))]
        case.expect("RES-053", f"host names of {clique}", right, hosts)
        case.expect("RES-053", f"host names of {clique} that no label can hold", [], [h for h in hosts if len(h) > 63])


@requirements("RES-051")
def test_two_sets_whose_gangs_would_have_one_name_leave_each_other_alone(case: Case) -> None:
    # The first scaled gang of the group `b` of set `a` is called like the base gang of set `a-0-b` (OBJ-123).
    first = case.workload("namesakes", setName="a")
    first["spec"]["template"]["podCliqueScalingGroups"][0]["name"] = "b"
    second = case.workload("frontend", setName="a-0-b")
    contested = "a-0-b-0"
    case.create(first)
    case.until("RES-051", "the gang of the first set exists", observed.there("podgangs", [contested]))
    before = case.quiet(1)
    if not _refused(case, "RES-051", second):
        case.create(second)
        case.eventually("RES-051", "the second set reports an error", observed.complains("a-0-b"))
    view = case.quiet(1)
    seen = {
        "owner": text(controller(view.get("podgangs", contested)), "name"),
        "part of": text(view.get("podgangs", contested), "metadata", "labels", labels.PART_OF),
        "groups": _groups(view, contested),
    }
    right = {"owner": "a", "part of": "a", "groups": _groups(before, contested)}
    case.expect("RES-051", f"the contested gang {contested}", right, seen)


@requirements("RES-052")
def test_two_cliques_of_one_name_do_not_pass_in_silence(case: Case) -> None:
    # The standalone clique is called like the `leader` of the scaling group's first replica (OBJ-123).
    workload = case.workload("namesakes")
    cliques = workload["spec"]["template"]["cliques"]
    worker = next(clique for clique in cliques if clique["name"] == "worker")
    # It has as many pods, so that whoever takes the one for the other finds nothing amiss.
    cliques.append({"name": "sg-0-leader", "spec": {**worker["spec"], "roleName": "namesake", "replicas": 2}})
    workload["spec"]["template"]["podCliqueScalingGroups"][0]["replicas"] = 1
    if _refused(case, "RES-052", workload):
        return
    case.nodes("dgx-h100", 1)
    case.create(workload)
    contested = "alike-0-sg-0-leader"
    case.until("RES-052", "one of the two exists", observed.there("podcliques", [contested]))
    case.eventually("RES-052", "set or scaling group reports an error", _one_complains("alike", "alike-0-sg"))
    others = [clique for clique in expected(workload).cliques if clique != contested]
    view = case.settled("the other cliques of the set exist", observed.there("podcliques", others))
    made = [clique for clique in others if view.get("podcliques", clique) is not None]
    case.expect("RES-052", "the other cliques of the set", others, made)
    case.settled("the pods of the other cliques are Ready", _ready(others))
    available = number(case.quiet(2).get("podcliquesets", "alike"), "status", "availableReplicas")
    case.expect("RES-052", "available replicas of a set that lacks a clique", 0, available or 0)


@requirements("RES-054")
def test_two_autoscalers_of_one_name_do_not_pass_in_silence(case: Case) -> None:
    # A standalone clique and a scaling group of one name would share one HorizontalPodAutoscaler (OBJ-123).
    workload = case.workload("namesakes")
    template = workload["spec"]["template"]
    worker, group = template["cliques"][0], template["podCliqueScalingGroups"][0]
    worker["name"] = group["name"]
    worker["spec"]["autoScalingConfig"] = group["scaleConfig"] = {"minReplicas": 1, "maxReplicas": 3}
    group["replicas"] = group["minAvailable"] = 1
    if not _refused(case, "RES-054", workload):
        case.create(workload)
        scaler = f"alike-0-{group['name']}"
        case.until("RES-054", "one of the two exists", observed.there("horizontalpodautoscalers", [scaler]))
        case.eventually("RES-054", "the set reports an error", observed.complains("alike"))


def _refused(case: Case, id: str, workload: Mapping[str, Any]) -> bool:
    """Whether admission refuses a set because of its names, which is as good as a report."""
    reply = case.dry_run.ask(case.dry_run.create(dict(workload)))
    wrong = "" if reply.accepted or reply.refused else str(reply)
    case.expect(id, "how the set is neither accepted nor refused with a reason", "", wrong)
    return reply.refused


def _ready(cliques: list[str]) -> predicates.Predicate:
    """Each of these cliques has pods, and all of them are Ready."""

    def seen(view: View) -> bool:
        pods = [predicates.pods_of(view, clique) for clique in cliques]
        return all(pods) and all(condition_is(pod, "Ready") == "True" for own in pods for pod in own)

    return seen


def _one_complains(set_name: str, group: str) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        owners = (view.get("podcliquesets", set_name), view.get("podcliquescalinggroups", group))
        return any(map(observed.errors, owners)) or Unmet("lastErrors is empty in both")

    return seen


def _groups(view: View, gang: str) -> list[str]:
    return sorted(text(group, "name") for group in items(view.get("podgangs", gang), "spec", "podgroups"))


@requirements("RES-091")
def test_a_conflict_of_a_scaling_group_is_reported_while_its_gang_waits(case: Case) -> None:
    # The scaling group belongs to somebody else, so its cliques never come and the gang waits for them.
    owner = case.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "somebody"}})
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "somebody", "uid": text(owner, "metadata", "uid")}
    case.create(
        {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueScalingGroup",
            "metadata": {
                "name": "alike-0-sg",
                "labels": {labels.BY_HAND: "somebody"},  # so that invariants do not take it for the operator's
                "ownerReferences": [{**reference, "controller": True}],
            },
            "spec": {"replicas": 1, "cliqueNames": ["leader"]},
        }
    )
    case.create(case.workload("namesakes"))
    case.until("RES-091", "the standalone cliques exist", observed.there("podcliques", ["alike-0-worker"]))
    case.eventually("RES-091", "the set reports an error", observed.complains("alike"))
