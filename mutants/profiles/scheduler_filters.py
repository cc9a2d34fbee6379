"""Mutants of the scheduler that ignore one of the filters that Kubernetes documents, or that apply it to bound pods but
not within a gang."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from mutants.profiles.scheduler_placement import breaks
from mutants.replacement import Original, around, replace
from reference_impl.scheduler import model
from reference_impl.scheduler.filters.inter_pod_affinity import InterPodAffinity
from reference_impl.scheduler.filters.node_ports import NodePorts
from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.filters.pod_topology_spread import PodTopologySpread
from reference_impl.scheduler.filters.volume_binding import VolumeBinding
from reference_impl.scheduler.filters.volume_restrictions import VolumeRestrictions
from reference_impl.scheduler.model import Container, Node, Pod
from reference_impl.scheduler.requests import Resources, requests

NO_REASON = ""
"""The empty reason: the node is not rejected."""


def _disable_filter(plugin: type[Plugin], *words: str) -> None:
    """Make a filter accept all nodes. With `words`, ignore only the reasons that contain one of the words."""
    original = plugin.refusal

    def refusal(self: Plugin, node: Node) -> str:
        reason = original(self, node)
        return NO_REASON if not words or any(word in reason for word in words) else reason

    replace(plugin, "refusal", refusal)


@breaks("binds two pods with one host port to a node", "OR-10", caught_by="SCHED-080")
def _host_ports_ignored() -> None:
    _disable_filter(NodePorts)


@breaks("ignores the anti-affinity of the pod that it places", "OR-11", caught_by="SCHED-081")
def _anti_affinity_ignored() -> None:
    _disable_filter(InterPodAffinity, "anti-affinity rules")


@breaks("ignores the anti-affinity of bound pods", "OR-11", caught_by="SCHED-081")
def _others_anti_affinity_ignored() -> None:
    _disable_filter(InterPodAffinity, "existing pods anti-affinity")


@breaks("ignores required pod affinity", "OR-12", caught_by="SCHED-082")
def _affinity_ignored() -> None:
    _disable_filter(InterPodAffinity, "pod affinity rules")


@breaks("ignores topology spread constraints", "OR-13", caught_by="SCHED-083")
def _spread_ignored() -> None:
    _disable_filter(PodTopologySpread)


@breaks("spreads pods beside bound ones only", "OR-13", caught_by="SCHED-083")
@around(PodTopologySpread, "update")
def _spread_within_gangs_ignored(
    original: Original, self: PodTopologySpread, other: Pod, node: Node, delta: int
) -> None:
    if other.spec.node_name:
        original(self, other, node, delta)


@breaks("binds pods whose claims do not exist", "OR-14", caught_by="SCHED-084")
def _claims_unchecked() -> None:
    _disable_filter(VolumeRestrictions, "not found")
    _disable_filter(VolumeBinding, "not found")


def _with_requests(change: Callable[[Pod], Pod]) -> None:
    def of_changed(pod: Pod, *, bound: bool) -> Resources:
        return requests(change(pod), bound=bound)

    replace(model, "requests", of_changed)


@breaks("counts the requests of containers alone", "OR-1", caught_by="SCHED-085")
def _pod_level_requests_ignored() -> None:
    _with_requests(lambda pod: _with_spec(pod, resources=None))


@breaks("does not count what sidecars request", "OR-1", caught_by="SCHED-086")
def _sidecar_requests_ignored() -> None:
    _with_requests(lambda pod: _with_spec(pod, init_containers=_init(pod, sidecars=False)))


@breaks("does not count what init containers request", "OR-1", caught_by="SCHED-086")
def _init_requests_ignored() -> None:
    _with_requests(lambda pod: _with_spec(pod, init_containers=_init(pod, sidecars=True)))


def _init(pod: Pod, *, sidecars: bool) -> Sequence[Container]:
    """Return the sidecars of a pod, or its other init containers."""
    return [c for c in pod.spec.init_containers or () if (c.restart_policy == "Always") is sidecars]


def _with_spec(pod: Pod, **fields: object) -> Pod:
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **fields))
