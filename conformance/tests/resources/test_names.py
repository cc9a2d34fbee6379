"""Names that are alike: cliques with a common ending, and sets whose objects would be called the same."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.expected import expected
from conformance.grove.fields import controller, items, name, text
from conformance.history import sights
from conformance.history.query import Miss
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.tests.core import objects, pod_contents
from conformance.tests.resources import observed


@requirements("RES-050", "CORE-002", "CORE-003", "CORE-006", "CORE-007", "CORE-008", "CORE-009", "CORE-014", "CORE-015")
def test_a_clique_is_made_from_the_template_of_its_whole_name(case: Case) -> None:
    workload = case.workload("namesakes")
    wanted = expected(workload)
    case.create(workload)
    case.until("RES-050", "every clique exists", observed.there("podcliques", wanted.cliques))
    every = (sights.all_exist(list(wanted.cliques.values())), observed.there("services", wanted.services))
    view = case.settled("all pods and Services exist", observed.all_of(*every))
    for clique in wanted.cliques.values():
        images = {text(c, "image") for p in sights.pods_of(view, clique.name) for c in items(p, "spec", "containers")}
        right = [text(container, "image") for container in items(clique.template.pod_spec, "containers")]
        case.expect("RES-050", f"images of the pods of {clique.name}", right, sorted(images))
    objects.check_specs(case, wanted, view)
    objects.check_services(case, wanted, view)
    pod_contents.check_pods(case, wanted, view, name(workload))


@requirements("RES-053")
def test_names_as_long_as_admission_lets_them_be_work(case: Case) -> None:
    # The names of set, scaling group and clique have 45 characters together (OBJ-120).
    workload = case.workload("chain", setName="n" * 41, startup="CliqueStartupTypeAnyOrder")
    wanted = expected(workload)
    case.create(workload)
    case.until("RES-053", "all pods exist", sights.all_exist(list(wanted.cliques.values())))
    view = case.history.view()
    for clique in wanted.cliques:
        hosts = sorted(text(pod, "spec", "hostname") for pod in sights.pods_of(view, clique))
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
    case.create(second)
    case.eventually("RES-051", "the second set reports an error", _complains("a-0-b"))
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
    cliques.append({"name": "sg-0-leader", "spec": {**worker["spec"], "roleName": "namesake"}})
    case.create(workload)
    contested = "alike-0-sg-0-leader"
    case.until("RES-052", "one of the two exists", observed.there("podcliques", [contested]))
    case.eventually("RES-052", "set or scaling group reports an error", _one_complains("alike", "alike-0-sg"))
    others = [clique for clique in expected(workload).cliques if clique != contested]
    view = case.settled("the other cliques of the set exist", observed.there("podcliques", others))
    made = [clique for clique in others if view.get("podcliques", clique) is not None]
    case.expect("RES-052", "the other cliques of the set", others, made)


def _one_complains(set_name: str, group: str) -> sights.Sight:
    def seen(view: View) -> bool | Miss:
        owners = (view.get("podcliquesets", set_name), view.get("podcliquescalinggroups", group))
        return any(map(observed.errors, owners)) or Miss("lastErrors is empty in both")

    return seen


def _groups(view: View, gang: str) -> list[str]:
    return sorted(text(group, "name") for group in items(view.get("podgangs", gang), "spec", "podgroups"))


def _complains(set_name: str) -> sights.Sight:
    def seen(view: View) -> bool | Miss:
        return observed.errors(view.get("podcliquesets", set_name)) != [] or Miss("its lastErrors is empty")

    return seen
