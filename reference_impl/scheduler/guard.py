"""The filters of a shape whose results depend on where other pods are."""

from __future__ import annotations

from collections.abc import Iterable

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.dynamic_resources import DynamicResources
from reference_impl.scheduler.filters.feasibility import POD_FILTERS, refusal
from reference_impl.scheduler.filters.inter_pod_affinity import InterPodAffinity
from reference_impl.scheduler.filters.node_volume_limits import NodeVolumeLimits
from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.filters.volume_binding import Choice, VolumeBinding
from reference_impl.scheduler.model import Node, Pod
from reference_impl.scheduler.selectors import Term

Profile = frozenset[object]
"""The registered terms that match a pod."""


class Terms:
    """The affinity, anti-affinity and spread terms of waiting pods, and the anti-affinity terms of pods on nodes."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._by_label: dict[tuple[str, str], dict[object, Term]] = {}
        self._generic: dict[object, Term] = {}
        self.keys: set[str] = set()
        """The topology keys of all terms."""
        self._profiles: dict[str, Profile] = {}

    def add(self, terms: Iterable[Term]) -> None:
        """Add terms. A term with match labels is indexed by one of its labels."""
        for term in terms:
            self._profiles.clear()
            self.keys.add(term.key)
            label = next(iter((term.selector.match_labels or {}).items()), None) if term.selector else None
            (self._by_label.setdefault(label, {}) if label else self._generic)[term.identity] = term

    def profile(self, pod: Pod) -> Profile:
        """Return the terms that match a pod."""
        if not self.keys:
            return frozenset()
        if (cached := self._profiles.get(pod.metadata.uid)) is not None:
            return cached
        indexed_terms = [self._by_label.get(label, {}) for label in (pod.metadata.labels or {}).items()]
        namespace_labels = self._state.namespace_labels
        profile: Profile = frozenset(
            key
            for terms in (self._generic, *indexed_terms)
            for key, term in terms.items()
            if term.matches(pod.metadata, namespace_labels)
        )
        self._profiles[pod.metadata.uid] = profile
        return profile


def relations(pod: Pod, profile: Profile) -> frozenset[object]:
    """Return the keys of a pod's own terms and of the terms that match it. Two pods can affect each other's placement
    only if they share a key."""
    return frozenset({*profile, *(term.identity for term in pod.terms)})


class Guard:
    """The dynamic filters for equal pods."""

    def __init__(self, pod: Pod, state: ClusterState, profile: Profile) -> None:
        plugins = [plugin(pod, state) for plugin in POD_FILTERS]
        self.pod = pod
        self.static_filters = [plugin for plugin in plugins if not plugin.dynamic]
        """Filters whose results do not depend on other pods."""
        self._plugins: list[Plugin] = [
            plugin for plugin in plugins if plugin.dynamic or (profile and isinstance(plugin, InterPodAffinity))
        ]
        self.monotone = all(plugin.monotone for plugin in self._plugins)
        self.distinguishes_nodes = any(
            isinstance(plugin, (VolumeBinding, NodeVolumeLimits)) for plugin in self._plugins
        ) or any(isinstance(plugin, DynamicResources) and plugin.has_allocated_claims for plugin in plugins)
        """Whether nodes can differ by more than their labels and the pods on them."""

    def __bool__(self) -> bool:
        return bool(self._plugins)

    def refusal(self, node: Node) -> str:
        """Return the filter that currently rejects a node and its reason, or an empty string if no filter rejects
        it."""
        return refusal(self._plugins, node)

    def update(self, pod: Pod, node: Node, delta: int) -> None:
        """Update the filters for pods that are placed, or removed if `delta` is negative."""
        for plugin in self._plugins:
            plugin.update(pod, node, delta)

    def choice(self, node: Node) -> Choice:
        """Return the volumes for the pod's unbound claims on a node."""
        return next((plugin.choice(node) for plugin in self._plugins if isinstance(plugin, VolumeBinding)), [])
