"""What each clique starts after, in each start-up type, and the init container that its pods wait in."""

from __future__ import annotations

from typing import Any

from conformance.grove import startup, template
from conformance.grove.expected import Clique, expected
from conformance.grove.fields import Document, at, name, texts
from conformance.history.differences import differing
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import predicates
from conformance.testing.comparison import of


@requirements(
    *(f"START-{number:03}" for number in range(1, 10)),
    "INV-001",
    "INV-004",
    "INV-005",
    "INV-006",
)
def test_cliques_have_the_parents_that_the_start_up_type_gives_them(case: Case) -> None:
    case.nodes("dgx-h100", 2)
    chains = {"any": "AnyOrder", "order": "InOrder", "explicit": "Explicit"}
    workloads = [
        *(
            case.workload("chain", setName=short, startup=f"CliqueStartupType{word}", frontsFloor=2, groups=3)
            for short, word in chains.items()
        ),
        case.workload("chain", setName="order2", groups=3, groupsFloor=2, leaders=2),
        case.workload("after-group"),
        case.workload("alike"),
    ]
    for workload in workloads:
        case.create(workload)
    for workload in workloads:
        every = list(expected(workload).cliques.values())
        case.eventually("START-006", f"all pods of {name(workload)} exist", predicates.all_exist(every))
    view = case.history.view()
    for workload in workloads:
        check(case, workload, view)
    for workload in workloads:
        case.eventually("START-006", f"{name(workload)} becomes available", predicates.available(name(workload), 1))


def check(case: Case, workload: dict[str, Any], view: View) -> None:
    wanted = template.read(workload)
    for clique in expected(workload).cliques.values():
        place = startup.seat(wanted, clique.name, clique.labels)
        assert place is not None, clique.name
        parents = startup.parents(wanted, place)
        assert parents is not None, "no workload of this test asks for what the specification leaves open"
        found = view.get("podcliques", clique.name)
        stored = of(found, texts(found, "spec", "startsAfter"))
        case.expect(_id(wanted, place), f"startsAfter of {clique.name}", list(parents), stored)
        check_pods(case, clique, wanted, parents, view)


def _id(wanted: template.SetTemplate, place: startup.Seat) -> str:
    if wanted.startup == startup.EXPLICIT:
        return "START-005" if place.scaled else "START-004"
    if wanted.startup == startup.IN_ORDER:
        return "START-003" if place.scaled else "START-002"
    return "START-001"


def check_pods(case: Case, clique: Clique, wanted: template.SetTemplate, parents: dict[str, int], view: View) -> None:
    for pod in predicates.pods_of(view, clique.name):
        waiter, what = startup.waiter(pod), name(pod)
        case.expect("START-006", f"{what} has {startup.WAITER}", bool(parents), bool(waiter))
        if not parents or not waiter:
            continue
        arguments = [f"--podcliques={parent}:{floor}" for parent, floor in parents.items()]
        if wanted.name == "alike":
            case.expect(
                "START-009", f"parents taken for others by {what}", [], taken_for_others(wanted, waiter, parents)
            )
        else:
            case.expect("START-007", f"arguments of {what}/{startup.WAITER}", arguments, at(waiter, "args"))
        right, seen = startup.MOUNTS, startup.mounts(waiter)
        case.expect("START-008", f"mounts of {what}/{startup.WAITER}", *differing(right, _only(seen, right)))
        volumes, found = startup.volumes(wanted.name), startup.seen_volumes(pod)
        case.expect("START-008", f"volumes of {what}", *differing(volumes, _only(found, volumes)))


def taken_for_others(wanted: template.SetTemplate, waiter: Document, parents: dict[str, int]) -> list[str]:
    """List the arguments that give a parent the minAvailable of a clique whose name is the end of its own."""
    namesakes = {
        f"--podcliques={parent}:{clique.floor}"
        for parent, floor in parents.items()
        for clique in wanted.cliques
        if parent.endswith(clique.name) and clique.floor != floor
    }
    return sorted(namesakes.intersection(texts(waiter, "args")))


def _only(seen: dict[str, Any], wanted: Any) -> dict[str, Any]:
    """What was asked for; others may have put in more."""
    return {key: seen.get(key) for key in wanted}
