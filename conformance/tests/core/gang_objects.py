"""What is expected of the PodGangs of a set whose pods all exist."""

from __future__ import annotations

from conformance.grove import labels, pods
from conformance.grove.expected import Expected
from conformance.grove.fields import at, condition_is, items, label, number, text
from conformance.history import sights
from conformance.history.query import History
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.tests.core.comparison import same

References = dict[str, list[str] | None]
"""By PodGroup: the pods, as namespace/name."""


def check_gangs(case: Case, wanted: Expected, view: View) -> None:
    """GANG-001, GANG-002, GANG-003, GANG-004, GANG-005."""
    floors, seen_floors, tied, seen_tied = {}, {}, {}, {}
    for gang in wanted.gangs.values():
        found = view.get("podgangs", gang.name)
        groups = items(found, "spec", "podgroups")
        floors[gang.name] = sorted([group, floor] for group, floor in gang.floors.items())
        seen_floors[gang.name] = sorted([text(g, "name"), number(g, "minReplicas")] for g in groups)
        tied[gang.name] = {"scheduler": case.implementation.scheduler_name, "priorityClassName": gang.priority}
        seen_tied[gang.name] = {
            "scheduler": label(found, labels.SCHEDULER),
            "priorityClassName": text(found, "spec", "priorityClassName"),
        }
        case.expect("GANG-004", f"Initialized of {gang.name}", "True", condition_is(found, "Initialized"))
    same(case, "GANG-001", "PodGroups with their floors", floors, seen_floors)
    same(case, "GANG-002", "podReferences", *references(wanted, view))
    same(case, "GANG-003", "scheduler and priority of gangs", tied, seen_tied)
    made = made_ungated(case.history) if case.history.records("pods") else "there were no pods"
    case.expect("GANG-005", "pods created without the gate", [], made)


def references(wanted: Expected, view: View) -> tuple[References, References]:
    """The pods that each PodGroup is to list, and those that it lists."""
    right: References = {}
    seen: References = {}
    for gang in wanted.gangs.values():
        groups = items(view.get("podgangs", gang.name), "spec", "podgroups")
        listed = {text(group, "name"): [_spelled(pod) for pod in items(group, "podReferences")] for group in groups}
        for clique in gang.floors:
            there = sights.pods_of(view, clique)
            right[clique] = sorted(_spelled(at(pod, "metadata")) for pod in there)
            seen[clique] = listed.get(clique)
    return right, seen


def _spelled(reference: object) -> str:
    return f"{text(reference, 'namespace')}/{text(reference, 'name')}"


def made_ungated(history: History) -> list[str]:
    """Names of the pods that had no gate in the very first record of them."""
    known: set[str] = set()
    found = set()
    for record in history.records("pods"):
        if record.uid not in known and not pods.gated(record.object):
            found.add(record.name)
        known.add(record.uid)
    return sorted(found)
