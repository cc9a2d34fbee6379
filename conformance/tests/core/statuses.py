"""Statuses of a set, its cliques and its scaling groups once every pod is ready: each function returns what is expected
and what is seen, by object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from conformance.grove import labels
from conformance.grove.expected import Expected
from conformance.grove.fields import condition, condition_is, label, name, number, text
from conformance.grove.selectors import selects
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.comparison import Comparison, of

SETS, CLIQUES, GROUPS = "podcliquesets", "podcliques", "podcliquescalinggroups"
Conditions = Mapping[str, tuple[str, str]]

HEALTHY_CLIQUE: Conditions = {
    "PodCliqueScheduled": ("True", "SufficientScheduledPods"),
    "MinAvailableBreached": ("False", "SufficientReadyPods"),
}
HEALTHY_GROUP: Conditions = {
    "MinAvailableBreached": ("False", "SufficientAvailablePodCliqueScalingGroupReplicas"),
}
"""Conditions with their status, and the reason that the API defines for it."""


def every(wanted: Expected, view: View, set_name: str) -> Iterator[Comparison]:
    """All comparisons of this module."""
    yield of_set(wanted, view, set_name)
    yield of_cliques(wanted, view)
    yield of_groups(wanted, view)
    yield selectors(wanted, view, set_name)
    yield hashes(wanted, view, set_name)


def of_set(wanted: Expected, view: View, set_name: str) -> Comparison:
    """The replicas of the set: all available and updated."""
    counts = dict.fromkeys(("replicas", "availableReplicas", "updatedReplicas"), len(wanted.services))
    right, seen = _counts(view, SETS, set_name, counts)
    return {set_name: right}, {set_name: seen}


def of_cliques(wanted: Expected, view: View) -> Comparison:
    """Pods of the cliques, and their conditions."""
    counts = {
        clique.name: {
            **dict.fromkeys(("replicas", "scheduledReplicas", "readyReplicas"), clique.template.replicas),
            "scheduleGatedReplicas": 0,
        }
        for clique in wanted.cliques.values()
    }
    return _healthy(view, CLIQUES, counts, HEALTHY_CLIQUE)


def of_groups(wanted: Expected, view: View) -> Comparison:
    """Replicas of the scaling groups, and their condition."""
    fields = ("replicas", "scheduledReplicas", "availableReplicas", "updatedReplicas")
    counts = {group.name: dict.fromkeys(fields, group.replicas) for group in wanted.groups.values()}
    return _healthy(view, GROUPS, counts, HEALTHY_GROUP)


def selectors(wanted: Expected, view: View, set_name: str) -> Comparison:
    """The pod selectors for autoscalers, by the pods that they select. Those of cliques of scaling groups, which nobody
    scales, are not looked at."""
    cliques = wanted.cliques.values()
    parts = [(SETS, set_name, "hpaPodSelector", {clique.name for clique in cliques})]
    parts += [(CLIQUES, clique.name, "hpaPodSelector", {clique.name}) for clique in cliques if not clique.group]
    parts += [
        (GROUPS, group, "selector", {clique.name for clique in cliques if clique.group == group})
        for group in wanted.groups
    ]
    pods = predicates.by_clique(view, cliques)
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for resource, owner, field, members in parts:
        found = view.get(resource, owner)
        selector = text(found, "status", field)
        own = [(name(pod), clique in members, selects(selector, pod)) for clique in pods for pod in pods[clique]]
        right[owner] = {"published": True, "pods": sorted(pod for pod, member, _ in own if member)}
        published = {"published": selector != "", "pods": sorted(pod for pod, _, selected in own if selected)}
        seen[owner] = published if resource == SETS else of(found, published)
    return right, seen


def reasons(wanted: Expected, view: View) -> Comparison:
    """The reasons of the conditions of cliques and scaling groups."""
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for resource, names, healthy in ((CLIQUES, wanted.cliques, HEALTHY_CLIQUE), (GROUPS, wanted.groups, HEALTHY_GROUP)):
        for each in names:
            found = view.get(resource, each)
            right[each] = {kind: reason for kind, (_, reason) in healthy.items()}
            seen[each] = of(found, {kind: text(condition(found, kind), "reason") for kind in healthy})
    return right, seen


def hashes(wanted: Expected, view: View, set_name: str) -> Comparison:
    """Template hashes of cliques and pods, and what statuses repeat of them and of the set's generation hash."""
    of_set = text(view.get(SETS, set_name), "status", "currentGenerationHash")
    generation = {"currentPodCliqueSetGenerationHash": of_set}
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for clique in wanted.cliques.values():
        found = view.get(CLIQUES, clique.name)
        of_clique = label(found, labels.TEMPLATE_HASH)
        of_pods = {label(pod, labels.TEMPLATE_HASH) for pod in predicates.pods_of(view, clique.name)}
        right[f"pods of {clique.name}"] = {"hashes": [of_clique]}
        seen[f"pods of {clique.name}"] = of(found, {"hashes": sorted(of_pods)})
        wish = {"currentPodTemplateHash": of_clique, **generation}
        right[clique.name] = _some(wish)
        seen[clique.name] = of(found, _status(found, wish))
    for group in wanted.groups:
        found = view.get(GROUPS, group)
        right[group] = _some(generation)
        seen[group] = of(found, _status(found, generation))
    return right, seen


def _some(wish: Mapping[str, str]) -> dict[str, str]:
    """An empty hash is never right."""
    return {field: value or "(some hash)" for field, value in wish.items()}


def _status(found: Mapping[str, object] | None, fields: Iterable[str]) -> dict[str, str]:
    return {field: text(found, "status", field) for field in fields}


def _counts(
    view: View, resource: str, name: str, counts: Mapping[str, int]
) -> tuple[dict[str, object], dict[str, object]]:
    """Numbers of a status, which is one of the present generation."""
    found = view.get(resource, name)
    right: dict[str, object] = {**counts, "observedGeneration": number(found, "metadata", "generation")}
    return right, {field: number(found, "status", field) for field in right}


def _healthy(view: View, resource: str, counts: Mapping[str, Mapping[str, int]], healthy: Conditions) -> Comparison:
    """Numbers of the statuses of these objects, and their conditions."""
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for owner, numbers in counts.items():
        found = view.get(resource, owner)
        expected, reported = _counts(view, resource, owner, numbers)
        for kind, (status, _) in healthy.items():
            expected[kind], reported[kind] = status, condition_is(found, kind)
        right[owner], seen[owner] = expected, of(found, reported)
    return right, seen
