"""Evaluation of all filters for one pod, in the order of kube-scheduler."""

from __future__ import annotations

from collections.abc import Sequence

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.dynamic_resources import DynamicResources
from reference_impl.scheduler.filters.inter_pod_affinity import InterPodAffinity
from reference_impl.scheduler.filters.node_affinity import NodeAffinity
from reference_impl.scheduler.filters.node_name import NodeName
from reference_impl.scheduler.filters.node_ports import NodePorts
from reference_impl.scheduler.filters.node_resources_fit import NodeResourcesFit
from reference_impl.scheduler.filters.node_unschedulable import NodeUnschedulable
from reference_impl.scheduler.filters.node_volume_limits import NodeVolumeLimits
from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.filters.pod_topology_spread import PodTopologySpread
from reference_impl.scheduler.filters.taint_toleration import TaintToleration
from reference_impl.scheduler.filters.volume_binding import VolumeBinding
from reference_impl.scheduler.filters.volume_restrictions import VolumeRestrictions
from reference_impl.scheduler.filters.volume_zone import VolumeZone
from reference_impl.scheduler.model import Node, Pod

NODE_FILTERS: tuple[type[Plugin], ...] = (NodeUnschedulable, NodeName, TaintToleration, NodeAffinity)
POD_FILTERS: tuple[type[Plugin], ...] = (
    NodePorts,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
)
FILTERS: tuple[type[Plugin], ...] = (*NODE_FILTERS, NodePorts, NodeResourcesFit, *POD_FILTERS[1:])


def feasible_nodes(pod: Pod, state: ClusterState) -> dict[str, str]:
    """Return, by node name, the plugin that rejects the node and its reason, or an empty string if the pod may be
    placed on the node."""
    if pod.decode_error:
        return dict.fromkeys((node.metadata.name for node in state.nodes), f"Unknown: {pod.decode_error}")
    plugins = [plugin(pod, state) for plugin in FILTERS]
    return {node.metadata.name: refusal(plugins, node) for node in state.nodes}


def refusal(plugins: Sequence[Plugin], node: Node) -> str:
    """Return the first plugin that rejects a node and its reason, or an empty string if no plugin rejects it."""
    for plugin in plugins:
        if reason := plugin.refusal(node):
            return f"{type(plugin).__name__}: {reason}"
    return ""
