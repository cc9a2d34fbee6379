"""Pods that replace others of their clique."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from conformance.grove.expected import ExpectedClique
from conformance.grove.fields import uid
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.testing import predicates


def pod_uids(view: View, cliques: Sequence[ExpectedClique]) -> set[str]:
    """Return the uids of the pods of cliques."""
    return {uid(pod) for clique in cliques for pod in predicates.pods_of(view, clique.name)}


@predicate
def has_lost_pods(view: View, cliques: Sequence[ExpectedClique], previous_uids: Collection[str]) -> bool | Unmet:
    """Return whether one of these pods is gone or being deleted."""
    return not pod_uids(view, cliques).issuperset(previous_uids) or Unmet("all pods are there")


@predicate
def are_replaced(view: View, cliques: Sequence[ExpectedClique], previous_uids: Collection[str]) -> bool | Unmet:
    """Return whether all pods of the cliques exist without a gate and are other pods than these."""
    if rest := pod_uids(view, cliques) & set(previous_uids):
        return Unmet(f"{len(rest)} pods are not replaced")
    return predicates.all_ungated(cliques)(view)
