"""SCHED-080: no two pods on a node use the same host port (OR-10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.grove import pods
from conformance.grove.fields import Document, items, number, text
from conformance.invariants.bindings import BindingRule

ANY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104

Port = tuple[int, str, str]
"""Number, protocol, address."""


class HostPortsOnce(BindingRule):
    """SCHED-080. For pods with hostNetwork, the API server sets hostPort to the container port."""

    id = "SCHED-080"
    statement = "no two pods on a node use one host port"

    def concerns(self, pod: Document) -> bool:
        """Return whether the pod uses a host port."""
        return any(host_ports(pod))

    def conflict(self, pod: Document, other: Document, nodes: Mapping[str, Document]) -> str:
        """Return the host port that both pods use on the node; empty if there is none."""
        if pods.node(pod) != pods.node(other):
            return ""
        shared_ports = [host for port in host_ports(pod) for host in _shared_ports(port, other)]
        return f"uses host port {shared_ports[0]} of {pods.node(pod)}" if shared_ports else ""


def host_ports(pod: Document) -> Iterator[Port]:
    """Yield the host ports of a pod's containers and sidecars."""
    sidecars = [c for c in items(pod, "spec", "initContainers") if text(c, "restartPolicy") == "Always"]
    for container in (*items(pod, "spec", "containers"), *sidecars):
        for port in items(container, "ports"):
            if host := number(port, "hostPort"):
                yield host, text(port, "protocol") or "TCP", text(port, "hostIP")


def _shared_ports(port: Port, other: Document) -> Iterator[int]:
    host, protocol, address = port
    for other_port in host_ports(other):
        if other_port[:2] == (host, protocol) and (
            other_port[2] == address or address in ANY_ADDRESS or other_port[2] in ANY_ADDRESS
        ):
            yield host
