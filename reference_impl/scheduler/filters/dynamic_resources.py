"""Nodes on which the devices of a pod's ResourceClaims can be used, or on which devices are free for them."""

from __future__ import annotations

from reference_impl.scheduler.filters.cluster_state import ClusterState
from reference_impl.scheduler.filters.plugin import Plugin
from reference_impl.scheduler.model import Node, Pod


class DynamicResources(Plugin):
    """Rejects nodes on which the claims of a pod cannot be allocated, in addition to those of the pods that are placed
    together with it, and nodes that the devices of its allocated claims do not reach (DRA-05)."""

    def __init__(self, pod: Pod, state: ClusterState) -> None:
        super().__init__(pod, state)
        self._claims = state.devices.claims_of(pod)

    @property
    def dynamic(self) -> bool:
        return bool(self._claims.pod_owned or self._claims.shared)

    @property
    def monotone(self) -> bool:
        return not self._claims.shared  # the first pod that uses a claim determines the claim's devices

    @property
    def has_allocated_claims(self) -> bool:
        """Whether some claims are allocated, so that nodes with equal devices can still differ."""
        return bool(self._claims.allocated)

    def refusal(self, node: Node) -> str:
        if not self.state.devices.has_claims(self.pod):
            return ""
        return self.state.devices.refusal(self.pod, self._claims, node)
