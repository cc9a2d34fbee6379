"""The filter for host ports."""

from __future__ import annotations

from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.model import ContainerPort, Node

ANY_ADDRESS = ("", "0.0.0.0")  # noqa: S104 -- compared, not bound
"""Host IPs that stand for all addresses of a node."""


class NodePorts(Plugin):
    """Rejects nodes on which another pod uses one of the pod's host ports."""

    @property
    def dynamic(self) -> bool:
        return bool(self.pod.host_ports)

    def refusal(self, node: Node) -> str:
        ports = self.pod.host_ports
        for other in self.state.pods_by_node.get(node.metadata.name, ()) if ports else ():
            if any(_conflicts(port, other_port) for port in ports for other_port in other.host_ports):
                return "node didn't have free ports for the requested pod ports"
        return ""


def _conflicts(one: ContainerPort, other: ContainerPort) -> bool:
    if one.host_port != other.host_port or (one.protocol or "TCP") != (other.protocol or "TCP"):
        return False
    return one.host_ip in ANY_ADDRESS or other.host_ip in ANY_ADDRESS or one.host_ip == other.host_ip
