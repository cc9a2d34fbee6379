"""Pods start after their parents: held back one by one, so that each step of the order can be seen."""

from __future__ import annotations

from collections.abc import Callable, Container

from conformance.grove import pods
from conformance.grove.expected import Clique, Expected, expected
from conformance.grove.fields import condition_is, name, uid
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import predicates
from conformance.tests.startup.predicates import are_ready, are_under_way, break_down, hold, let_go, names, ready


@requirements("START-010", "START-012", "GANG-008", "INV-001", "INV-004", "INV-005", "INV-006")
def test_all_pods_are_bound_before_any_starts_and_gangs_start_apart(case: Case) -> None:
    case.nodes("dgx-h100", 2)
    workload = hold(case.workload("chain", fronts=1, groups=3), "fe", "ld")
    wanted = expected(workload)
    base, one, other = (wanted.of_gang(gang) for gang in ("chain-0", "chain-0-sg-0", "chain-0-sg-1"))
    case.create(workload)
    case.until("START-010", "all pods of the base gang are bound while no parent is Ready", predicates.all_bound(base))
    case.until("START-010", "and have been started", are_under_way(base))
    case.expect("START-010", "Ready pods then", predicates.none(base), ready(case.history.view(), base))
    scaled = [*one, *other]
    case.until(
        "GANG-008", "a base gang that is bound and not Ready releases scaled gangs", predicates.all_ungated(scaled)
    )

    # That the base gang is Ready lets no other gang start: each waits for its own leader.
    for tail in ("0-fe", "sg-0-ld"):
        let_go(case, names(case.history.view(), _clique(wanted, tail).name)[0])
    case.until("START-012", "the base gang starts", are_ready(base))
    case.until("START-010", "all pods of scaled gangs are bound while no parent is Ready", predicates.all_bound(scaled))
    case.until("START-012", "pods of the scaled gangs are under way", are_under_way(scaled))
    case.expect("START-012", "Ready pods of scaled gangs", predicates.none(scaled), ready(case.quiet(1), scaled))

    # Nor does one scaled gang start the other, nor wait for it, nor for pods of the base gang.
    break_down(case, names(case.history.view(), _clique(wanted, "0-fe").name)[0])
    let_go(case, names(case.history.view(), _clique(wanted, "sg-1-ld").name)[0])
    case.until("START-012", "a scaled gang starts", are_ready(one))
    case.expect("START-012", "Ready pods of the other one", predicates.none(other), ready(case.quiet(1), other))


@requirements("START-012", "INV-006")
def test_replicas_of_a_set_start_apart(case: Case) -> None:
    case.nodes("dgx-h100", 2)
    workload = hold(case.workload("chain", replicas=2, fronts=1, groups=1), "fe")
    wanted = expected(workload)
    here, there = ([c for c in wanted.cliques.values() if c.set_index == index] for index in (1, 0))
    case.create(workload)
    case.until("START-012", "all pods are bound", predicates.all_bound([*here, *there]))
    let_go(case, names(case.history.view(), _clique(wanted, "1-fe").name)[0])
    case.until("START-012", "the replica whose front is Ready starts", are_ready(here))
    case.expect("START-012", "Ready pods of the other replica", predicates.none(there), ready(case.quiet(1), there))
    let_go(case, names(case.history.view(), _clique(wanted, "0-fe").name)[0])
    case.until("START-012", "the other replica starts in its turn", are_ready(there))


@requirements("START-011", "INV-006")
def test_pods_start_after_the_floors_of_their_parents(case: Case) -> None:
    case.nodes("dgx-h100", 2)
    workload = hold(case.workload("chain", fronts=3, frontsFloor=2, leaders=2, leadersFloor=1), "fe", "ld")
    wanted = expected(workload)
    front, leaders, workers = base = [_clique(wanted, tail) for tail in ("0-fe", "sg-0-ld", "sg-0-wk")]
    case.create(workload)
    case.until("START-011", "all pods of the base gang are bound", predicates.all_bound(base))

    let_go(case, names(case.history.view(), leaders.name)[0])
    fronts = names(case.history.view(), front.name)
    let_go(case, fronts[0])
    case.until("START-011", "one front is Ready", are_ready([front], 1))
    case.expect("START-011", "Ready pods then", {front.name: 1}, _some(ready(case.quiet(1), base)))
    let_go(case, fronts[1])
    case.until("START-011", "a leader starts after two of the three fronts", are_ready([leaders], 1))
    case.until("START-011", "the worker starts after one of the two leaders", are_ready([workers]))
    then = {front.name: 2, leaders.name: 1, workers.name: 1}
    case.expect("START-011", "Ready pods in the end", then, ready(case.quiet(1), base))


@requirements("START-013", "START-014", "INV-006")
def test_what_has_started_goes_on_without_its_parents_and_what_is_new_waits(case: Case) -> None:
    case.nodes("dgx-h100", 2)
    workload = case.workload("chain", fronts=2, frontsFloor=2, leaders=2, groups=1)
    wanted, every = expected(workload), list(expected(workload).cliques.values())
    front, leaders, workers = (_clique(wanted, tail) for tail in ("0-fe", "sg-0-ld", "sg-0-wk"))
    case.create(workload)
    case.until("START-013", "all pods are Ready", are_ready(every))
    started = _lives(case.history.view(), [leaders, workers])
    fronts = names(case.history.view(), front.name)
    for pod in fronts:
        break_down(case, pod)
    case.until("START-013", "the fronts are not Ready any more", _none_ready(front))
    case.expect("START-013", "pods that had started", started, _lives(case.quiet(1), [leaders, workers]))

    known = _lives(case.history.view(), [leaders])
    case.delete("pods", case.until("START-014", "there is a leader", _some_pod(leaders)))
    case.until("START-014", "a deleted leader is replaced", _some_pod(leaders, known))
    case.until("START-014", "the new leader is under way", are_under_way([leaders]))
    case.expect("START-014", "Ready leaders then", {leaders.name: 1}, ready(case.quiet(1), [leaders]))
    for pod in fronts:
        let_go(case, pod)
    case.until("START-014", "the new leader starts after the fronts", are_ready([front, leaders]))


def _clique(wanted: Expected, tail: str) -> Clique:
    [found] = [clique for clique in wanted.cliques.values() if clique.name.endswith(f"-{tail}")]
    return found


def _some(counts: dict[str, int]) -> dict[str, int]:
    """Without those that are none."""
    return {clique: count for clique, count in counts.items() if count}


def _none_ready(clique: Clique) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = ready(view, [clique])[clique.name]
        return not found or Unmet(f"{found} pods of {clique.name} are Ready")

    return seen


def _lives(view: View, cliques: list[Clique]) -> dict[str, str]:
    """Uid of each pod → whether it is Ready."""
    found = predicates.by_clique(view, cliques)
    return {uid(pod): condition_is(pod, "Ready") for those in found.values() for pod in those}


def _some_pod(clique: Clique, known: Container[str] = ()) -> Callable[[View], str | Unmet]:
    """The name of a bound pod of the clique whose uid is not among those known."""

    def seen(view: View) -> str | Unmet:
        found = [pod for pod in predicates.pods_of(view, clique.name) if uid(pod) not in known and pods.bound(pod)]
        return name(found[0]) if found else Unmet(f"no such pod of {clique.name} is bound")

    return seen
