"""Typed views of core/v1 objects: only the fields that the operator reads."""

from __future__ import annotations

import msgspec

from kube.objects import ObjectMeta


class Gate(msgspec.Struct, gc=False):
    """A scheduling gate."""

    name: str = ""


class PodCondition(msgspec.Struct, gc=False):
    """A condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""


class Terminated(msgspec.Struct, rename="camel", gc=False):
    """How a container's last run ended."""

    exit_code: int = 0


class ContainerState(msgspec.Struct):
    """The fields of a container state that the operator reads."""

    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct, rename="camel"):
    """The fields of a container status that the operator reads."""

    name: str = ""
    ready: bool = False
    started: bool | None = None
    last_state: ContainerState | None = None

    @property
    def failed(self) -> bool:
        """Whether the last run ended with an error."""
        last_termination = self.last_state.terminated if self.last_state else None
        return last_termination is not None and last_termination.exit_code != 0


class SchedulingGroup(msgspec.Struct, rename="camel", gc=False):
    """The PodGroup of the Workload API that a pod belongs to (WL-F05)."""

    pod_group_name: str = ""


class PodSpecView(msgspec.Struct, rename="camel"):
    """The fields of a pod's spec that the operator reads."""

    node_name: str = ""
    hostname: str = ""
    scheduling_gates: list[Gate] | None = None
    scheduling_group: SchedulingGroup | None = None


class PodStatusView(msgspec.Struct, rename="camel"):
    """The fields of a pod's status that the operator reads."""

    phase: str = ""
    conditions: list[PodCondition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Pod(msgspec.Struct):
    """The fields of a pod that the operator reads."""

    metadata: ObjectMeta
    spec: PodSpecView
    status: PodStatusView = msgspec.field(default_factory=PodStatusView)

    @property
    def terminating(self) -> bool:
        """Whether the pod is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def finished(self) -> bool:
        """Whether the pod is Succeeded or Failed: it never runs again and does not count as a replica."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def active(self) -> bool:
        """Whether the pod counts as a replica: it is neither terminating nor finished."""
        return not self.terminating and not self.finished

    @property
    def scheduled(self) -> bool:
        """Whether the pod is bound to a node. The binding itself counts, whatever the pod's conditions say
        (OBJ-344)."""
        return bool(self.spec.node_name)

    @property
    def group(self) -> str:
        """The name of the Workload API PodGroup that the pod belongs to, or an empty string if it belongs to none."""
        return self.spec.scheduling_group.pod_group_name if self.spec.scheduling_group else ""

    @property
    def ready(self) -> bool:
        """Whether the pod's condition Ready is True."""
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions or ())

    def gated_by(self, name: str) -> bool:
        """Return whether the pod has the scheduling gate with this name."""
        return any(gate.name == name for gate in self.spec.scheduling_gates or ())

    @property
    def gated(self) -> bool:
        """Whether the pod has any scheduling gate."""
        return bool(self.spec.scheduling_gates)


class ServiceSpecView(msgspec.Struct, rename="camel"):
    """The fields of a Service's spec that the operator reads."""

    publish_not_ready_addresses: bool = False
    selector: dict[str, str] | None = None


class Service(msgspec.Struct):
    """The fields of a headless Service that the operator reads."""

    metadata: ObjectMeta
    spec: ServiceSpecView = msgspec.field(default_factory=ServiceSpecView)
