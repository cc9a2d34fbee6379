"""Nodes whose GPUs are devices, and the slices that are published of them."""

from __future__ import annotations

from typing import Any

from conformance.cluster import gpu_devices, nodes
from conformance.cluster.nodes import Manifest


def devices_node(profile: str = "tiny", form: gpu_devices.Form = "devices") -> Manifest:
    """Return the first node of a profile."""
    (manifest,) = gpu_devices.offered(nodes.manifests(profile, 1), form)
    return manifest


def slices(*manifests: Manifest, generation: int = 1) -> list[dict[str, Any]]:
    """Return the slices of nodes."""
    return [
        item
        for metadata in (manifest["metadata"] for manifest in manifests)
        for item in gpu_devices.slice_manifests(metadata["name"], "uid", metadata["annotations"], generation)
    ]
