"""PodGangs of a set whose pods all exist: what is expected, what is seen, and how they came into being."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.expected import Expected
from conformance.grove.fields import at, condition_is, items, label, number, text
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.comparison import Comparison, of
from conformance.testing.scene import Span

GANGS = "podgangs"


def minimums(wanted: Expected, view: View) -> Comparison:
    """By gang: its PodGroups with minReplicas."""
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for gang in wanted.gangs.values():
        found = view.get(GANGS, gang.name)
        groups = items(found, "spec", "podgroups")
        right[gang.name] = sorted([group, minimum] for group, minimum in gang.minimums.items())
        seen[gang.name] = of(found, sorted([text(g, "name"), number(g, "minReplicas")] for g in groups))
    return right, seen


def references(wanted: Expected, view: View) -> Comparison:
    """By PodGroup: the pods that it is to list, and those that it lists, as namespace/name."""
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for gang in wanted.gangs.values():
        found = view.get(GANGS, gang.name)
        groups = items(found, "spec", "podgroups")
        listed = {text(group, "name"): [_spelled(pod) for pod in items(group, "podReferences")] for group in groups}
        for clique in gang.minimums:
            own = predicates.pods_of(view, clique)
            right[clique] = sorted(_spelled(at(pod, "metadata")) for pod in own)
            seen[clique] = of(found, listed.get(clique))
    return right, seen


def assignments(wanted: Expected, view: View, scheduler: str) -> Comparison:
    """By gang: its scheduler and its priority."""
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for gang in wanted.gangs.values():
        found = view.get(GANGS, gang.name)
        right[gang.name] = {"scheduler": scheduler, "priorityClassName": gang.priority}
        assigned = {
            "scheduler": label(found, labels.SCHEDULER),
            "priorityClassName": text(found, "spec", "priorityClassName"),
        }
        seen[gang.name] = of(found, assigned)
    return right, seen


def initialized(wanted: Expected, view: View) -> Comparison:
    """By gang: its condition Initialized."""
    gangs = {gang: view.get(GANGS, gang) for gang in wanted.gangs}
    seen = {gang: of(found, condition_is(found, "Initialized")) for gang, found in gangs.items()}
    return dict.fromkeys(gangs, "True"), dict(seen)


def first_groups(span: Span) -> dict[str, object]:
    """The PodGroups in the very first record of each gang."""
    found: dict[str, object] = {}
    for record in span.records(GANGS):
        found.setdefault(record.name, sorted(text(g, "name") for g in items(record.object, "spec", "podgroups")))
    return found


def _spelled(reference: object) -> str:
    return f"{text(reference, 'namespace')}/{text(reference, 'name')}"
