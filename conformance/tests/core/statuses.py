"""The statuses of a set, its cliques and its scaling groups when every pod is Ready. Each function returns the expected
and the observed values by object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from conformance.grove import labels
from conformance.grove.expected import ExpectedObjects
from conformance.grove.fields import condition, condition_is, label, name, number, text
from conformance.grove.selectors import selects
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.comparison import Comparison, value_or_absent

SETS, CLIQUES, GROUPS = "podcliquesets", "podcliques", "podcliquescalinggroups"
Conditions = Mapping[str, tuple[str, str]]

HEALTHY_CLIQUE: Conditions = {
    "PodCliqueScheduled": ("True", "SufficientScheduledPods"),
    "MinAvailableBreached": ("False", "SufficientReadyPods"),
}
HEALTHY_GROUP: Conditions = {
    "MinAvailableBreached": ("False", "SufficientAvailablePodCliqueScalingGroupReplicas"),
}
"""Condition type → its status, and the reason that the API defines for that status."""


def all_comparisons(expected_set: ExpectedObjects, view: View, set_name: str) -> Iterator[Comparison]:
    """Yield the comparisons of this module, except for `compare_reasons`."""
    yield compare_set_status(expected_set, view, set_name)
    yield compare_clique_statuses(expected_set, view)
    yield compare_group_statuses(expected_set, view)
    yield compare_selectors(expected_set, view, set_name)
    yield compare_hashes(expected_set, view, set_name)


def compare_set_status(expected_set: ExpectedObjects, view: View, set_name: str) -> Comparison:
    """Return the expected and observed replica counts of the set. All replicas must be available and updated."""
    counts = dict.fromkeys(("replicas", "availableReplicas", "updatedReplicas"), len(expected_set.services))
    expected, observed = _counts(view, SETS, set_name, counts)
    return {set_name: expected}, {set_name: observed}


def compare_clique_statuses(expected_set: ExpectedObjects, view: View) -> Comparison:
    """Return the expected and observed pod counts and conditions of cliques."""
    counts = {
        clique.name: {
            **dict.fromkeys(("replicas", "scheduledReplicas", "readyReplicas"), clique.template.replicas),
            "scheduleGatedReplicas": 0,
        }
        for clique in expected_set.cliques.values()
    }
    return _healthy(view, CLIQUES, counts, HEALTHY_CLIQUE)


def compare_group_statuses(expected_set: ExpectedObjects, view: View) -> Comparison:
    """Return the expected and observed replica counts and conditions of scaling groups."""
    fields = ("replicas", "scheduledReplicas", "availableReplicas", "updatedReplicas")
    counts = {group.name: dict.fromkeys(fields, group.replicas) for group in expected_set.groups.values()}
    return _healthy(view, GROUPS, counts, HEALTHY_GROUP)


def compare_selectors(expected_set: ExpectedObjects, view: View, set_name: str) -> Comparison:
    """Return the expected and observed pod selectors for autoscalers, as the pods that they select. The selectors of
    cliques in scaling groups are not judged, because such cliques are not scaled individually."""
    cliques = expected_set.cliques.values()
    selected_parts = [(SETS, set_name, "hpaPodSelector", {clique.name for clique in cliques})]
    selected_parts += [
        (CLIQUES, clique.name, "hpaPodSelector", {clique.name}) for clique in cliques if not clique.group
    ]
    selected_parts += [
        (GROUPS, group, "selector", {clique.name for clique in cliques if clique.group == group})
        for group in expected_set.groups
    ]
    pods = predicates.pods_by_clique(view, cliques)
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for resource, owner, field, selected_pods in selected_parts:
        obj = view.get(resource, owner)
        selector = text(obj, "status", field)
        matches = [
            (name(pod), clique in selected_pods, selects(selector, pod)) for clique in pods for pod in pods[clique]
        ]
        expected[owner] = {"published": True, "pods": sorted(pod for pod, member, _ in matches if member)}
        published_selector = {
            "published": selector != "",
            "pods": sorted(pod for pod, _, selected in matches if selected),
        }
        observed[owner] = published_selector if resource == SETS else value_or_absent(obj, published_selector)
    return expected, observed


def compare_reasons(expected_set: ExpectedObjects, view: View) -> Comparison:
    """Return the expected and observed condition reasons of cliques and scaling groups."""
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for resource, names, healthy in (
        (CLIQUES, expected_set.cliques, HEALTHY_CLIQUE),
        (GROUPS, expected_set.groups, HEALTHY_GROUP),
    ):
        for object_name in names:
            obj = view.get(resource, object_name)
            expected[object_name] = {condition_type: reason for condition_type, (_, reason) in healthy.items()}
            observed[object_name] = value_or_absent(
                obj, {condition_type: text(condition(obj, condition_type), "reason") for condition_type in healthy}
            )
    return expected, observed


def compare_hashes(expected_set: ExpectedObjects, view: View, set_name: str) -> Comparison:
    """Return the expected and observed template hashes of cliques and pods, and the template and generation hashes that
    statuses report."""
    generation_hash = text(view.get(SETS, set_name), "status", "currentGenerationHash")
    generation = {"currentPodCliqueSetGenerationHash": generation_hash}
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for clique in expected_set.cliques.values():
        obj = view.get(CLIQUES, clique.name)
        template_hash = label(obj, labels.TEMPLATE_HASH)
        pod_hashes = {label(pod, labels.TEMPLATE_HASH) for pod in predicates.pods_of(view, clique.name)}
        expected[f"pods of {clique.name}"] = {"hashes": [template_hash]}
        observed[f"pods of {clique.name}"] = value_or_absent(obj, {"hashes": sorted(pod_hashes)})
        hash_by_field = {"currentPodTemplateHash": template_hash, **generation}
        expected[clique.name] = _nonempty_hashes(hash_by_field)
        observed[clique.name] = value_or_absent(obj, _status_fields(obj, hash_by_field))
    for group in expected_set.groups:
        obj = view.get(GROUPS, group)
        expected[group] = _nonempty_hashes(generation)
        observed[group] = value_or_absent(obj, _status_fields(obj, generation))
    return expected, observed


def _nonempty_hashes(hash_by_field: Mapping[str, str]) -> dict[str, str]:
    """Return the hashes. In place of an empty hash, return a placeholder that does not match any status."""
    return {field: value or "(some hash)" for field, value in hash_by_field.items()}


def _status_fields(obj: Mapping[str, object] | None, fields: Iterable[str]) -> dict[str, str]:
    return {field: text(obj, "status", field) for field in fields}


def _counts(
    view: View, resource: str, name: str, counts: Mapping[str, int]
) -> tuple[dict[str, object], dict[str, object]]:
    """Return the expected and observed counts of a status. The status must report the current generation."""
    obj = view.get(resource, name)
    expected: dict[str, object] = {**counts, "observedGeneration": number(obj, "metadata", "generation")}
    return expected, {field: number(obj, "status", field) for field in expected}


def _healthy(
    view: View, resource: str, counts: Mapping[str, Mapping[str, int]], healthy_conditions: Conditions
) -> Comparison:
    """Return the expected and observed counts and conditions in the statuses of these objects."""
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for owner, object_counts in counts.items():
        obj = view.get(resource, owner)
        expected_status, observed_status = _counts(view, resource, owner, object_counts)
        for condition_type, (status, _) in healthy_conditions.items():
            expected_status[condition_type], observed_status[condition_type] = status, condition_is(obj, condition_type)
        expected[owner], observed[owner] = expected_status, value_or_absent(obj, observed_status)
    return expected, observed
