"""Selection of the nodes on which the pods of a clique may run."""

from __future__ import annotations

from conformance.suite.scenes.api import Object


def restrict_to_gpu_nodes(workload: Object, clique: str, *, gpus: int) -> None:
    """Restrict the pods of a clique to nodes with `gpus` GPUs. A scheduler places one clique after the other. If the
    first clique takes the room of the second one, the scheduler need not move the first clique elsewhere (KEP-L01)."""
    [template] = [candidate for candidate in workload["spec"]["template"]["cliques"] if candidate["name"] == clique]
    template["spec"]["podSpec"]["nodeSelector"]["nvidia.com/gpu.count"] = str(gpus)
