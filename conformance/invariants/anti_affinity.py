"""SCHED-081: no pod is bound in the same domain as another pod if the required anti-affinity of one selects the other
(OR-11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.grove import pods, selectors
from conformance.grove.fields import Document, at, items, labels, text, texts
from conformance.invariants.bindings import BindingRule

_TERMS = ("spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution")


class PodsKeptApart(BindingRule):
    """SCHED-081. Terms with a namespaceSelector are not judged, because the labels of namespaces are not recorded."""

    id = "SCHED-081"
    statement = "no pod shares a domain with a pod that the anti-affinity of either keeps away"

    def concerns(self, pod: Document) -> bool:
        """Return whether the pod has a required anti-affinity."""
        return any(_terms(pod))

    def conflict(self, pod: Document, other: Document, nodes: Mapping[str, Document]) -> str:
        """Return the shared domain from which a required anti-affinity excludes one of the two pods; empty if there is
        no conflict."""
        for selecting_pod, neighbor in ((pod, other), (other, pod)):
            for term in _terms(selecting_pod):
                key = text(term, "topologyKey")
                domain = labels(nodes.get(pods.node(selecting_pod))).get(key)
                if (
                    domain
                    and labels(nodes.get(pods.node(neighbor))).get(key) == domain
                    and _selects(term, selecting_pod, neighbor)
                ):
                    return f"is in {key} {domain}, and a required anti-affinity keeps them apart"
        return ""


def _terms(pod: Document) -> Iterator[Document]:
    return (term for term in items(pod, *_TERMS) if at(term, "namespaceSelector") is None)


def _selects(term: Document, pod: Document, neighbor: Document) -> bool:
    namespaces = texts(term, "namespaces") or [text(pod, "metadata", "namespace")]
    return text(neighbor, "metadata", "namespace") in namespaces and selectors.matches(
        at(term, "labelSelector"), labels(neighbor)
    )
