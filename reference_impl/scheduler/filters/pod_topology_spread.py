"""The filter for topology spread constraints that must hold (DoNotSchedule)."""

from __future__ import annotations

from collections import defaultdict

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.node_affinity import matches_node
from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.filters.taint_toleration import tolerates
from reference_impl.scheduler.model import Node, Pod
from reference_impl.scheduler.selectors import SpreadConstraint, selects, with_merged_labels


class PodTopologySpread(Plugin):
    """Rejects nodes in domains whose number of matching pods would exceed the number in the emptiest domain by more
    than `maxSkew`."""

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._constraints = [_Constraint(pod, constraint) for constraint in pod.spread_constraints]
        if not self._constraints:
            return
        self._keys = [constraint.spec.topology_key for constraint in self._constraints]
        for node in state.nodes:
            if self._has_all_keys(node):
                for constraint in self._constraints:
                    if constraint.includes(pod, node):
                        constraint.add(node, 0)
        for other, node in state.related_pods(pod):
            self.update(other, node, 1)

    @property
    def dynamic(self) -> bool:
        return bool(self._constraints)

    @property
    def monotone(self) -> bool:
        return not self._constraints

    def refusal(self, node: Node) -> str:
        for constraint in self._constraints:
            value = (node.metadata.labels or {}).get(constraint.spec.topology_key)
            if value is None:
                return "node didn't match pod topology spread constraints (missing required label)"
            if constraint.counts.get(value, 0) + constraint.self_matches - constraint.fewest > constraint.spec.max_skew:
                return "node didn't match pod topology spread constraints"
        return ""

    def update(self, other: Pod, node: Node, delta: int) -> None:
        if not self._constraints or other.metadata.namespace != self.pod.metadata.namespace:
            return
        if other.metadata.deletion_timestamp is not None or not self._has_all_keys(node):
            return
        for constraint in self._constraints:
            if constraint.counts_pod(other) and constraint.includes(self.pod, node):
                constraint.add(node, delta)

    def _has_all_keys(self, node: Node) -> bool:
        """Return whether the node has the topology keys of all constraints."""
        labels = node.metadata.labels or {}
        return all(key in labels for key in self._keys)


class _Constraint:
    """A constraint, and the number of matching pods by domain."""

    def __init__(self, pod: Pod, spec: SpreadConstraint) -> None:
        self.spec = spec
        self.selector = with_merged_labels(spec, pod.metadata.labels or {})
        self.everything = self.selector is not None and self.selector.empty
        """Whether the selector is empty, in which case kube-scheduler counts no pods."""
        self.self_matches = int(selects(self.selector, pod.metadata.labels))
        self.counts: dict[str, int] = defaultdict(int)
        self._fewest: int | None = None

    def add(self, node: Node, delta: int) -> None:
        """Add `delta` pods to the domain of a node, or remove them if `delta` is negative."""
        self.counts[node.metadata.label(self.spec.topology_key)] += delta
        self._fewest = None

    @property
    def fewest(self) -> int:
        """The number of pods in the emptiest domain, or 0 if there are fewer domains than `minDomains`."""
        if self._fewest is None:
            has_min_domains = len(self.counts) >= (self.spec.min_domains or 1)
            self._fewest = min(self.counts.values()) if has_min_domains else 0
        return self._fewest

    def counts_pod(self, pod: Pod) -> bool:
        """Return whether the constraint counts a pod of its namespace."""
        return not self.everything and selects(self.selector, pod.metadata.labels)

    def includes(self, pod: Pod, node: Node) -> bool:
        """Return whether the node counts as part of its domain."""
        if self.spec.node_affinity_policy == "Honor" and not matches_node(pod, node):
            return False
        return self.spec.node_taints_policy != "Honor" or tolerates(pod, node.spec.taints or ())
