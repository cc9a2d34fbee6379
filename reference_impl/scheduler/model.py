"""The fields of pods and nodes that the scheduler reads."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from kube.objects import ObjectMeta
from reference_impl.api.pods import Gate, PodCondition
from reference_impl.scheduler.quantity import thousandths

Resources = dict[str, int]
"""Resource name → thousandths."""

PODS = "pods"


class Requirements(msgspec.Struct):
    """Requests and limits of a container."""

    requests: dict[str, str | int] | None = None
    limits: dict[str, str | int] | None = None


class Container(msgspec.Struct, rename="camel"):
    """A container, as far as the scheduler reads it."""

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


class Expression(msgspec.Struct):
    """An expression about one label or field."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeTerm(msgspec.Struct, rename="camel"):
    """A term of a node affinity: all its expressions must hold."""

    match_expressions: list[Expression] | None = None
    match_fields: list[Expression] | None = None


class NodeSelector(msgspec.Struct, rename="camel"):
    """The terms of a node affinity: one of them must hold."""

    node_selector_terms: list[NodeTerm] | None = None


class NodeAffinity(msgspec.Struct, rename="camel"):
    """The required node affinity; preferences are ignored."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(msgspec.Struct, rename="camel"):
    """The affinity of a pod, as far as the scheduler reads it."""

    node_affinity: NodeAffinity | None = None


class PodSpec(msgspec.Struct, rename="camel"):
    """The spec of a pod, as far as the scheduler reads it."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    preemption_policy: str = ""
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None
    affinity: Affinity | None = None
    scheduling_gates: list[Gate] | None = None
    containers: list[Container] = []
    init_containers: list[Container] | None = None
    overhead: dict[str, str | int] | None = None


class Condition(PodCondition, gc=False):
    """A condition of a pod with its message."""

    message: str = ""


class PodStatus(msgspec.Struct, rename="camel"):
    """The status of a pod, as far as the scheduler reads it."""

    phase: str = ""
    conditions: list[Condition] | None = None


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

    @cached_property
    def requests(self) -> Resources:
        """The requests of the pod: those of containers and sidecars together, or of the largest init container if that
        is more."""
        spec = self.spec
        total: Resources = {PODS: 1000}
        sidecars: Resources = {}
        peak: Resources = {}
        for container in spec.init_containers or ():
            own = _requests(container)
            if container.restart_policy == "Always":
                _add(sidecars, own)
            else:
                _add(own, sidecars)
                for name, amount in own.items():
                    peak[name] = max(peak.get(name, 0), amount)
        for container in spec.containers:
            _add(total, _requests(container))
        _add(total, sidecars)
        for name, amount in peak.items():
            total[name] = max(total.get(name, 0), amount)
        _add(total, {name: thousandths(amount) for name, amount in (spec.overhead or {}).items()})
        return {name: amount for name, amount in total.items() if amount}

    @cached_property
    def signature(self) -> bytes:
        """A key that is equal for pods that are eligible for the same nodes."""
        spec = self.spec
        parts: list[Any] = [spec.node_selector, spec.tolerations, spec.affinity]
        return msgspec.json.encode(parts)


def _requests(container: Container) -> Resources:
    limits, requests = container.resources.limits or {}, container.resources.requests or {}
    return {name: thousandths(amount) for name, amount in {**limits, **requests}.items()}


def _add(total: Resources, more: Resources) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


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
        """Whether the node is Ready and not cordoned."""
        ready = any(c.type == "Ready" and c.status == "True" for c in self.status.conditions or ())
        return ready and not self.spec.unschedulable and self.metadata.deletion_timestamp is None

    @cached_property
    def allocatable(self) -> Resources:
        """What the node offers to pods, in thousandths."""
        return {name: thousandths(amount) for name, amount in (self.status.allocatable or {}).items()}
