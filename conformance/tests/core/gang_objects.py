"""PodGangs of a set whose pods all exist: what is expected, what is seen, and how they came into being."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.expected import Expected
from conformance.grove.fields import at, condition_is, count, items, label, text
from conformance.history.view import View
from conformance.suite.outcomes.checks import ABSENT
from conformance.testing import predicates
from conformance.testing.comparison import Comparison, of
from conformance.testing.scene import Span

GANGS = "podgangs"


def minimums(wanted: Expected, span: Span) -> Comparison:
    """By gang: its PodGroups with the minReplicas that they had first, before anything could be scheduled."""
    right: dict[str, object] = {name: dict(gang.minimums) for name, gang in wanted.gangs.items()}
    seen: dict[str, object] = dict.fromkeys(right, ABSENT)
    for record in span.records(GANGS):
        groups = items(record.object, "spec", "podgroups")
        if groups and seen.get(record.name) is ABSENT:
            seen[record.name] = {text(group, "name"): count(group, "minReplicas") for group in groups}
    return right, seen


def later_minimums(wanted: Expected, view: View) -> Comparison:
    """By gang: its PodGroups with minReplicas; of a standalone clique it may have been released."""
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for gang in wanted.gangs.values():
        found = view.get(GANGS, gang.name)
        groups = {text(group, "name"): count(group, "minReplicas") for group in items(found, "spec", "podgroups")}
        released = [group for group, least in groups.items() if not least and _standalone(wanted, group)]
        right[gang.name] = {group: 0 if group in released else least for group, least in gang.minimums.items()}
        seen[gang.name] = of(found, groups)
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
            seen[clique] = of(found, sorted(listed.get(clique, ())))
    return right, seen


def schedulers(wanted: Expected, view: View, scheduler: str) -> Comparison:
    """By gang: its scheduler."""
    gangs = {gang.name: view.get(GANGS, gang.name) for gang in wanted.gangs.values()}
    seen: dict[str, object] = {name: of(found, label(found, labels.SCHEDULER)) for name, found in gangs.items()}
    return dict.fromkeys(gangs, scheduler), seen


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


def _standalone(wanted: Expected, clique: str) -> bool:
    return clique in wanted.cliques and labels.GROUP not in wanted.cliques[clique].labels


def _spelled(reference: object) -> str:
    return f"{text(reference, 'namespace')}/{text(reference, 'name')}"
