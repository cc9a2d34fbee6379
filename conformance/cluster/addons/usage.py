"""The usage of fake pods, as the API `metrics.k8s.io` reports it. Pure functions.

Fake pods run nothing, so their usage is declared by KWOK's pod annotations, which apply to each container. A pod
without these annotations uses half of what its containers request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from conformance.cluster.kubelet_sim.init_wait import LOST
from conformance.grove.quantities import Amounts, amount

DEFAULT_SHARE = Decimal("0.5")
"""The fraction of its requests that a container uses unless an annotation says otherwise."""
MIN_USAGE = {"cpu": Decimal("0.001"), "memory": Decimal(1 << 20)}
"""The usage of a container that requests nothing. KWOK uses the same values."""
ANNOTATIONS = {"cpu": "kwok.x-k8s.io/usage-cpu", "memory": "kwok.x-k8s.io/usage-memory"}
WINDOW = "1s"
"""The time span that a measurement covers. An autoscaler ignores pods that became Ready during it."""

Document = Mapping[str, Any]


def has_metrics(pod: Document) -> bool:
    """Return whether a pod has metrics: it is running, and its node has a kubelet."""
    status = pod["status"]
    is_lost = any(condition["type"] == LOST for condition in status.get("conditions") or ())
    return status.get("phase") == "Running" and not is_lost


def pod_metrics(pod: Document, now: str) -> dict[str, Any]:
    """Return the PodMetrics of a pod."""
    metadata = {key: pod["metadata"][key] for key in ("name", "namespace", "labels") if key in pod["metadata"]}
    containers = [
        {"name": container["name"], "usage": _as_quantities(_container_usage(container, pod))}
        for container in pod["spec"]["containers"]
    ]
    return {"metadata": {**metadata, "creationTimestamp": now}, **_timestamps(now), "containers": containers}


def node_metrics(node: Document, pods: Iterable[Document], now: str) -> dict[str, Any]:
    """Return the NodeMetrics of a node on which these pods run."""
    total = dict.fromkeys(MIN_USAGE, Decimal(0))
    for pod in pods:
        for container in pod["spec"]["containers"]:
            for resource, quantity in _container_usage(container, pod).items():
                total[resource] += quantity
    metadata = {"name": node["metadata"]["name"], "labels": node["metadata"].get("labels") or {}}
    return {"metadata": {**metadata, "creationTimestamp": now}, **_timestamps(now), "usage": _as_quantities(total)}


def _container_usage(container: Document, pod: Document) -> Amounts:
    """Return the usage of one container. An annotation that is not a quantity is ignored."""
    annotations = pod["metadata"].get("annotations") or {}
    requests = (container.get("resources") or {}).get("requests") or {}
    amounts: Amounts = {}
    for resource, key in ANNOTATIONS.items():
        declared, requested = amount(annotations.get(key)), amount(requests.get(resource))
        default = requested * DEFAULT_SHARE if requested is not None else MIN_USAGE[resource]
        amounts[resource] = declared if declared is not None else default
    return amounts


def _as_quantities(amounts: Amounts) -> dict[str, str]:
    """Return amounts as quantities: CPU in nanocores, memory in bytes."""
    return {"cpu": f"{int(amounts['cpu'] * 10**9)}n", "memory": f"{int(amounts['memory'])}"}


def _timestamps(now: str) -> dict[str, str]:
    return {"timestamp": now, "window": WINDOW}
