"""The fields of pods and nodes that the scheduler reads."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from kube.objects import ObjectMeta
from reference_impl.api.pods import Gate, PodCondition
from reference_impl.scheduler.requests import Resources, amounts, requests, usage_from_1_37, whole
from reference_impl.scheduler.selectors import Affinity, PodAffinityTerm, SpreadConstraint, Term, narrowed
from reference_impl.scheduler.storage import Volume

OPERATORS = {"", "Equal", "Exists", "Gt", "Lt"}
"""Known operators of tolerations."""


class Requirements(msgspec.Struct):
    """Requests and limits of a container."""

    requests: dict[str, str | int] | None = None
    limits: dict[str, str | int] | None = None


class ContainerPort(msgspec.Struct, rename={"host_port": "hostPort", "host_ip": "hostIP"}):
    """A port of a container."""

    host_port: int = 0
    host_ip: str = ""
    protocol: str = "TCP"


class Container(msgspec.Struct, rename="camel"):
    """A container, as far as the scheduler reads it."""

    name: str = ""
    ports: list[ContainerPort] | None = None
    resources: Requirements = msgspec.field(default_factory=Requirements)
    restart_policy: str | None = None


class Toleration(msgspec.Struct, rename="camel", frozen=True):
    """A toleration of a pod."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class Taint(msgspec.Struct, rename="camel", frozen=True):
    """A taint of a node."""

    key: str = ""
    value: str = ""
    effect: str = ""


class PodSpec(msgspec.Struct, rename="camel"):
    """The spec of a pod, as far as the scheduler reads it."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    preemption_policy: str = ""
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None
    affinity: dict[str, Any] | None = None
    topology_spread_constraints: list[dict[str, Any]] | None = None
    volumes: list[Volume] | None = None
    resources: Requirements | None = None
    scheduling_gates: list[Gate] | None = None
    containers: list[Container] = []
    init_containers: list[Container] | None = None
    overhead: dict[str, str | int] | None = None


class Condition(PodCondition, gc=False):
    """A condition of a pod with its message."""

    message: str = ""


class ContainerStatus(msgspec.Struct, rename="camel"):
    """The resources of a running container."""

    name: str = ""
    resources: Requirements | None = None
    allocated_resources: dict[str, str | int] | None = None


class PodStatus(msgspec.Struct, rename="camel"):
    """The status of a pod, as far as the scheduler reads it."""

    phase: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: Requirements | None = None
    allocated_resources: dict[str, str | int] | None = None


class Pod(msgspec.Struct, dict=True):
    """The fields of a pod that the scheduler reads."""

    metadata: ObjectMeta
    spec: PodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def waiting(self) -> bool:
        """Whether the pod is to be placed: not terminating, not bound, without scheduling gates (GS-40)."""
        return self.metadata.deletion_timestamp is None and not self.spec.node_name and not self.spec.scheduling_gates

    @property
    def holds_resources(self) -> bool:
        """Whether the pod uses capacity of its node: until it has terminated."""
        return self.status.phase not in ("Succeeded", "Failed")

    @property
    def ready(self) -> bool:
        """Whether the pod has the condition Ready."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions or ())

    @property
    def resize_infeasible(self) -> bool:
        """Whether the node can never meet the resize that the pod's spec asks for."""
        pending = next((c for c in self.status.conditions or () if c.type == "PodResizePending"), None)
        return pending is not None and pending.reason == "Infeasible"

    @cached_property
    def requests(self) -> Resources:
        """The requests of the pod before it is bound."""
        return requests(self, bound=False)

    @cached_property
    def usage(self) -> Resources:
        """The resources that the pod holds on its node."""
        return requests(self, bound=True)

    @cached_property
    def affinity(self) -> Affinity:
        """The affinity. Raises msgspec.ValidationError for unknown fields and operators."""
        return msgspec.convert(self.spec.affinity or {}, Affinity, strict=False)

    @cached_property
    def near(self) -> list[Term]:
        """The terms of the required pod affinity."""
        return [Term(self.metadata, term) for term in self.affinity.required] if self.spec.affinity else []

    @cached_property
    def apart(self) -> list[Term]:
        """The terms of the required pod anti-affinity; none if the affinity is not readable."""
        if not self.spec.affinity or self.unreadable:
            return []
        return [Term(self.metadata, term) for term in self.affinity.forbidden]

    @cached_property
    def spread(self) -> list[SpreadConstraint]:
        """The spread constraints that must hold. Raises msgspec.ValidationError for unknown fields and values."""
        constraints = msgspec.convert(self.spec.topology_spread_constraints or [], list[SpreadConstraint], strict=False)
        return [constraint for constraint in constraints if constraint.when_unsatisfiable == "DoNotSchedule"]

    @cached_property
    def terms(self) -> list[Term]:
        """The terms of affinity, anti-affinity and spread."""
        if not (self.spec.affinity or self.spec.topology_spread_constraints) or self.unreadable:
            return []
        spread = [PodAffinityTerm(c.topology_key, narrowed(c, self.metadata.labels or {})) for c in self.spread]
        return [*self.near, *self.apart, *(Term(self.metadata, term) for term in spread)]

    @cached_property
    def host_ports(self) -> list[ContainerPort]:
        """The host ports of containers and sidecars."""
        sidecars = [c for c in self.spec.init_containers or () if c.restart_policy == "Always"]
        return [p for c in (*sidecars, *self.spec.containers) for p in c.ports or () if p.host_port > 0]

    @cached_property
    def volumes(self) -> list[Volume]:
        """The volumes that any filter looks at."""
        return [volume for volume in self.spec.volumes or () if volume.relevant]

    @cached_property
    def claims(self) -> list[tuple[str, bool]]:
        """The claims of the volumes: the name, and whether the claim is created for this pod alone."""
        names = []
        for volume in self.volumes:
            if volume.persistent_volume_claim:
                names.append((volume.persistent_volume_claim.claim_name, False))
            elif volume.ephemeral:
                names.append((f"{self.metadata.name}-{volume.name}", True))
        return names

    @cached_property
    def unreadable(self) -> str:
        """The unknown field, operator or value for which the pod must not be placed; empty if none."""
        try:
            _ = self.affinity, self.spread
        except msgspec.ValidationError as error:
            return str(error)
        odd = {toleration.operator for toleration in self.spec.tolerations or ()} - OPERATORS
        return f"unknown operator {min(odd)} of a toleration" if odd else ""

    @cached_property
    def sociable(self) -> bool:
        """Whether the pod itself restricts beside which pods it may be placed."""
        spec = self.spec
        return bool(spec.affinity or spec.topology_spread_constraints or self.host_ports or self.volumes)

    @cached_property
    def node_signature(self) -> bytes:
        """A key that is equal for pods that may be placed on the same nodes, other pods and volumes apart."""
        affinity = (self.spec.affinity or {}).get("nodeAffinity")
        return msgspec.json.encode([self.spec.node_selector, self.spec.tolerations, affinity])

    @cached_property
    def signature(self) -> bytes:
        """A key that is equal for pods that are eligible for the same nodes, other pods apart."""
        if not self.sociable:
            return self.node_signature
        spec = self.spec
        parts: list[Any] = [spec.affinity, spec.topology_spread_constraints, self.host_ports, self.volumes]
        return self.node_signature + msgspec.json.encode(
            [*parts, self.metadata.namespace, [name for name, ephemeral in self.claims if ephemeral]]
        )


class PodFrom137(Pod):
    """A pod whose usage is counted as kube-scheduler does from Kubernetes 1.37 on, while it is resized in place."""

    @cached_property
    def usage(self) -> Resources:
        """The resources that the pod holds on its node."""
        return usage_from_1_37(self)


def pod_type(kubernetes: tuple[int, int]) -> type[Pod]:
    """Return the type of pods on an API server of a major and minor version."""
    return PodFrom137 if kubernetes >= (1, 37) else Pod


class NodeSpec(msgspec.Struct):
    """The spec of a node, as far as the scheduler reads it."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeStatus(msgspec.Struct):
    """The status of a node, as far as the scheduler reads it."""

    allocatable: dict[str, str | int] | None = None
    conditions: list[PodCondition] | None = None


class Node(msgspec.Struct, dict=True):
    """The fields of a node that the scheduler reads."""

    metadata: ObjectMeta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def usable(self) -> bool:
        """Whether the node is Ready and stays."""
        ready = any(c.type == "Ready" and c.status == "True" for c in self.status.conditions or ())
        return ready and self.metadata.deletion_timestamp is None

    @cached_property
    def allocatable(self) -> Resources:
        """Amounts that the node offers to pods, in thousandths."""
        return {name: whole(name, amount) for name, amount in amounts(self.status.allocatable).items()}


class Namespace(msgspec.Struct):
    """A namespace and its labels."""

    metadata: ObjectMeta
