"""ClusterTopologyBindings. They are cluster-scoped, so a test names its own after its namespace."""

from __future__ import annotations

from conformance.grove.expected_topology import Levels
from conformance.suite.scenes.api import Object


def topology_binding(binding: str, levels: Levels) -> Object:
    """Return a ClusterTopologyBinding with these levels: domain → node label key, from wide to narrow."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": binding},
        "spec": spec(levels),
    }


def spec(levels: Levels) -> Object:
    """Return the spec of such a binding."""
    return {"levels": [{"domain": domain, "key": key} for domain, key in levels.items()]}
