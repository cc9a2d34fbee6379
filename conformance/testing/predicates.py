"""Predicates over a view that conformance tests wait for. A predicate that does not hold reports what is missing.

Pods are found by their owner and not by their labels, so that a wrong label fails only the requirement about that
label. Pods without an owner are found by the label of their PodClique; CORE-045 requires that pods have a controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from conformance.grove import pods
from conformance.grove.expected import ExpectedClique, ExpectedGang, ExpectedObjects
from conformance.grove.fields import controller, items, number, terminating, text
from conformance.grove.kinds import PODCLIQUES
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.record import Record
from conformance.history.view import View

Pods = list[Mapping[str, Any]]


def pods_of(view: View, clique: str) -> Pods:
    """Return the pods of the clique with this name that are not being deleted. Pods of an earlier clique with the same
    name, which wait for the garbage collector, are left out."""
    present = view.record(PODCLIQUES.plural, clique)
    return [pod for pod in view.grouped("pods", _clique, clique) if present is None or _may_own(present, pod)]


def pods_by_clique(view: View, cliques: Iterable[ExpectedClique]) -> dict[str, Pods]:
    """Return `pods_of` for each of these cliques."""
    return {clique.name: pods_of(view, clique.name) for clique in cliques}


def bound_counts(view: View, cliques: Sequence[ExpectedClique]) -> dict[str, int]:
    """Return clique → number of bound pods."""
    return {name: sum(map(pods.is_bound, members)) for name, members in pods_by_clique(view, cliques).items()}


def ready_counts(view: View, cliques: Sequence[ExpectedClique]) -> dict[str, int]:
    """Return clique → number of Ready pods."""
    return {name: sum(map(pods.is_ready, members)) for name, members in pods_by_clique(view, cliques).items()}


def sizes(cliques: Iterable[ExpectedClique]) -> dict[str, int]:
    """Return clique → desired number of pods."""
    return {clique.name: clique.template.replicas for clique in cliques}


def zero_counts(cliques: Iterable[ExpectedClique]) -> dict[str, int]:
    """Return clique → zero."""
    return {clique.name: 0 for clique in cliques}


@predicate
def all_exist(view: View, cliques: Sequence[ExpectedClique]) -> bool | Unmet:
    """Every clique has its desired number of pods."""
    return _have_minimums(sizes(cliques), {n: len(p) for n, p in pods_by_clique(view, cliques).items()}, "exist")


@predicate
def all_ungated(view: View, cliques: Sequence[ExpectedClique]) -> bool | Unmet:
    """Every pod of the cliques exists and no longer has Grove's gate."""
    ungated = {name: sum(not pods.is_gated(pod) for pod in p) for name, p in pods_by_clique(view, cliques).items()}
    return _have_minimums(sizes(cliques), ungated, "are ungated")


@predicate
def none_ungated(view: View, cliques: Sequence[ExpectedClique]) -> bool | Unmet:
    """No pod of the cliques has lost Grove's gate."""
    counts = {name: sum(not pods.is_gated(pod) for pod in p) for name, p in pods_by_clique(view, cliques).items()}
    ungated = [f"{count} pods of {name}" for name, count in counts.items() if count]
    return not ungated or Unmet(f"ungated: {', '.join(ungated)}")


def all_bound(cliques: Sequence[ExpectedClique]) -> Predicate:
    """Every pod of the cliques exists and is bound."""
    return lambda view: _have_minimums(sizes(cliques), bound_counts(view, cliques), "are bound")


@predicate
def none_bound(view: View, cliques: Sequence[ExpectedClique]) -> bool | Unmet:
    """No pod of the cliques is bound."""
    violations = [f"{count} pods of {name}" for name, count in bound_counts(view, cliques).items() if count]
    return not violations or Unmet(f"bound: {', '.join(violations)}")


@predicate
def all_placed(view: View, names: Iterable[str]) -> bool | Unmet:
    """The pods with these names are bound. This predicate is for pods that no clique owns."""
    waiting = [name for name in names if not pods.is_bound(view.get("pods", name) or {})]
    return not waiting or Unmet(f"{', '.join(waiting)} have no node")


@predicate
def none_placed(view: View, names: Iterable[str]) -> bool | Unmet:
    """No pod with one of these names is bound."""
    violations = [name for name in names if pods.is_bound(view.get("pods", name) or {})]
    return not violations or Unmet(f"bound: {', '.join(violations)}")


def is_admitted(expected: ExpectedObjects, gang: ExpectedGang) -> Predicate:
    """Every PodGroup of the gang has at least minReplicas bound pods."""
    cliques = expected.of_gang(gang.name)
    return lambda view: _have_minimums(gang.minimums, bound_counts(view, cliques), "are bound")


def has_minimum_ready(expected: ExpectedObjects, gang: ExpectedGang) -> Predicate:
    """Every PodGroup of the gang has at least minReplicas Ready pods."""
    cliques = expected.of_gang(gang.name)
    return lambda view: _have_minimums(gang.minimums, ready_counts(view, cliques), "are Ready")


@predicate
def is_available(view: View, set_name: str, replicas: int) -> bool | Unmet:
    """The set reports this number of available replicas for its current generation."""
    current = view.get("podcliquesets", set_name)
    if current is None:
        return Unmet(f"podcliquesets/{set_name} does not exist")
    reported, generation = number(current, "status", "availableReplicas"), number(current, "metadata", "generation")
    observed = number(current, "status", "observedGeneration")
    if reported == replicas and observed == generation:
        return True
    return Unmet(
        f"availableReplicas is {reported} of {replicas}, observedGeneration {observed} of generation {generation}"
    )


def _clique(record: Record) -> str:
    """Return the name of the clique that a pod belongs to. The name is empty if another object controls the pod or the
    pod is being deleted."""
    pod = record.object
    if terminating(pod) or text(controller(pod), "kind") not in ("", PODCLIQUES.kind):
        return ""
    return pods.clique(pod)


def _may_own(clique: Record, pod: Mapping[str, Any]) -> bool:
    """Return whether this clique may own a pod: the pod names this clique as its owner, or names no clique. A pod that
    has outlived an earlier clique of the same name names the UID of that clique."""
    owners = items(pod, "metadata", "ownerReferences")
    uids = [text(owner, "uid") for owner in owners if text(owner, "kind") == PODCLIQUES.kind]
    return not uids or clique.uid in uids


def _have_minimums(minimums: Mapping[str, int], actual: Mapping[str, int], verb: str) -> bool | Unmet:
    shortfalls = [f"{actual.get(name, 0)} of {minimum} pods of {name} {verb}" for name, minimum in minimums.items()
             if actual.get(name, 0) < minimum]  # fmt: skip
    return not shortfalls or Unmet("; ".join(shortfalls))
