"""A node is cordoned, drained of one set, lost with the others, and comes back, all in one go.

Nothing is terminated before its delay, an hour, is shortened: so nothing here depends on how fast the machine is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from conformance.grove import labels, pods
from conformance.grove.fields import label, name, number, terminating, uid
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.api import Object
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import disruption, incarnations, predicates
from conformance.testing.comparison import same
from conformance.testing.disruption import CLIQUES
from conformance.testing.observed import all_of
from conformance.testing.scaled import pods_are

PODS = 2
SETS = ("moves", "stuck", "lasts", "returns", "drained")
CLIQUE = {each: f"{each}-0-web" for each in SETS}
LOST = ("moves", "stuck", "lasts", "returns")
EVICTED = ("moves", "stuck")
"""Their pods are evicted soon after their node is lost."""
HOSTNAME = "kubernetes.io/hostname"
NEVER: Object = {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}
"""Without it Kubernetes evicts after 300 s, which waits for an implementation that does nothing can add up to."""
SOON: Object = {**NEVER, "tolerationSeconds": 1}


@requirements(
    *(
        "NODE-001",
        "NODE-002",
        "NODE-003",
        "NODE-004",
        "NODE-005",
        "NODE-006",
        "INV-001",
        "INV-003",
        "INV-004",
        "INV-005",
    )
)
def test_a_node_is_drained_and_lost_and_comes_back(case: Case) -> None:
    here, there = case.nodes("tiny", 2)
    disruption.cordon(case, [there])
    for each in SETS:
        case.create(workload(case, each, here))
    case.until("NODE-005", "the sets are available", all_of(*(predicates.available(each, 1) for each in SETS)))
    first = found(case, SETS)

    case.quiet(1.2, real=True)
    mark = case.history.mark()
    disruption.cordon(case, [here])
    case.quiet(1.5, real=True)
    changed = [str(record) for record in case.history.records("pods", since=mark)]
    case.expect("NODE-005", "what has become of pods since their node was cordoned", [], changed)
    same(case, "NODE-005", "cliques that each name has had", *once(case, SETS))

    disruption.cordon(case, [there], off=True)
    refused = [answer for pod in first["drained"].values() if (answer := case.evict(name(pod)))]
    case.expect("NODE-006", "evictions that were refused", [], refused)
    what = "what is drained is somewhere else, with the same indices"
    case.eventually("NODE-006", what, moved("drained", first, there))

    case.fail_node(here)
    before = incarnations.uids(case.history.view(), CLIQUES)
    what = "cliques whose node is lost say that they are below their floor"
    case.eventually("NODE-003", what, disruption.breached(CLIQUES, [CLIQUE[each] for each in LOST]))
    disruption.delay(case, ["lasts"], "1s")
    what = "what has been below its floor for too long is made anew"
    case.eventually("NODE-003", what, incarnations.renewed(CLIQUES, [CLIQUE["lasts"]], before))
    case.eventually("NODE-003", "and runs on another node", moved("lasts", first, there))
    what = "Kubernetes evicts the pods of the lost node, and they cannot go"
    case.settled(what, on_their_way(first, EVICTED), 40, real=True)  # at its own pace
    case.eventually("NODE-001", "evicted pods are replaced on another node", moved("moves", first, there))
    what = "pods that wait for room have taken the place of those that cannot go"
    case.eventually("NODE-002", what, counted(CLIQUE["stuck"]))
    left = {each: {name(pod) for pod in first[each].values()} for each in (*EVICTED, "lasts")}
    view = case.history.view()
    held = {each: {n for n in names if terminating(view.get("pods", n) or {})} for each, names in left.items()}
    for id, each in (("NODE-001", "moves"), ("NODE-002", "stuck"), ("NODE-003", "lasts")):
        case.expect(id, f"{each}: pods that still are on the lost node", sorted(left[each]), sorted(held[each]))

    case.recover_node(here)
    case.eventually(
        "NODE-004", "what has its node again is sound", disruption.breached(CLIQUES, [CLIQUE["returns"]], "False")
    )
    disruption.cordon(case, [here], off=True)
    case.until("NODE-002", "with room for it again the set is available", predicates.available("stuck", 1))
    case.until("NODE-004", "all sets are available", all_of(*(predicates.available(each, 1) for each in SETS)))
    # A countdown that was not ended is over now.
    disruption.delay(case, SETS, "1s")
    case.quiet(2.5, real=True)
    now = found(case, ["returns"])
    kept = {index: uid(pod) for index, pod in first["returns"].items()}
    same(case, "NODE-004", "pods of the returned node", kept, {i: uid(pod) for i, pod in now["returns"].items()})
    for id, each in (("NODE-001", "moves"), ("NODE-002", "stuck"), ("NODE-004", "returns"), ("NODE-006", "drained")):
        same(case, id, "cliques that each name has had", *once(case, [each]))
    same(
        case,
        "NODE-003",
        "cliques that each name has had",
        {CLIQUE["lasts"]: 2},
        disruption.counts(case.history, [CLIQUE["lasts"]]),
    )


def workload(case: Case, each: str, here: str) -> Object:
    made = case.workload("frontend", setName=each, pods=PODS)
    made["spec"]["template"]["terminationDelay"] = "1h"
    [clique] = made["spec"]["template"]["cliques"]
    spec = clique["spec"]["podSpec"]
    spec["tolerations"] = [*spec.get("tolerations", []), SOON if each in EVICTED else NEVER]
    if each == "stuck":
        spec["nodeSelector"] = {**spec.get("nodeSelector", {}), HOSTNAME: here}
    return made


def found(case: Case, sets: Iterable[str]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """The pods of each set, by index."""
    own = {each: disruption.by_index(case, CLIQUE[each]) for each in sets}
    return {each: {label(pod, labels.POD_INDEX): pod for pod in found} for each, found in own.items()}


def moved(each: str, first: Mapping[str, Mapping[str, Mapping[str, Any]]], node: str) -> predicates.Predicate:
    """A set has other pods than at first, with the same indices, all Ready on this node."""
    clique, wanted = CLIQUE[each], sorted(first[each])
    former = {uid(pod) for pod in first[each].values()}

    def seen(view: View) -> bool | Unmet:
        own = predicates.pods_of(view, clique)
        if any(uid(pod) in former for pod in own):
            return Unmet(f"{clique} still has its former pods")
        indices = sorted(label(pod, labels.POD_INDEX) for pod in own)
        if indices != wanted:
            return Unmet(f"{clique} has pods with the indices {indices}, not {wanted}")
        late = [name(pod) for pod in own if pods.node(pod) != node or not pods.ready(pod)]
        return not late or Unmet(f"not Ready on {node}: {', '.join(late)}")

    return seen


def on_their_way(first: Mapping[str, Mapping[str, Mapping[str, Any]]], sets: Iterable[str]) -> predicates.Predicate:
    """The former pods of these sets are being deleted."""
    names = [name(pod) for each in sets for pod in first[each].values()]

    def seen(view: View) -> bool:
        return all(terminating(view.get("pods", each) or {}) for each in names)

    return seen


def counted(clique: str) -> predicates.Predicate:
    """Of pods that cannot go the clique's status says nothing; of those that wait it says that they are there."""
    wanted = {"replicas": PODS, "scheduledReplicas": 0, "readyReplicas": 0}

    def seen(view: View) -> bool | Unmet:
        told = {field: number(view.get(CLIQUES, clique), "status", field) or 0 for field in wanted}
        if told != wanted:
            return Unmet(f"status of {clique}: {told}")
        return pods_are({clique: PODS})(view)

    return seen


def once(case: Case, sets: Iterable[str]) -> tuple[dict[str, int], dict[str, int]]:
    """What is to be and what is, of cliques that have not been made anew."""
    cliques = [CLIQUE[each] for each in sets]
    return dict.fromkeys(cliques, 1), disruption.counts(case.history, cliques)
