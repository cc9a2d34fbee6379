"""The fields of pods and nodes that the scheduler reads."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from kube.objects import ObjectMeta
from reference_impl.api.pods import Gate, PodCondition
from reference_impl.scheduler.requests import Resources, amounts, requests, rounded_up, usage_from_1_37
from reference_impl.scheduler.selectors import Affinity, PodAffinityTerm, SpreadConstraint, Term, with_merged_labels
from reference_impl.scheduler.storage import Volume

OPERATORS = {"", "Equal", "Exists", "Gt", "Lt"}
"""The operators of tolerations that are supported."""


class Requirements(msgspec.Struct):
    """Resource requests and limits of a container or a pod."""

    requests: dict[str, str | int] | None = None
    limits: dict[str, str | int] | None = None


class ContainerPort(msgspec.Struct, rename={"host_port": "hostPort", "host_ip": "hostIP"}):
    """A port of a container."""

    host_port: int = 0
    host_ip: str = ""
    protocol: str = "TCP"


class Container(msgspec.Struct, rename="camel"):
    """The fields of a container that the scheduler reads."""

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


class PodClaim(msgspec.Struct, rename="camel"):
    """A ResourceClaim of a pod: an existing one, or one that is created for the pod from a template. In a pod's status,
    the created one (DRA-04)."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(msgspec.Struct, rename="camel"):
    """The fields of a pod's spec that the scheduler reads."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    preemption_policy: str = ""
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None
    affinity: dict[str, Any] | None = None
    topology_spread_constraints: list[dict[str, Any]] | None = None
    volumes: list[Volume] | None = None
    resource_claims: list[PodClaim] | None = None
    resources: Requirements | None = None
    scheduling_gates: list[Gate] | None = None
    containers: list[Container] = []
    init_containers: list[Container] | None = None
    overhead: dict[str, str | int] | None = None


class Condition(PodCondition, gc=False):
    """A condition of a pod, with its message."""

    message: str = ""


class ContainerStatus(msgspec.Struct, rename="camel"):
    """The resources of a running container."""

    name: str = ""
    resources: Requirements | None = None
    allocated_resources: dict[str, str | int] | None = None


class PodStatus(msgspec.Struct, rename="camel"):
    """The fields of a pod's status that the scheduler reads."""

    phase: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: Requirements | None = None
    allocated_resources: dict[str, str | int] | None = None
    resource_claim_statuses: list[PodClaim] | None = None
    extended_resource_claim_status: PodClaim | None = None


class Pod(msgspec.Struct, dict=True):
    """The fields of a pod that the scheduler reads."""

    metadata: ObjectMeta
    spec: PodSpec
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def waiting(self) -> bool:
        """Whether the pod is waiting to be placed: it is not terminating, not bound, and has no scheduling gates
        (GS-40)."""
        return self.metadata.deletion_timestamp is None and not self.spec.node_name and not self.spec.scheduling_gates

    @property
    def holds_resources(self) -> bool:
        """Whether the pod uses capacity of its node, which is the case until it has terminated."""
        return self.status.phase not in ("Succeeded", "Failed")

    @property
    def ready(self) -> bool:
        """Whether the pod's condition Ready is True."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions or ())

    @property
    def resize_infeasible(self) -> bool:
        """Whether the node can never satisfy the resize that the pod's spec requests."""
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
        """The pod's affinity. Raises msgspec.ValidationError for unknown fields and operators."""
        return msgspec.convert(self.spec.affinity or {}, Affinity, strict=False)

    @cached_property
    def affinity_terms(self) -> list[Term]:
        """The terms of the required pod affinity."""
        return [Term(self.metadata, term) for term in self.affinity.required] if self.spec.affinity else []

    @cached_property
    def anti_affinity_terms(self) -> list[Term]:
        """The terms of the required pod anti-affinity, or an empty list if the pod's spec has unknown fields or
        operators."""
        if not self.spec.affinity or self.decode_error:
            return []
        return [Term(self.metadata, term) for term in self.affinity.forbidden]

    @cached_property
    def spread_constraints(self) -> list[SpreadConstraint]:
        """The spread constraints that must hold. Raises msgspec.ValidationError for unknown fields and values."""
        constraints = msgspec.convert(self.spec.topology_spread_constraints or [], list[SpreadConstraint], strict=False)
        return [constraint for constraint in constraints if constraint.when_unsatisfiable == "DoNotSchedule"]

    @cached_property
    def terms(self) -> list[Term]:
        """The terms of the required affinity, anti-affinity and spread constraints."""
        if not (self.spec.affinity or self.spec.topology_spread_constraints) or self.decode_error:
            return []
        spread = [
            PodAffinityTerm(c.topology_key, with_merged_labels(c, self.metadata.labels or {}))
            for c in self.spread_constraints
        ]
        return [*self.affinity_terms, *self.anti_affinity_terms, *(Term(self.metadata, term) for term in spread)]

    @cached_property
    def host_ports(self) -> list[ContainerPort]:
        """The host ports of the pod's containers and sidecars."""
        sidecars = [c for c in self.spec.init_containers or () if c.restart_policy == "Always"]
        return [p for c in (*sidecars, *self.spec.containers) for p in c.ports or () if p.host_port > 0]

    @cached_property
    def volumes(self) -> list[Volume]:
        """The volumes that some filter considers."""
        return [volume for volume in self.spec.volumes or () if volume.relevant]

    @cached_property
    def claims(self) -> list[tuple[str, bool]]:
        """The volumes' claims: the name, and whether the claim is created for this pod alone."""
        names = []
        for volume in self.volumes:
            if volume.persistent_volume_claim:
                names.append((volume.persistent_volume_claim.claim_name, False))
            elif volume.ephemeral:
                names.append((f"{self.metadata.name}-{volume.name}", True))
        return names

    @cached_property
    def decode_error(self) -> str:
        """The unknown field, operator or value because of which the pod must not be placed, or an empty string if there
        is none."""
        try:
            _ = self.affinity, self.spread_constraints
        except msgspec.ValidationError as error:
            return str(error)
        unknown_operators = {toleration.operator for toleration in self.spec.tolerations or ()} - OPERATORS
        return f"unknown operator {min(unknown_operators)} of a toleration" if unknown_operators else ""

    @cached_property
    def restricts_neighbors(self) -> bool:
        """Whether the pod itself restricts which other pods it may share a node or domain with."""
        spec = self.spec
        return bool(
            spec.affinity or spec.topology_spread_constraints or self.host_ports or self.volumes or spec.resource_claims
        )

    @cached_property
    def node_signature(self) -> bytes:
        """A key that is equal for pods that may be placed on the same nodes, without regard to other pods and
        volumes."""
        affinity = (self.spec.affinity or {}).get("nodeAffinity")
        return msgspec.json.encode([self.spec.node_selector, self.spec.tolerations, affinity])

    @cached_property
    def signature(self) -> bytes:
        """A key that is equal for pods that are eligible for the same nodes, without regard to other pods."""
        if not self.restricts_neighbors:
            return self.node_signature
        spec = self.spec
        parts: list[Any] = [spec.affinity, spec.topology_spread_constraints, self.host_ports, self.volumes]
        return self.node_signature + msgspec.json.encode(
            [*parts, self.metadata.namespace, [name for name, ephemeral in self.claims if ephemeral]]
        )


class PodFrom137(Pod):
    """A pod whose usage during an in-place resize is counted as kube-scheduler 1.37 and later count it."""

    @cached_property
    def usage(self) -> Resources:
        """The resources that the pod holds on its node."""
        return usage_from_1_37(self)


def pod_type(kubernetes: tuple[int, int]) -> type[Pod]:
    """Return the pod class for the major and minor version of the API server."""
    return PodFrom137 if kubernetes >= (1, 37) else Pod


class NodeSpec(msgspec.Struct):
    """The fields of a node's spec that the scheduler reads."""

    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeStatus(msgspec.Struct):
    """The fields of a node's status that the scheduler reads."""

    allocatable: dict[str, str | int] | None = None
    conditions: list[PodCondition] | None = None


class Node(msgspec.Struct, dict=True):
    """The fields of a node that the scheduler reads."""

    metadata: ObjectMeta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)

    @property
    def usable(self) -> bool:
        """Whether the node is Ready and is not being deleted."""
        ready = any(c.type == "Ready" and c.status == "True" for c in self.status.conditions or ())
        return ready and self.metadata.deletion_timestamp is None

    @cached_property
    def allocatable(self) -> Resources:
        """The amounts that the node offers to pods, in thousandths of a unit."""
        return {name: rounded_up(name, amount) for name, amount in amounts(self.status.allocatable).items()}


class Namespace(msgspec.Struct):
    """A namespace and its labels."""

    metadata: ObjectMeta
