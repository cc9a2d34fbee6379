"""Nodes on which the pods of a clique may run."""

from __future__ import annotations

from conformance.suite.scenes.api import Object


def only_on(workload: Object, clique: str, *, gpus: int) -> None:
    """Let the pods of a clique run on nodes of so many GPUs only. A scheduler places one clique after the other, and
    need not find room for the second where the first could have gone elsewhere (KEP-L01)."""
    [template] = [candidate for candidate in workload["spec"]["template"]["cliques"] if candidate["name"] == clique]
    template["spec"]["podSpec"]["nodeSelector"]["nvidia.com/gpu.count"] = str(gpus)
