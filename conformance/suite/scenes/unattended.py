"""Detect that the simulated kubelet lags: pods are bound, but the kubelet has not reported anything about them."""

from __future__ import annotations

from conformance.cluster import nodes
from conformance.cluster.kubelet_sim.init_wait import LOST
from conformance.grove import health, pods
from conformance.grove.fields import label, mapping, name, terminating, text
from conformance.history.query import History

WITHIN = 10.0
"""Seconds within which the kubelet must have started to handle a bound pod. KWOK takes less than one."""


def pods_of(history: History, pool: str, within: float) -> str:
    """Return a message about pods on the nodes of a test about which the kubelet has reported nothing for `within`
    seconds; empty if there are none."""
    view = history.view()
    served = {
        name(node)
        for node in view.list("nodes")
        if label(node, nodes.POOL) == pool and not label(node, LOST) and health.HOLD_STATUS not in _notes(node)
    }
    waiting = {
        name(pod)
        for pod in view.list("pods")
        if pods.node(pod) in served
        and not terminating(pod)
        and not text(pod, "status", "startTime")
        and health.HOLD_STATUS not in _notes(pod)
    }
    bound: dict[str, float] = {}
    for record in history.records("pods") if waiting else ():
        if record.name in waiting and pods.bound(record.object):
            bound.setdefault(record.uid, record.at)
    oldest = max((history.now() - at for at in bound.values()), default=0.0)
    if oldest < within:
        return ""
    return f"nothing was heard of {len(waiting)} bound pods, of the first for {oldest:.0f} s"


def _notes(obj: object) -> dict[str, str]:
    return mapping(obj, "metadata", "annotations")
