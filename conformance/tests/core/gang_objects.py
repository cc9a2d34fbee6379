"""What is expected of the PodGangs of a set whose pods all exist."""

from __future__ import annotations

from conformance.grove import labels, pods
from conformance.grove.expected import Expected
from conformance.grove.fields import at, condition_is, items, label, number, text
from conformance.history.query import History
from conformance.history.record import DELETED
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.checks import ABSENT, Absent
from conformance.testing import predicates
from conformance.testing.comparison import of, same

References = dict[str, list[str] | Absent | None]
"""By PodGroup: the pods, as namespace/name."""


def check_gangs(case: Case, wanted: Expected, view: View) -> None:
    """GANG-001, GANG-002, GANG-003, GANG-004, GANG-005, GANG-023, GANG-024."""
    floors, tied, initialized = dict[str, object](), dict[str, object](), dict[str, object]()
    seen_floors, seen_tied, seen_initialized = dict[str, object](), dict[str, object](), dict[str, object]()
    for gang in wanted.gangs.values():
        found = view.get("podgangs", gang.name)
        groups = items(found, "spec", "podgroups")
        floors[gang.name] = sorted([group, floor] for group, floor in gang.floors.items())
        seen_floors[gang.name] = of(found, sorted([text(g, "name"), number(g, "minReplicas")] for g in groups))
        tied[gang.name] = {"scheduler": case.implementation.scheduler_name, "priorityClassName": gang.priority}
        scheduler, priority = label(found, labels.SCHEDULER), text(found, "spec", "priorityClassName")
        seen_tied[gang.name] = of(found, {"scheduler": scheduler, "priorityClassName": priority})
        initialized[gang.name] = "True"
        seen_initialized[gang.name] = of(found, condition_is(found, "Initialized"))
    same(case, "GANG-001", "PodGroups with their floors", floors, seen_floors)
    same(case, "GANG-002", "podReferences", *references(wanted, view))
    same(case, "GANG-004", "Initialized of gangs", initialized, seen_initialized)
    same(case, "GANG-003", "scheduler and priority of gangs", tied, seen_tied)
    there = bool(case.history.records("pods"))
    made, early = made_ungated(case.history), before_their_gang(case.history)
    case.expect("GANG-005", "pods created without the gate", [], made if there else ABSENT)
    first, right = first_groups(case.history), {gang.name: sorted(gang.floors) for gang in wanted.gangs.values()}
    seen_first: dict[str, object] = {**dict.fromkeys(right, ABSENT), **first}
    same(case, "GANG-023", "PodGroups of gangs as they were made", right, seen_first)
    case.expect("GANG-023", "references to pods that had not been made", [], early_references(case.history))
    case.expect("GANG-024", "pods that were made before their gang", [], early if there else ABSENT)


def references(wanted: Expected, view: View) -> tuple[References, References]:
    """The pods that each PodGroup is to list, and those that it lists."""
    right: References = {}
    seen: References = {}
    for gang in wanted.gangs.values():
        found = view.get("podgangs", gang.name)
        groups = items(found, "spec", "podgroups")
        listed = {text(group, "name"): [_spelled(pod) for pod in items(group, "podReferences")] for group in groups}
        for clique in gang.floors:
            there = predicates.pods_of(view, clique)
            right[clique] = sorted(_spelled(at(pod, "metadata")) for pod in there)
            seen[clique] = of(found, listed.get(clique))
    return right, seen


def _spelled(reference: object) -> str:
    return f"{text(reference, 'namespace')}/{text(reference, 'name')}"


def first_groups(history: History) -> dict[str, list[str]]:
    """The PodGroups in the very first record of each gang."""
    found: dict[str, list[str]] = {}
    for record in history.records("podgangs"):
        found.setdefault(record.name, sorted(text(g, "name") for g in items(record.object, "spec", "podgroups")))
    return found


def early_references(history: History) -> list[str]:
    """References to pods that a gang had before the pods were made."""
    made = _made(history, "pods")
    return sorted(
        {
            f"{record.name}: {_spelled(pod)}"
            for record in history.records("podgangs")
            for group in items(record.object, "spec", "podgroups")
            for pod in items(group, "podReferences")
            if record.kind != DELETED and record.revision < made.get(text(pod, "name"), record.revision + 1)
        }
    )


def before_their_gang(history: History) -> list[str]:
    """Pods that were made while the gang of their label was not there."""
    gangs = _made(history, "podgangs")
    first = {record.name: record for record in reversed(history.records("pods"))}
    of = {pod: gangs.get(label(record.object, labels.GANG), 0) for pod, record in first.items()}
    return sorted(pod for pod, record in first.items() if record.revision < of[pod])


def _made(history: History, resource: str) -> dict[str, int]:
    """By name: the revision at which each object was first there."""
    return {record.name: record.revision for record in reversed(history.records(resource))}


def made_ungated(history: History) -> list[str]:
    """Names of the pods that had no gate in the very first record of them."""
    known: set[str] = set()
    found = set()
    for record in history.records("pods"):
        if record.uid not in known and not pods.gated(record.object):
            found.add(record.name)
        known.add(record.uid)
    return sorted(found)
