"""What cliques, scaling groups and sets say of pods in all states."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from conformance.grove import health, labels
from conformance.grove.expected import Clique, Expected, expected
from conformance.grove.fields import at, condition, label, name, number, text
from conformance.grove.health import Health
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.requirement import requirements
from conformance.testing import predicates
from conformance.testing.comparison import same

SET = "health"
SCHEDULED, BREACHED = "PodCliqueScheduled", "MinAvailableBreached"


@requirements("CORE-016", "CORE-017", "CORE-018", "CORE-019", "INV-001", "INV-003", "INV-004", "INV-005")
def test_a_clique_says_of_its_pods_what_they_are(case: Case) -> None:
    case.nodes("tiny", 1)
    cases = {health.name: health for health in health.cases()}
    workload = workload_of(case, cases)
    wanted = expected(workload)
    case.create(workload)
    case.until("CORE-016", "every pod is bound", predicates.all_bound(list(wanted.cliques.values())))

    for clique in wanted.cliques.values():
        set_states(case, clique, cases[clique.template.name])
    view = case.settled("the statuses say what the pods are", told(wanted, cases))
    for id, (right, seen) in statements(wanted, cases, view).items():
        same(case, id, "statuses", right, seen)

    # The same pods, changed, when a second has passed since: the condition's time moves with its status only. A spare
    # pod that becomes ready changes what is said in the condition, not the status.
    case.quiet(1.1, real=True)
    before = condition(view.get("podcliques", f"{SET}-0-crashed"), BREACHED)
    for changed in ("unready", "crashed", "spare"):
        set_states(case, clique_of(wanted, changed), cases["serving"])
    for changed in ("unready", "crashed"):
        what = f"the breach of {changed} ends when its pods are ready"
        case.until("CORE-017", what, breached(clique_of(wanted, changed).name, "False"))
    case.until("CORE-017", "a spare pod becomes ready", counted(clique_of(wanted, "spare").name, {"readyReplicas": 2}))
    after = condition(case.history.view().get("podcliques", f"{SET}-0-crashed"), BREACHED)
    case.expect("CORE-019", "the transition time moves with the status", True, earlier(before, after))
    case.expect("CORE-019", "transition times that moved without the status", [], moved(case))

    # A pod that is being deleted is none of the clique's any more, however long it takes to go.
    serving = clique_of(wanted, "serving")
    leaving = [take_away(case, serving)]
    wish = {"replicas": 2, "scheduledReplicas": 2, "readyReplicas": 1}
    case.eventually("CORE-018", "a pod that is being deleted is replaced and not counted", counted(serving.name, wish))
    case.expect("CORE-018", "indices of the pods then", ["0", "1"], indices(case, serving))

    # An operator that has just started knows as much of it as one that has seen it all (OBJ-264).
    recovered = clique_of(wanted, "recovered")
    case.roles.restart("operator")
    leaving.append(take_away(case, recovered))
    what = "an operator that has been restarted replaces a pod that is being deleted"
    case.eventually("CORE-018", what, counted(recovered.name, wish))
    case.expect("CORE-018", "indices of the pods then", ["0", "1"], indices(case, recovered))
    case.expect("CORE-018", "more pods ready or gated than there are", [], overcounted(case))
    for pod in leaving:
        case.patch("pods", pod, {"metadata": {"annotations": {health.HOLD_DELETION: None}}})


def take_away(case: Case, clique: Clique) -> str:
    """Deletes a pod of a clique, which then stays Terminating; gives its name."""
    leaving = name(predicates.pods_of(case.history.view(), clique.name)[0])
    case.patch("pods", leaving, {"metadata": {"annotations": {health.HOLD_DELETION: "yes"}}})
    case.delete("pods", leaving)
    return leaving


def indices(case: Case, clique: Clique) -> list[str]:
    return sorted(label(pod, labels.POD_INDEX) for pod in predicates.pods_of(case.history.view(), clique.name))


def workload_of(case: Case, cases: Mapping[str, Health]) -> dict[str, Any]:
    """One set with a clique for each case, all alike but for their floors."""
    workload = case.workload("waiting", setName=SET)
    cliques = workload["spec"]["template"]["cliques"]
    [pattern] = cliques
    cliques.clear()
    for health_case in cases.values():
        clique = copy.deepcopy(pattern)
        clique["name"] = clique["spec"]["roleName"] = health_case.name
        clique["spec"] |= {"replicas": len(health_case.pods), "minAvailable": health_case.floor}
        cliques.append(clique)
    return workload


def clique_of(wanted: Expected, template: str) -> Clique:
    return wanted.cliques[f"{SET}-0-{template}"]


def set_states(case: Case, clique: Clique, wanted: Health) -> None:
    """Gives each pod of a clique, in the order of their indices, the state of a case."""
    found = sorted(predicates.pods_of(case.history.view(), clique.name), key=lambda pod: label(pod, labels.POD_INDEX))
    for pod, state in zip(found, wanted.pods, strict=False):
        case.patch("pods", name(pod), health.status(pod, state), subresource="status")


def statements(
    wanted: Expected, cases: Mapping[str, Health], view: View
) -> dict[str, tuple[dict[str, object], dict[str, object]]]:
    """By requirement: what is to be said of each clique, and what is said."""
    counts_right: dict[str, object] = {}
    counts_seen: dict[str, object] = {}
    health_right: dict[str, object] = {}
    health_seen: dict[str, object] = {}
    for clique in wanted.cliques.values():
        found, right = view.get("podcliques", clique.name), cases[clique.template.name]
        counts_right[clique.name] = [len(right.pods), "True"]
        counts_seen[clique.name] = [
            number(found, "status", "scheduledReplicas"),
            text(condition(found, SCHEDULED), "status"),
        ]
        reason = "InsufficientReadyPods" if right.breached else "SufficientReadyPods"
        health_right[clique.name] = [right.ready, str(right.breached), reason]
        told = condition(found, BREACHED)
        ready = number(found, "status", "readyReplicas")
        health_seen[clique.name] = [ready, text(told, "status"), text(told, "reason")]
    return {"CORE-016": (counts_right, counts_seen), "CORE-017": (health_right, health_seen)}


def told(wanted: Expected, cases: Mapping[str, Health]) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        return all(right == seen for right, seen in statements(wanted, cases, view).values()) or Unmet("not yet")

    return seen


def breached(clique: str, status: str) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = text(condition(view.get("podcliques", clique), BREACHED), "status")
        return found == status or Unmet(f"{BREACHED} of {clique} is {found or 'absent'}")

    return seen


def counted(clique: str, wish: Mapping[str, int]) -> predicates.Predicate:
    def seen(view: View) -> bool | Unmet:
        found = view.get("podcliques", clique)
        said = {key: number(found, "status", key) for key in wish}
        return said == dict(wish) or Unmet(f"{clique} says {said}, not {dict(wish)}")

    return seen


def earlier(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    return "" < text(before, "lastTransitionTime") < text(after, "lastTransitionTime")


def moved(case: Case) -> list[str]:
    """Conditions whose transition time changed while their status did not."""
    found: list[str] = []
    last: dict[tuple[str, str], tuple[str, str]] = {}
    for record in case.history.records("podcliques"):
        for kind in (SCHEDULED, BREACHED):
            entry = condition(record.object, kind)
            now = (text(entry, "status"), text(entry, "lastTransitionTime"))
            then = last.get((record.name, kind), now)
            if now[0] == then[0] and now[1] != then[1]:
                found.append(f"{record.name} {kind}={now[0]}: {then[1]} → {now[1]}")
            last[record.name, kind] = now
    return found


def overcounted(case: Case) -> list[str]:
    """States of cliques in which ready and gated pods are together more than the pods that there are."""
    found = []
    for record in case.history.records("podcliques"):
        total = number(record.object, "status", "replicas") or 0
        parts = [number(record.object, "status", key) or 0 for key in ("readyReplicas", "scheduleGatedReplicas")]
        if sum(parts) > total and at(record.object, "status") is not None:
            found.append(f"{record.name}: {parts[0]} ready and {parts[1]} gated of {total}")
    return found
