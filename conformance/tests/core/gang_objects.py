"""The PodGangs of a set whose pods all exist: expected and observed contents, and the order of their creation."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.expected import ExpectedObjects
from conformance.grove.fields import at, condition_is, count, items, label, text
from conformance.history.view import View
from conformance.suite.outcomes.checks import ABSENT
from conformance.testing import predicates
from conformance.testing.comparison import Comparison, value_or_absent
from conformance.testing.scene import Span

GANGS = "podgangs"


def compare_minimums(expected_set: ExpectedObjects, span: Span) -> Comparison:
    """Return the expected and observed first minReplicas of PodGroups, which they had before any pod could be
    scheduled."""
    expected: dict[str, object] = {name: dict(gang.minimums) for name, gang in expected_set.gangs.items()}
    observed: dict[str, object] = dict.fromkeys(expected, ABSENT)
    for record in span.records(GANGS):
        groups = items(record.object, "spec", "podgroups")
        if groups and observed.get(record.name) is ABSENT:
            observed[record.name] = {text(group, "name"): count(group, "minReplicas") for group in groups}
    return expected, observed


def compare_later_minimums(expected_set: ExpectedObjects, view: View) -> Comparison:
    """Return the expected and observed current minReplicas of PodGroups. For standalone cliques, they may have been set
    to 0."""
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for gang in expected_set.gangs.values():
        gang_object = view.get(GANGS, gang.name)
        groups = {text(group, "name"): count(group, "minReplicas") for group in items(gang_object, "spec", "podgroups")}
        released_gangs = [
            group for group, minimum in groups.items() if not minimum and _is_standalone(expected_set, group)
        ]
        expected[gang.name] = {
            group: 0 if group in released_gangs else minimum for group, minimum in gang.minimums.items()
        }
        observed[gang.name] = value_or_absent(gang_object, groups)
    return expected, observed


def compare_references(expected_set: ExpectedObjects, view: View) -> Comparison:
    """Return the expected and observed pods that PodGroups reference, as namespace/name."""
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for gang in expected_set.gangs.values():
        gang_object = view.get(GANGS, gang.name)
        groups = items(gang_object, "spec", "podgroups")
        pods_by_group = {
            text(group, "name"): [_namespaced_name(reference) for reference in items(group, "podReferences")]
            for group in groups
        }
        for clique in gang.minimums:
            pods = predicates.pods_of(view, clique)
            expected[clique] = sorted(_namespaced_name(at(pod, "metadata")) for pod in pods)
            observed[clique] = value_or_absent(gang_object, sorted(pods_by_group.get(clique, ())))
    return expected, observed


def compare_schedulers(expected_set: ExpectedObjects, view: View, scheduler: str) -> Comparison:
    """Return the expected and observed scheduler of each gang."""
    gangs = {gang.name: view.get(GANGS, gang.name) for gang in expected_set.gangs.values()}
    observed: dict[str, object] = {
        name: value_or_absent(gang, label(gang, labels.SCHEDULER)) for name, gang in gangs.items()
    }
    return dict.fromkeys(gangs, scheduler), observed


def compare_initialized(expected_set: ExpectedObjects, view: View) -> Comparison:
    """Return the expected and observed condition Initialized of each gang."""
    gangs = {name: view.get(GANGS, name) for name in expected_set.gangs}
    observed = {name: value_or_absent(gang, condition_is(gang, "Initialized")) for name, gang in gangs.items()}
    return dict.fromkeys(gangs, "True"), dict(observed)


def initial_groups_by_gang(span: Span) -> dict[str, object]:
    """Return the PodGroups in the first record of each gang."""
    groups_by_gang: dict[str, object] = {}
    for record in span.records(GANGS):
        groups = items(record.object, "spec", "podgroups")
        groups_by_gang.setdefault(record.name, sorted(text(group, "name") for group in groups))
    return groups_by_gang


def _is_standalone(expected_set: ExpectedObjects, clique: str) -> bool:
    return clique in expected_set.cliques and labels.GROUP not in expected_set.cliques[clique].labels


def _namespaced_name(reference: object) -> str:
    return f"{text(reference, 'namespace')}/{text(reference, 'name')}"
