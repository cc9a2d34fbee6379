"""The filter for required affinity and anti-affinity between pods."""

from __future__ import annotations

from collections import defaultdict

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.model import Node, Pod

Pair = tuple[str, str]
"""A topology domain, as label key and value."""


class InterPodAffinity(Plugin):
    """Rejects nodes in domains that lack the pods of the pod's affinity terms, that have pods matching its
    anti-affinity terms, or that have pods whose anti-affinity terms match the pod."""

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._affinity, self._anti_affinity = pod.affinity_terms, pod.anti_affinity_terms
        self._matching_pods: dict[Pair, int] = defaultdict(int)
        self._matching_pod_count = 0
        """The sum of `_matching_pods`."""
        self._forbidden_pods: dict[Pair, int] = defaultdict(int)
        self._repelled_domains: dict[Pair, int] = defaultdict(int)
        """Domains of pods whose anti-affinity terms match this pod."""
        self._matches_itself = bool(self._affinity) and self._matches_affinity(pod)
        for other, node in state.related_pods(pod):
            if self._affinity or self._anti_affinity or other.anti_affinity_terms:
                self.update(other, node, 1)

    @property
    def dynamic(self) -> bool:
        return bool(self._affinity or self._anti_affinity or any(self._repelled_domains.values()))

    @property
    def monotone(self) -> bool:
        return not self._affinity

    def refusal(self, node: Node) -> str:
        if self._affinity and self._lacks_affinity_pods(node):
            return "node didn't match pod affinity rules"
        labels = node.metadata.labels or {}
        if self._anti_affinity and any(
            self._forbidden_pods.get((term.key, labels[term.key]), 0) > 0
            for term in self._anti_affinity
            if term.key in labels
        ):
            return "node didn't match pod anti-affinity rules"
        if self._repelled_domains and any(self._repelled_domains.get(pair, 0) > 0 for pair in labels.items()):
            return "node didn't satisfy existing pods anti-affinity rules"
        return ""

    def update(self, other: Pod, node: Node, delta: int) -> None:
        labels = node.metadata.labels or {}
        if self._affinity and self._matches_affinity(other):
            for term in self._affinity:
                if term.key in labels:
                    self._matching_pods[term.key, labels[term.key]] += delta
                    self._matching_pod_count += delta
        for term in self._anti_affinity:
            if term.key in labels and term.matches(other.metadata, self.state.namespace_labels):
                self._forbidden_pods[term.key, labels[term.key]] += delta
        for term in other.anti_affinity_terms:
            if term.key in labels and term.matches(self.pod.metadata, self.state.namespace_labels):
                self._repelled_domains[term.key, labels[term.key]] += delta

    def _matches_affinity(self, other: Pod) -> bool:
        """Return whether a pod matches all terms of the affinity."""
        return all(term.matches(other.metadata, self.state.namespace_labels) for term in self._affinity)

    def _lacks_affinity_pods(self, node: Node) -> bool:
        labels = node.metadata.labels or {}
        if any(term.key not in labels for term in self._affinity):
            return True
        if all(self._matching_pods.get((term.key, labels[term.key]), 0) > 0 for term in self._affinity):
            return False
        # The first pod of a series of pods with affinity to one another may be placed anywhere.
        return not self._matches_itself or self._matching_pod_count > 0
