"""Pods that change, go and cannot be made: what is repaired, and what cliques, groups and sets say meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import dropwhile
from typing import Any

from conformance.grove import health, labels, pods
from conformance.grove.expected import expected
from conformance.grove.fields import condition, condition_is, items, label, name, number, text, uid
from conformance.history.query import Unmet
from conformance.history.record import Record
from conformance.history.view import View
from conformance.invariants.status_at_rest import REST
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import predicates
from conformance.testing.quotas import limit_pods
from conformance.testing.scaled import pods_are

BREACHED = "MinAvailableBreached"
GROUPS, SETS, CLIQUES, GANGS = "podcliquescalinggroups", "podcliquesets", "podcliques", "podgangs"
CRASHED: Mapping[str, Any] = {"containers": {"started": False, "lastExit": 1}}
SERVING: Mapping[str, Any] = {"ready": True, "containers": {"started": True}}


@requirements("CORE-020", "CORE-021", "CORE-029", "INV-001", "INV-003", "INV-004", "INV-005")
def test_availability_follows_readiness(case: Case) -> None:
    case.nodes("dgx-h100", 2)
    small = {"routers": 2, "workers": 3, "workersFloor": 1, "prefills": 1, "prefillsFloor": 1}
    workload = case.workload(
        "disaggregated", setName="s", **small, prefillGpus=1, decodes=1, decodesFloor=1, decodeGpus=1
    )
    case.create(workload)
    case.until("CORE-020", "all is available", both(says(SETS, "s", 1), says(GROUPS, "s-0-workers", 3)))

    become(case, ["s-0-workers-1-decode"], {"containers": {"started": True}})
    case.until("CORE-020", "a replica with an unready pod is not available", says(GROUPS, "s-0-workers", 2))
    view = case.quiet(1)
    case.expect("CORE-020", "available replicas of the set", 1, available(view, SETS, "s"))
    case.expect("CORE-021", f"{BREACHED} of the group", "False", condition_of(view, GROUPS, "s-0-workers"))

    become(case, [f"s-0-workers-{j}-decode" for j in range(3)], CRASHED)
    case.until("CORE-021", "no replica of the group is left", is_breached("s-0-workers", "True"))
    case.until("CORE-020", "so the set is not available", says(SETS, "s", 0))

    become(case, [f"s-0-workers-{j}-decode" for j in range(3)], SERVING)
    case.until("CORE-021", "the group is sound again", is_breached("s-0-workers", "False"))
    case.until("CORE-020", "all is available again", both(says(SETS, "s", 1), says(GROUPS, "s-0-workers", 3)))
    become(case, ["s-0-router"], {"containers": {"started": True}})
    case.until("CORE-020", "a set without its standalone clique is not available", says(SETS, "s", 0))
    case.expect("CORE-020", "available replicas of the group", 3, available(case.quiet(1), GROUPS, "s-0-workers"))

    case.patch(GROUPS, "s-0-workers", {"spec": {"replicas": 0}}, subresource="scale")
    what = "a group that has lost all its replicas warns of it"
    case.until("CORE-029", what, warned("s-0-workers"), resources=["events"])


@requirements(
    "CORE-022", "CORE-023", "CORE-024", "CORE-026", "CORE-027", "GANG-009", "INV-001", "INV-004", "INV-005", "INV-007"
)
def test_a_lost_pod_is_replaced_in_its_place(case: Case) -> None:
    nodes = case.nodes("tiny", 1)
    workload = case.workload("frontend", setName="s", pods=3)
    [clique] = expected(workload).cliques.values()
    case.create(workload)
    case.until("CORE-022", "all is ready", says_clique(clique.name, "readyReplicas", 3))
    before = by_index(case.history.view(), clique.name)

    case.delete("pods", name(before["1"]))
    case.until("CORE-022", "a pod with the index of the lost one is made", replaced(clique.name, uid(before["1"]), "1"))
    after = by_index(case.history.view(), clique.name)
    kept = {index: uid(before[index]) for index in ("0", "2")}
    case.expect("CORE-022", "the other pods", kept, {index: uid(after.get(index, {})) for index in kept})
    names = sorted(name(pod) for pod in after.values())
    case.until("GANG-009", "the gang's references name the new pod and not the old one", refers("s-0", names))
    case.until("CORE-022", "all pods are ready again", pods_are({clique.name: 3}, ready=True))
    case.until("CORE-022", "and the clique says so", says_clique(clique.name, "readyReplicas", 3))
    lost = initialized_lost(case.history.records(GANGS, "s-0"))
    case.expect("GANG-009", "states in which the gang was no longer Initialized", [], lost)

    # When nothing happens, nothing is written; the statuses may first catch up with what has happened.
    case.until("CORE-024", "the set is available again", predicates.available("s", 1))
    case.quiet(2, real=True, of=WRITTEN)
    begin = case.history.mark()
    case.quiet(3, real=True)
    written = [f"{r.resource}/{r.name}" for r in case.history.records(since=begin) if r.resource in WRITTEN]
    case.expect("CORE-024", "objects that changed while nothing happened", [], written)
    case.quiet(REST, real=True, of=WRITTEN)  # for INV-007, which is more patient

    # A pod fails, and the one that takes its place cannot be placed.
    case.patch("nodes", nodes[0], {"spec": {"unschedulable": True}})
    failed = name(after["2"])
    case.patch("pods", failed, {"metadata": {"annotations": {health.HOLD_STATUS: "yes"}}})
    case.patch("pods", failed, {"status": {"phase": "Failed", "reason": "Evicted"}}, subresource="status")
    successor = replaced(clique.name, uid(after["2"]), "2")
    if not case.eventually("CORE-026", "a pod that has failed is replaced", successor):
        case.delete("pods", failed)  # for what follows, which is asked of those that keep it, too
    case.eventually("CORE-026", "and counts no longer", says_clique(clique.name, "scheduledReplicas", 2))
    case.eventually("CORE-027", "two scheduled pods of three are too few", tells(clique.name, TOO_FEW))

    # All pods go and none can be placed again.
    for pod in predicates.pods_of(case.history.view(), clique.name):
        case.delete("pods", name(pod))
    case.until("CORE-023", "the clique has no scheduled pod", says_clique(clique.name, "scheduledReplicas", 0))
    what = "a Warning event says that all scheduled pods are lost"
    case.until("CORE-023", what, warned(clique.name), resources=["events"])
    view = case.quiet(1)
    told = condition(view.get(CLIQUES, clique.name), BREACHED)
    case.expect(
        "CORE-023",
        f"{BREACHED} of a clique that has lost all",
        ["True", "ScheduledReplicasBelowMinAvailable"],
        [text(told, "status"), text(told, "reason")],
    )


TOO_FEW = {
    "PodCliqueScheduled": ["False", "InsufficientScheduledPods"],
    BREACHED: ["True", "ScheduledReplicasBelowMinAvailable"],
}
WRITTEN = frozenset({SETS, GROUPS, CLIQUES, GANGS, "pods", "services"})


@requirements("CORE-025", "GANG-010", "GANG-021", "GANG-022", "INV-001", "INV-003", "INV-005")
def test_pods_that_cannot_be_made_are_told_and_hold_their_gang_back(case: Case) -> None:
    # Four pods in one gang, of three cliques; whichever clique lacks one, the pods of all keep their gates.
    case.nodes("tiny", 1)
    limit_pods(case, "few", 3)
    workload = case.workload("chain", setName="s", startup="CliqueStartupTypeAnyOrder", fronts=2, groups=1)
    cliques = list(expected(workload).cliques.values())
    names = [clique.name for clique in cliques]
    case.create(workload)
    lacking = case.until("CORE-025", "the status of the clique that lacks a pod names the refusal", in_trouble(names))
    case.until("CORE-025", "those pods that may be are made", are_made(names, 3))
    case.eventually("GANG-021", "the gang says that it is not complete", initialized("s-0", "False"))
    view = case.quiet(1, of=("pods", GANGS))  # cliques tell of each attempt
    free = [name(p) for clique in names for p in predicates.pods_of(view, clique) if not pods.gated(p)]
    case.expect("GANG-010", "pods of the incomplete gang without a gate", [], free)

    gang = case.history.view().get(GANGS, "s-0")
    status = {"phase": text(gang, "status", "phase"), "conditions": [*items(gang, "status", "conditions"), FOREIGN]}
    begin = case.history.mark()
    case.patch(GANGS, "s-0", {"status": status}, subresource="status")
    case.delete("resourcequotas", "few")
    case.eventually("GANG-021", "the gang says that it is complete", initialized("s-0", "True"))
    ready = [says_clique(clique.name, "readyReplicas", clique.template.replicas) for clique in cliques]
    case.eventually("GANG-010", "the pods of the gang become ready", both(*ready))
    case.eventually("CORE-025", "the status no longer names a refusal", untroubled(lacking))
    records = case.history.records(GANGS, "s-0", since=begin)
    since = next((n for n, record in enumerate(records) if foreign(record.object)), 0)
    lost = [str(record) for record in records[since:] if not foreign(record.object)]
    case.expect("GANG-022", "states in which the gang has lost it", [], lost)


FOREIGN: Mapping[str, Any] = {
    "type": "example.com/Noted",
    "status": "True",
    "reason": "Noted",
    "message": "by a passer-by",
    "lastTransitionTime": health.MOMENT,
}


def foreign(gang: Mapping[str, Any] | None) -> bool:
    return condition_is(gang, str(FOREIGN["type"])) == "True"


def initialized(gang: str, status: str) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = view.get(GANGS, gang)
        told, phase = condition_is(found, "Initialized"), text(found, "status", "phase")
        return (told == status and phase != "") or Unmet(f"{gang}: Initialized is {told or 'absent'}, phase {phase!r}")

    return seen


def are_made(cliques: Iterable[str], count: int) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = sum(len(predicates.pods_of(view, clique)) for clique in cliques)
        return found == count or Unmet(f"there are {found} pods, not {count}")

    return seen


def become(case: Case, cliques: Iterable[str], state: Mapping[str, Any]) -> None:
    """Gives all pods of cliques a state of their containers; the fake kubelet then leaves them alone."""
    for clique in cliques:
        for pod in predicates.pods_of(case.history.view(), clique):
            case.patch("pods", name(pod), {"metadata": {"annotations": {health.HOLD_STATUS: "yes"}}})
            case.patch("pods", name(pod), health.status(pod, state), subresource="status")


def available(view: View, resource: str, which: str) -> int | None:
    return number(view.get(resource, which), "status", "availableReplicas")


def condition_of(view: View, resource: str, which: str) -> str:
    return condition_is(view.get(resource, which), BREACHED)


def both(*wanted: predicates.Predicate) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        return next((answer for sight in wanted if not (answer := sight(view))), True)

    return seen


def says(resource: str, which: str, count: int) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = available(view, resource, which)
        return found == count or Unmet(f"{resource}/{which} has {found} of {count} available replicas")

    return seen


def says_clique(clique: str, field: str, count: int) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = number(view.get(CLIQUES, clique), "status", field)
        return found == count or Unmet(f"{field} of {clique} is {found}, not {count}")

    return seen


def is_breached(group: str, status: str) -> predicates.Predicate:
    how = "Sufficient" if status == "False" else "Insufficient"

    def seen(view: View) -> bool | Unmet:
        told = condition(view.get(GROUPS, group), BREACHED)
        found = [text(told, "status"), text(told, "reason")]
        right = [status, f"{how}AvailablePodCliqueScalingGroupReplicas"]
        return found == right or Unmet(f"{BREACHED} of {group} is {found}")

    return seen


def by_index(view: View, clique: str) -> dict[str, Mapping[str, Any]]:
    return {label(pod, labels.POD_INDEX): pod for pod in predicates.pods_of(view, clique)}


def replaced(clique: str, lost: str, index: str) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = [pod for pod in predicates.pods_of(view, clique) if label(pod, labels.POD_INDEX) == index]
        return any(uid(pod) != lost for pod in found) or Unmet(f"there is no new pod with index {index}")

    return seen


def tells(clique: str, wanted: Mapping[str, list[str]]) -> predicates.Predicate:
    """The conditions of a clique have these statuses and reasons."""

    def seen(view: View) -> bool | Unmet:
        found = {kind: condition(view.get(CLIQUES, clique), kind) for kind in wanted}
        told = {kind: [text(one, "status"), text(one, "reason")] for kind, one in found.items()}
        return told == wanted or Unmet(f"{clique} says {told}")

    return seen


def refers(gang: str, wanted: list[str]) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        groups = items(view.get(GANGS, gang), "spec", "podgroups")
        found = [text(reference, "name") for group in groups for reference in items(group, "podReferences")]
        return found == wanted or Unmet(f"{gang} refers to {found}, not to {wanted}")

    return seen


def initialized_lost(gang: Iterable[Record]) -> list[str]:
    """States of a gang, after it has said Initialized=True for the first time, in which it does not say so."""
    told = dropwhile(lambda record: not is_initialized(record), gang)
    return [str(record) for record in told if not is_initialized(record)]


def is_initialized(record: Record) -> bool:
    return condition_is(record.object, "Initialized") == "True"


def warned(clique: str) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        for event in view.list("events"):
            about = event.get("regarding") or event.get("involvedObject")
            if text(event, "reason") == "AllScheduledReplicasLost" and text(about, "name") == clique:
                return text(event, "type") == "Warning" or Unmet(f"the event is of type {text(event, 'type')}")
        return Unmet("there is no event AllScheduledReplicasLost about it")

    return seen


def in_trouble(cliques: Iterable[str]) -> Callable[[View], str | Unmet]:
    """The name of a clique whose status speaks of the quota."""

    def seen(view: View) -> str | Unmet:
        for clique in cliques:
            for error in items(view.get(CLIQUES, clique), "status", "lastErrors"):
                if text(error, "code") and "quota" in text(error, "description") and text(error, "observedAt"):
                    return clique
        return Unmet("no clique has an entry about the quota in its lastErrors")

    return seen


def untroubled(clique: str) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        errors = items(view.get(CLIQUES, clique), "status", "lastErrors")
        return not errors or Unmet(f"lastErrors of {clique} still has {errors}")

    return seen
