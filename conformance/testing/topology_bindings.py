"""ClusterTopologyBindings. They are cluster-scoped, so a test names its bindings after its namespace."""

from __future__ import annotations

from conformance.grove.expected_topology import Levels
from conformance.suite.scenes.api import Object

BINDINGS, TOPOLOGIES = "clustertopologybindings", "topologies"
"""Resource names of Grove's ClusterTopologyBindings and of the KAI scheduler's Topologies."""


def topology_binding(binding: str, levels: Levels) -> Object:
    """Return a ClusterTopologyBinding with these levels: domain → node label key, from wide to narrow."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": binding},
        "spec": spec(levels),
    }


def spec(levels: Levels) -> Object:
    """Return the spec of a ClusterTopologyBinding with these levels."""
    return {"levels": [{"domain": domain, "key": key} for domain, key in levels.items()]}


def kai_topology(topology: str, levels: Levels) -> Object:
    """Return a Topology of the KAI scheduler with these levels."""
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": topology},
        "spec": {"levels": [{"nodeLabel": key} for key in levels.values()]},
    }
