"""The fields of ResourceSlices, DeviceClasses and ResourceClaims that the scheduler reads (DRA-01)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import msgspec

from kube.objects import ObjectMeta
from kube.resource import Resource
from reference_impl.scheduler.selectors import NodeSelector

SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")

FINALIZER = "resource.kubernetes.io/delete-protection"
"""The finalizer of allocated claims. The controller manager removes it when it deallocates a claim."""


class DeviceTaint(msgspec.Struct, frozen=True):
    """A taint of a device."""

    key: str = ""
    value: str = ""
    effect: str = ""


class DeviceToleration(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    """A toleration of a request. An empty operator is Equal."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, taint: DeviceTaint) -> bool:
        """Return whether the toleration covers a taint. Unknown operators cover nothing."""
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        return self.operator == "Exists" or (self.operator in ("", "Equal") and self.value == taint.value)


class DeviceQuantity(msgspec.Struct, frozen=True):
    """A capacity of a device, or the value of a counter."""

    value: str | int = "0"


class CounterSet(msgspec.Struct):
    """The counters that devices of a pool share."""

    name: str = ""
    counters: dict[str, DeviceQuantity] = {}


class Consumption(msgspec.Struct, rename="camel"):
    """The amounts that a device consumes of one counter set."""

    counter_set: str = ""
    counters: dict[str, DeviceQuantity] = {}


class Device(msgspec.Struct, rename="camel"):
    """A device of a slice. An attribute is a dict with one entry: type (`bool`, `int`, `string` or `version`) and
    value."""

    name: str = ""
    attributes: dict[str, dict[str, Any]] = {}
    capacity: dict[str, DeviceQuantity] = {}
    consumes_counters: list[Consumption] = []
    taints: list[DeviceTaint] = []
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    allow_multiple_allocations: bool = False
    binds_to_node: bool = False
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []


class PoolReference(msgspec.Struct, rename="camel"):
    """The pool of a slice."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class SliceSpec(msgspec.Struct, rename="camel"):
    """The spec of a ResourceSlice."""

    driver: str = ""
    pool: PoolReference = msgspec.field(default_factory=PoolReference)
    node_name: str = ""
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: list[Device] = []
    shared_counters: list[CounterSet] = []


class ResourceSlice(msgspec.Struct):
    """The fields of a ResourceSlice that the scheduler reads."""

    metadata: ObjectMeta
    spec: SliceSpec = msgspec.field(default_factory=SliceSpec)


class CelSelector(msgspec.Struct, frozen=True):
    """A CEL expression about a device."""

    expression: str = ""


class Selector(msgspec.Struct, frozen=True):
    """A selector of a class or a request."""

    cel: CelSelector | None = None


class ClassSpec(msgspec.Struct, rename="camel"):
    """The spec of a DeviceClass."""

    selectors: list[Selector] = []
    config: list[dict[str, Any]] = []
    extended_resource_name: str = ""


class DeviceClass(msgspec.Struct):
    """The fields of a DeviceClass that the scheduler reads."""

    metadata: ObjectMeta
    spec: ClassSpec = msgspec.field(default_factory=ClassSpec)


class Request(msgspec.Struct, rename="camel"):
    """`exactly` of a request, or one of the alternatives in `firstAvailable`. Only alternatives have a name."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[Selector] = []
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool = False
    tolerations: list[DeviceToleration] = []
    capacity: dict[str, Any] | None = None


class DeviceRequest(msgspec.Struct, rename="camel"):
    """A request of a claim: either one form, or alternatives in order of preference."""

    name: str = ""
    exactly: Request | None = None
    first_available: list[Request] = []

    @property
    def alternatives(self) -> list[Request]:
        """The forms in which the request can be met, in order of preference."""
        return [self.exactly] if self.exactly is not None else self.first_available

    def result_name(self, alternative: Request) -> str:
        """Return the name that an allocation result has for an alternative."""
        return f"{self.name}/{alternative.name}" if alternative.name else self.name


class Constraint(msgspec.Struct, rename="camel"):
    """A constraint on the devices of several requests. Without `requests`, the constraint covers all requests."""

    requests: list[str] = []
    match_attribute: str = ""
    distinct_attribute: str = ""

    def covers(self, request: str, alternative: str) -> bool:
        """Return whether the constraint covers a request in one of its alternatives."""
        return not self.requests or request in self.requests or f"{request}/{alternative}" in self.requests


class DeviceClaim(msgspec.Struct):
    """`devices` of a claim's spec."""

    requests: list[DeviceRequest] = []
    constraints: list[Constraint] = []
    config: list[dict[str, Any]] = []


class ResourceClaimSpec(msgspec.Struct):
    """The spec of a ResourceClaim."""

    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


class Result(msgspec.Struct, rename="camel", omit_defaults=True):
    """One device of an allocation."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None

    @property
    def device_id(self) -> DeviceId:
        """The device's unique id: driver, pool and name."""
        return self.driver, self.pool, self.device


class AllocatedDevices(msgspec.Struct):
    """`devices` of an allocation."""

    results: list[Result] = []


class Allocation(msgspec.Struct, rename="camel"):
    """The allocation of a claim."""

    devices: AllocatedDevices = msgspec.field(default_factory=AllocatedDevices)
    node_selector: NodeSelector | None = None


class Consumer(msgspec.Struct, rename="camel"):
    """An object for which a claim is reserved."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ResourceClaimStatus(msgspec.Struct, rename="camel"):
    """The status of a ResourceClaim."""

    allocation: Allocation | None = None
    reserved_for: list[Consumer] = []


class ResourceClaim(msgspec.Struct, dict=True):
    """The fields of a ResourceClaim that the scheduler reads."""

    metadata: ObjectMeta
    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = msgspec.field(default_factory=ResourceClaimStatus)

    @cached_property
    def form(self) -> bytes:
        """A key that is equal for claims with equal specs."""
        return msgspec.json.encode(self.spec)

    @property
    def consumers(self) -> set[str]:
        """The pods (by uid) for which the claim is reserved."""
        return {consumer.uid for consumer in self.status.reserved_for}


DeviceId = tuple[str, str, str]
"""Driver, pool and name of a device."""
