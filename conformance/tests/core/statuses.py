"""What the statuses of a set, its cliques and its scaling groups are to say once every pod is ready."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove import labels
from conformance.grove.expected import Expected
from conformance.grove.fields import condition, label, number, text
from conformance.grove.selectors import normal
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.suite.checks import ABSENT, Absent
from conformance.testing import predicates
from conformance.testing.comparison import same

Statuses = dict[str, dict[str, dict[str, object] | Absent]]
"""By requirement and object: what a status says; nothing where there is no such object."""

HEALTHY_CLIQUE: Mapping[str, tuple[str, str]] = {
    "PodCliqueScheduled": ("True", "SufficientScheduledPods"),
    "MinAvailableBreached": ("False", "SufficientReadyPods"),
}
HEALTHY_GROUP: Mapping[str, tuple[str, str]] = {
    "MinAvailableBreached": ("False", "SufficientAvailablePodCliqueScalingGroupReplicas"),
}
"""Conditions with their status and reason. Messages bind nobody."""


def check_statuses(case: Case, wanted: Expected, view: View, set_name: str) -> None:
    """CORE-010, CORE-011, CORE-012, CORE-013, CORE-030."""
    right, seen = told(wanted, view, set_name)
    for id, statuses in right.items():
        same(case, id, "statuses", statuses, seen[id])


def told(wanted: Expected, view: View, set_name: str) -> tuple[Mapping[str, Mapping[str, object]], Statuses]:
    """What the statuses are to say, and what they say."""
    ids = ("CORE-010", "CORE-011", "CORE-012", "CORE-013", "CORE-030")
    right: dict[str, dict[str, dict[str, object]]] = {id: {} for id in ids}
    seen: dict[str, dict[str, dict[str, object]]] = {id: {} for id in ids}

    def counts(id: str, resource: str, name: str, numbers: dict[str, int]) -> None:
        found = view.get(resource, name)
        generation = number(found, "metadata", "generation")
        right[id].setdefault(name, {}).update(numbers, observedGeneration=generation)
        shown = {key: number(found, "status", key) for key in (*numbers, "observedGeneration")}
        seen[id].setdefault(name, {}).update(shown)

    def conditions(id: str, resource: str, name: str, healthy: Mapping[str, tuple[str, str]]) -> None:
        found = view.get(resource, name)
        right[id].setdefault(name, {}).update({kind: list(told) for kind, told in healthy.items()})
        shown = {kind: condition(found, kind) for kind in healthy}
        seen[id].setdefault(name, {}).update({k: [text(c, "status"), text(c, "reason")] for k, c in shown.items()})

    def selector(resource: str, name: str, key: str, value: str) -> None:
        right["CORE-013"][name] = {key: normal(value)}
        seen["CORE-013"][name] = {key: normal(text(view.get(resource, name), "status", key))}

    def hashes(resource: str, name: str, wish: Mapping[str, str]) -> None:
        right["CORE-030"][name] = {key: value or "(some hash)" for key, value in wish.items()}
        seen["CORE-030"][name] = {key: text(view.get(resource, name), "status", key) for key in wish}

    templates = {found: label(view.get("podcliques", found), labels.TEMPLATE_HASH) for found in wanted.cliques}
    of_set = text(view.get("podcliquesets", set_name), "status", "currentGenerationHash")
    generation = {"currentPodCliqueSetGenerationHash": of_set}
    for clique in wanted.cliques.values():
        of_pods = {label(pod, labels.TEMPLATE_HASH) for pod in predicates.pods_of(view, clique.name)}
        right["CORE-030"][f"pods of {clique.name}"] = {"hashes": [templates[clique.name]]}
        seen["CORE-030"][f"pods of {clique.name}"] = {"hashes": sorted(of_pods)}
    replicas = len(wanted.services)
    every = {"replicas": replicas, "availableReplicas": replicas, "updatedReplicas": replicas}
    counts("CORE-010", "podcliquesets", set_name, every)
    selector("podcliquesets", set_name, "hpaPodSelector", wanted.selector)
    for clique in wanted.cliques.values():
        pods = clique.template.replicas
        every = {"replicas": pods, "scheduledReplicas": pods, "readyReplicas": pods, "scheduleGatedReplicas": 0}
        counts("CORE-011", "podcliques", clique.name, every)
        conditions("CORE-011", "podcliques", clique.name, HEALTHY_CLIQUE)
        selector("podcliques", clique.name, "hpaPodSelector", clique.selector)  # none for a member
        hashes("podcliques", clique.name, {"currentPodTemplateHash": templates[clique.name], **generation})
    for group in wanted.groups.values():
        keys = ("replicas", "scheduledReplicas", "availableReplicas", "updatedReplicas")
        counts("CORE-012", "podcliquescalinggroups", group.name, dict.fromkeys(keys, group.replicas))
        conditions("CORE-012", "podcliquescalinggroups", group.name, HEALTHY_GROUP)
        selector("podcliquescalinggroups", group.name, "selector", group.selector)
        hashes("podcliquescalinggroups", group.name, generation)
    absent = {
        about
        for resource, names in (("podcliques", wanted.cliques), ("podcliquescalinggroups", wanted.groups))
        for one in names
        if view.get(resource, one) is None
        for about in (one, f"pods of {one}")
    }
    said: Statuses = {
        id: {about: ABSENT if about in absent else status for about, status in statuses.items()}
        for id, statuses in seen.items()
    }
    return right, said
