"""PodGangs of a set whose pods all exist: what is expected, what is seen, and how they came into being."""

from __future__ import annotations

from conformance.grove import labels, pods
from conformance.grove.expected import Expected
from conformance.grove.fields import at, condition_is, items, label, number, text
from conformance.history.record import DELETED
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


def early_references(span: Span) -> list[str]:
    """References of gangs to pods that did not exist yet."""
    created = _created(span, "pods")
    return sorted(
        {
            f"{record.name}: {_spelled(pod)}"
            for record in span.records(GANGS)
            for group in items(record.object, "spec", "podgroups")
            for pod in items(group, "podReferences")
            if record.kind != DELETED and record.revision < created.get(text(pod, "name"), record.revision + 1)
        }
    )


def before_their_gang(span: Span) -> list[str]:
    """Pods that were created while the gang of their label did not exist."""
    gangs = _created(span, GANGS)
    first = {record.name: record for record in reversed(span.records("pods"))}
    of_pod = {pod: gangs.get(label(record.object, labels.GANG), 0) for pod, record in first.items()}
    return sorted(pod for pod, record in first.items() if record.revision < of_pod[pod])


def created_ungated(span: Span) -> list[str]:
    """Names of the pods that had no gate in the very first record of them."""
    known: set[str] = set()
    found = set()
    for record in span.records("pods"):
        if record.uid not in known and not pods.gated(record.object):
            found.add(record.name)
        known.add(record.uid)
    return sorted(found)


def _spelled(reference: object) -> str:
    return f"{text(reference, 'namespace')}/{text(reference, 'name')}"


def _created(span: Span, resource: str) -> dict[str, int]:
    """By name: the revision at which each object first existed."""
    return {record.name: record.revision for record in reversed(span.records(resource))}
