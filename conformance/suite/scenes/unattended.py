"""Detect that the simulated kubelet lags: pods are bound, but the kubelet has not reported anything about them."""

from __future__ import annotations

from conformance.cluster import nodes
from conformance.cluster.kubelet_sim.init_wait import LOST
from conformance.grove import health, pods
from conformance.grove.fields import label, mapping, name, terminating, text
from conformance.history.query import History

MAX_KUBELET_LAG_SECONDS = 10.0
"""Seconds within which the kubelet must have started to handle a bound pod. KWOK takes less than one."""


def pods_of(history: History, pool: str, seconds: float) -> str:
    """Return a message about pods on the nodes of a test about which the kubelet has reported nothing for `seconds`;
    empty if there are none."""
    view = history.view()
    attended_nodes = {
        name(node)
        for node in view.list("nodes")
        if label(node, nodes.POOL) == pool and not label(node, LOST) and health.HOLD_STATUS not in _annotations(node)
    }
    unattended_pods = {
        name(pod)
        for pod in view.list("pods")
        if pods.node(pod) in attended_nodes
        and not terminating(pod)
        and not text(pod, "status", "startTime")
        and health.HOLD_STATUS not in _annotations(pod)
    }
    bound_at: dict[str, float] = {}
    for record in history.records("pods") if unattended_pods else ():
        if record.name in unattended_pods and pods.is_bound(record.object):
            bound_at.setdefault(record.uid, record.at)
    longest_wait = max((history.now() - at for at in bound_at.values()), default=0.0)
    if longest_wait < seconds:
        return ""
    return f"nothing was heard of {len(unattended_pods)} bound pods, of the first for {longest_wait:.0f} s"


def _annotations(obj: object) -> dict[str, str]:
    return mapping(obj, "metadata", "annotations")
