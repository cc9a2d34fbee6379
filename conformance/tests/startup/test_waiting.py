"""Pods start after their parents: held back one by one, so that each step of the order can be seen."""

from __future__ import annotations

from collections.abc import Callable

from conformance.grove import labels
from conformance.grove.expected import Clique, Expected, expected
from conformance.grove.fields import condition_is, label, uid
from conformance.history import sights
from conformance.history.query import Miss
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.tests.startup.sights import are_ready, are_under_way, break_down, hold, let_go, names, ready


@requirements(
    "START-010", "START-011", "START-012", "START-013", "START-014", "INV-001", "INV-004", "INV-005", "INV-006"
)
def test_pods_start_after_the_floors_of_their_parents_and_gangs_apart(case: Case) -> None:
    case.nodes("dgx-h100", 2)
    workload = hold(case.workload("chain", fronts=3, frontsFloor=2, leaders=2, leadersFloor=1, groups=3), "fe", "ld")
    wanted, every = expected(workload), list(expected(workload).cliques.values())
    front, leaders, workers = (_clique(wanted, tail) for tail in ("0-fe", "sg-0-ld", "sg-0-wk"))
    case.create(workload)
    case.until("START-010", "all pods are bound while no parent is Ready", sights.all_bound(every))
    case.expect("START-010", "Ready pods then", _counts(every), ready(case.history.view(), every))

    # A scaled gang starts by itself, though the cliques of the base gang are not Ready; the other one has to wait.
    one, other = (_clique(wanted, f"sg-{j}-wk") for j in (1, 2))
    let_go(case, names(case.history.view(), _clique(wanted, "sg-1-ld").name)[0])
    case.until("START-012", "a scaled gang starts apart from its base gang", are_ready([one]))
    case.until("START-012", "pods of the others are under way", are_under_way([other, workers]))
    case.expect("START-012", "Ready pods then", {one.name: 1}, _some(ready(case.quiet(1), [one, other, workers])))

    # In the base gang: leaders after two of the three fronts, workers after one of the two leaders.
    for pod in names(case.history.view(), leaders.name):
        let_go(case, pod)
    case.until("START-011", "the leaders are under way", are_under_way([leaders]))
    first, second, third = names(case.history.view(), front.name)
    let_go(case, first)
    case.until("START-011", "one front is Ready", are_ready([front], 1))
    case.expect("START-011", "Ready pods then", {front.name: 1}, _some(ready(case.quiet(1), [front, leaders, workers])))
    let_go(case, second)
    case.until("START-011", "the leaders start after two of the three fronts", are_ready([leaders]))
    case.until("START-011", "the workers start after the leaders", are_ready([workers]))
    case.expect("START-011", "Ready fronts then", {front.name: 2}, ready(case.history.view(), [front]))
    case.expect("START-012", "the other scaled gang waits", {other.name: 0}, ready(case.history.view(), [other]))

    # What has started goes on without its parents; what is made anew waits for them.
    started = _lives(case.history.view(), [leaders, workers])
    for pod in (first, second):
        break_down(case, pod)
    case.until("START-013", "the fronts are not Ready any more", _none_ready(front))
    case.expect("START-013", "pods that had started", started, _lives(case.quiet(1), [leaders, workers]))
    replaced = names(case.history.view(), leaders.name)[0]
    case.delete("pods", replaced)
    fresh = case.until("START-014", "a deleted leader is replaced", _fresh(leaders, started))
    let_go(case, fresh)
    case.until("START-014", "the new leader is under way", are_under_way([leaders]))
    case.expect("START-014", "Ready leaders then", {leaders.name: 1}, ready(case.quiet(1), [leaders]))
    for pod in (first, second, third):
        let_go(case, pod)
    case.until("START-014", "the new leader starts after the fronts", are_ready([front, leaders]))


@requirements("START-012", "INV-006")
def test_replicas_of_a_set_start_apart(case: Case) -> None:
    case.nodes("dgx-h100", 2)
    workload = hold(case.workload("chain", replicas=2, fronts=1, groups=1), "fe")
    wanted = expected(workload)
    here, there = ([c for c in wanted.cliques.values() if c.set_index == index] for index in (1, 0))
    case.create(workload)
    case.until("START-012", "all pods are bound", sights.all_bound([*here, *there]))
    let_go(case, names(case.history.view(), _clique(wanted, "1-fe").name)[0])
    case.until("START-012", "the replica whose front is Ready starts", are_ready(here))
    case.expect("START-012", "Ready pods of the other replica", _counts(there), ready(case.quiet(1), there))
    let_go(case, names(case.history.view(), _clique(wanted, "0-fe").name)[0])
    case.until("START-012", "the other replica starts in its turn", are_ready(there))


def _clique(wanted: Expected, tail: str) -> Clique:
    [found] = [clique for name, clique in wanted.cliques.items() if name.endswith(f"-{tail}")]
    return found


def _counts(cliques: list[Clique]) -> dict[str, int]:
    return sights.none(cliques)


def _some(counts: dict[str, int]) -> dict[str, int]:
    """Without those that are none."""
    return {name: count for name, count in counts.items() if count}


def _none_ready(clique: Clique) -> sights.Sight:
    def seen(view: View) -> bool | Miss:
        found = ready(view, [clique])[clique.name]
        return not found or Miss(f"{found} pods of {clique.name} are Ready")

    return seen


def _lives(view: View, cliques: list[Clique]) -> dict[str, str]:
    """Uid of each pod → whether it is Ready."""
    found = sights.by_clique(view, cliques)
    return {uid(pod): condition_is(pod, "Ready") for pods in found.values() for pod in pods}


def _fresh(clique: Clique, known: dict[str, str]) -> Callable[[View], str | Miss]:
    """The name of a bound pod of the clique that is not among those known."""

    def seen(view: View) -> str | Miss:
        for pod in sights.pods_of(view, clique.name):
            if uid(pod) not in known and pod["spec"].get("nodeName") and label(pod, labels.GANG):
                return str(pod["metadata"]["name"])
        return Miss(f"no new pod of {clique.name} is bound")

    return seen
