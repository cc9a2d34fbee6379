"""The devices and claims during a scheduling cycle: the allocations, and the devices that the placed pods will get.

The pods that a cycle places on a node share its devices. If another pod finds no devices, the devices of all these pods
are chosen again, so that no order of pods leaves a device unused that another order would use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from kube.objects import ObjectMeta
from reference_impl.scheduler.devices import extended
from reference_impl.scheduler.devices.allocator import Results, UnallocatableError, Usage, allocate
from reference_impl.scheduler.devices.inventory import Inventory, NodeDevices
from reference_impl.scheduler.devices.objects import DeviceId, ResourceClaim
from reference_impl.scheduler.model import Node, Pod
from reference_impl.scheduler.requests import Resources
from reference_impl.scheduler.selectors import selects_node

MAX_CONSUMERS = 256
"""Maximum number of pods for which a claim can be reserved (DRA-03)."""


@dataclass
class PodClaims:
    """The claims of a pod. `problem` is the reason why the pod cannot be placed yet; empty if it can."""

    allocated: list[ResourceClaim] = field(default_factory=list)
    pod_owned: list[ResourceClaim] = field(default_factory=list)
    """Claims without an allocation that were created for this pod."""
    shared: list[ResourceClaim] = field(default_factory=list)
    """Claims without an allocation that other pods may also use."""
    problem: str = ""


@dataclass
class Placed:
    """A pod placed in this cycle, with the devices of its own claims and then of the shared claims that it is the first
    to use. `results` is None if the devices do not suffice."""

    pod: Pod
    claims: list[ResourceClaim]
    results: list[Results] | None


class Ledger:
    """Devices, claims, and the pods that use them."""

    def __init__(
        self,
        inventory: Inventory | None = None,
        claims: Iterable[ResourceClaim] = (),
        offered: Collection[str] = (),
    ) -> None:
        """`offered` are the resources that nodes offer themselves."""
        self.inventory = inventory or Inventory()
        self.extended = extended.class_names(self.inventory.classes, offered)
        """The extended resources that devices serve, with their classes."""
        self.claims = {item.metadata.key: item for item in claims}
        """The claims by namespace and name."""
        self._users: dict[str, int] = {}
        """The number of pods that use each allocated claim (by uid)."""
        self._placed: dict[str, list[Placed]] = defaultdict(list)
        self._shared: dict[str, tuple[str, Placed]] = {}
        """The first user of each shared claim (by uid) that is placed in this cycle, with its node."""
        self._nodes: dict[str, NodeDevices] = {}
        self._versions: dict[str, int] = defaultdict(int)
        self._version = 0
        self._likenesses: dict[str, tuple[tuple[int, int], object]] = {}
        self._outcomes: dict[tuple[str, bytes], tuple[tuple[int, int], list[list[Results]] | str]] = {}

    def has_claims(self, pod: Pod) -> bool:
        """Return whether a pod has claims, or requests an extended resource that devices serve."""
        if pod.spec.resource_claims:
            return True
        return bool(self.extended) and not self.extended.keys().isdisjoint(pod.requests)

    def node_requests(self, pod: Pod) -> Resources:
        """Return the requests of a pod without the extended resources that devices serve."""
        if not self.extended:
            return pod.requests
        return {resource: amount for resource, amount in pod.requests.items() if resource not in self.extended}

    @cached_property
    def _extended_claims(self) -> dict[str, ResourceClaim]:
        """The claims for extended resources, by the uid of their pod."""
        claims = [claim for claim in self.claims.values() if extended.ANNOTATION in (claim.metadata.annotations or {})]
        return {claim.metadata.controller.uid: claim for claim in claims if claim.metadata.controller}

    @cached_property
    def usage(self) -> Usage:
        """The allocated devices, including the devices of pods placed in this cycle."""
        usage = Usage()
        for claim in self.claims.values():
            for device_id in _devices(claim):
                usage.take(device_id, self.inventory)
        return usage

    def claims_of(self, pod: Pod) -> PodClaims:
        """Return the claims of a pod."""
        pod_claims = PodClaims()
        created = {item.name: item.resource_claim_name for item in pod.status.resource_claim_statuses or ()}
        for reference in pod.spec.resource_claims or ():
            is_own = reference.resource_claim_template_name is not None
            name = created.get(reference.name, "") if is_own else reference.resource_claim_name
            if name is None:  # the template needs no claim
                continue
            claim = self.claims.get((pod.metadata.namespace, name)) if name else None
            if claim is None:
                pod_claims.problem = pod_claims.problem or _missing_claim_reason(reference.name, name)
            elif claim.metadata.deletion_timestamp is not None:
                pod_claims.problem = pod_claims.problem or f"resourceclaim {name} is being deleted"
            elif is_own and not _is_owned(claim.metadata, pod):
                pod_claims.problem = pod_claims.problem or f"resourceclaim {name} was not created for the pod"
            elif claim.status.allocation is not None:
                pod_claims.allocated.append(claim)
            else:
                (pod_claims.pod_owned if is_own else pod_claims.shared).append(claim)
        if self.extended and not self.extended.keys().isdisjoint(pod.requests):
            claim = self._extended_claims.get(pod.metadata.uid) or extended.claim_for(pod, self.extended)
            is_allocated = claim.status.allocation is not None
            (pod_claims.allocated if is_allocated else pod_claims.pod_owned).append(claim)
        return pod_claims

    def form(self, pod: Pod) -> tuple[object, ...]:
        """Return a key that is equal for pods whose claims can be met by the same devices."""
        if not self.has_claims(pod):
            return ()
        claims = self.claims_of(pod)
        fixed = tuple(claim.metadata.uid for claim in (*claims.allocated, *claims.shared))
        return fixed, tuple(claim.form for claim in claims.pod_owned), claims.problem

    def refusal(self, pod: Pod, claims: PodClaims, node: Node) -> str:
        """Return the reason why the claims of a pod cannot be met on a node, or an empty string if they can."""
        if claims.problem:
            return claims.problem
        name, labels = node.metadata.name, node.metadata.labels
        for claim in claims.allocated:
            allocation = claim.status.allocation
            if allocation and allocation.node_selector and not selects_node(allocation.node_selector, name, labels):
                return "resourceclaim not available on the node"
            if len(claim.consumers - {pod.metadata.uid}) >= MAX_CONSUMERS:
                return "resourceclaim in use"
        for claim in claims.shared:
            if (first := self._shared.get(claim.metadata.uid)) is not None and not self._reaches(first, claim, node):
                return "resourceclaim not available on the node"
        outcome = self._solved(self._claims_needing_devices(claims), node)
        return outcome if isinstance(outcome, str) else ""

    def place(self, pod: Pod, node: Node, delta: int) -> None:
        """Add `delta` pods like this one to a node, or remove them if `delta` is negative."""
        if not self.has_claims(pod):
            return
        claims = self.claims_of(pod)
        for _ in range(abs(delta)):
            for claim in claims.allocated:
                self._use(claim, 1 if delta > 0 else -1)
            if delta > 0:
                self._add(pod, claims, node)
            else:
                self._remove(pod, node)

    def placed_on(self, node: str) -> list[Placed]:
        """Return the pods with claims that this cycle has placed on a node, in the order of their placement."""
        return self._placed[node]

    def likeness(self, node: Node) -> object:
        """Return a key that is equal for nodes with equal devices of which the same devices are free."""
        name = node.metadata.name
        version = self._versions[name], self._version
        if (cached := self._likenesses.get(name)) is None or cached[0] != version:
            self._likenesses[name] = cached = version, self._described(self._devices_on(node))
        return cached[1]

    def _described(self, node: NodeDevices) -> object:
        """Return the free devices of a node. The values of attributes that no expression names are replaced with
        numbers, because only their equality can matter."""
        numbers: dict[object, int] = {}
        described = []
        for device in node.devices:
            attributes = [
                (name, numbers.setdefault(value, len(numbers)) if self._is_unnamed(name) else value)
                for name, value in ((name, device.attribute(name)) for name in sorted(device.attributes))
            ]
            is_free = device.device_id not in self.usage.devices
            consumption = [
                (set_name, name, amount, self.usage.consumed.get((driver, pool, set_name, name), 0))
                for (driver, pool, set_name, name), amount in device.consumption.items()
            ]
            shared = "" if device.node_name else device.device_id
            details = attributes, is_free, consumption, device.taints, shared, sorted(device.device.capacity.items())
            described.append(repr(details))
        return tuple(described), node.incomplete_pools

    def _is_unnamed(self, attribute: str) -> bool:
        """Return whether no expression names an attribute."""
        return attribute.partition("/")[2] not in self._expressions

    @cached_property
    def _expressions(self) -> str:
        """All expressions of classes and claims in one string."""
        claims = {claim.form: claim for claim in self.claims.values()}.values()
        alternatives = (
            alternative
            for claim in claims
            for request in claim.spec.devices.requests
            for alternative in request.alternatives
        )
        selectors = [s for item in self.inventory.classes.values() for s in item.spec.selectors]
        selectors += [selector for alternative in alternatives for selector in alternative.selectors]
        return "\n".join(selector.cel.expression for selector in selectors if selector.cel is not None)

    # -- claims that are placed in this cycle ----

    def _claims_needing_devices(self, claims: PodClaims) -> list[ResourceClaim]:
        """Return the claims that need devices: claims of the pod, and shared claims that no placed pod uses yet."""
        return [*claims.pod_owned, *(claim for claim in claims.shared if claim.metadata.uid not in self._shared)]

    def _add(self, pod: Pod, claims: PodClaims, node: Node) -> None:
        open_claims, name = self._claims_needing_devices(claims), node.metadata.name
        outcome = self._solved(open_claims, node)
        placed = Placed(pod, open_claims, None)
        self._placed[name].append(placed)
        if not isinstance(outcome, str):
            self._exchange(dict(enumerate(outcome)), name)
        for claim in claims.shared:
            self._shared.setdefault(claim.metadata.uid, (name, placed))

    def _remove(self, pod: Pod, node: Node) -> None:
        entries = self._placed[node.metadata.name]
        index = next((i for i in reversed(range(len(entries))) if entries[i].pod is pod), None)
        if index is None:  # a pod that was bound before this cycle
            return
        self._exchange({index: None}, node.metadata.name)
        placed = entries.pop(index)
        for uid in [uid for uid, (_, first) in self._shared.items() if first is placed]:
            del self._shared[uid]

    def _solved(self, claims: list[ResourceClaim], node: Node) -> list[list[Results]] | str:
        """Return the devices for each pod placed on the node and, last, for `claims`, or the reason why there are no
        such devices."""
        if not claims:
            return [entry.results or [] for entry in self._placed[node.metadata.name]] + [[]]
        name = node.metadata.name
        key = name, b"".join(claim.form for claim in claims)
        version = self._versions[name], self._version
        if (cached := self._outcomes.get(key)) is None or cached[0] != version:
            self._outcomes[key] = cached = (version, self._solve(claims, node))
        return cached[1]

    def _solve(self, claims: list[ResourceClaim], node: Node) -> list[list[Results]] | str:
        devices, entries = self._devices_on(node), self._placed[node.metadata.name]
        specs = [claim.spec for claim in claims]
        current_results = [entry.results or [] for entry in entries]
        try:
            return [*current_results, allocate(specs, devices, self.inventory, self.usage)]
        except UnallocatableError as error:
            reason = str(error)
        if not any(entry.claims for entry in entries):
            return reason
        for entry in entries:
            self._count(entry.results, -1)
        try:
            all_specs = [claim.spec for entry in entries for claim in entry.claims] + specs
            results = allocate(all_specs, devices, self.inventory, self.usage)
        except UnallocatableError:
            return reason
        finally:
            for entry in entries:
                self._count(entry.results, 1)
        groups = [*(len(entry.claims) for entry in entries), len(specs)]
        remaining = iter(results)
        return [[next(remaining) for _ in range(size)] for size in groups]

    def _exchange(self, results: Mapping[int, list[Results] | None], node: str) -> None:
        """Give pods that are placed on a node other devices, by the position of the pod."""
        entries = self._placed[node]
        changes = [(entries[i], new) for i, new in results.items() if entries[i].results != new]
        for entry, _ in changes:
            self._count(entry.results, -1)
            self._touch(entry.results or (), node)
        for entry, new in changes:
            entry.results = new
            self._count(new, 1)
            self._touch(new or (), node)

    # -- devices ----

    def _devices_on(self, node: Node) -> NodeDevices:
        devices = self._nodes.get(node.metadata.name)
        if devices is None:
            devices = self.inventory.on_node(node.metadata.name, node.metadata.labels)
            self._nodes[node.metadata.name] = devices
        return devices

    def _count(self, results: Iterable[Results] | None, count: int) -> None:
        for result in (result for claim_results in results or () for result in claim_results):
            if not result.admin_access:
                self.usage.take(result.device_id, self.inventory, count)

    def _use(self, claim: ResourceClaim, delta: int) -> None:
        """Count a user of an allocated claim. Its devices are free while it has none."""
        uid = claim.metadata.uid
        users = self._users.setdefault(uid, max(1, len(claim.status.reserved_for)))
        self._users[uid] = users + delta
        if (users > 0) != (users + delta > 0):
            for device_id in _devices(claim):
                self.usage.take(device_id, self.inventory, delta)
            self._version += 1

    def _touch(self, results: Iterable[Results], node: str) -> None:
        """Invalidate the cached outcomes of nodes that can use these devices."""
        self._versions[node] += 1
        published = (self.inventory.devices.get(r.device_id) for claim_results in results for r in claim_results)
        if any(device is not None and not device.node_name for device in published):
            self._version += 1

    def _reaches(self, first: tuple[str, Placed], claim: ResourceClaim, node: Node) -> bool:
        """Return whether the devices of a shared claim, chosen in this cycle, can be used on a node."""
        name, placed = first
        if name == node.metadata.name:
            return True
        if placed.results is None:
            return False
        results = placed.results[placed.claims.index(claim)]
        published = [self.inventory.devices[result.device_id] for result in results]
        return all(device.is_usable_on(node.metadata.name, node.metadata.labels) for device in published)


def _devices(claim: ResourceClaim) -> list[DeviceId]:
    allocation = claim.status.allocation
    return [result.device_id for result in allocation.devices.results if not result.admin_access] if allocation else []


def _missing_claim_reason(reference: str, name: str) -> str:
    if not name:
        return f"waits for the controller manager to create the resourceclaim {reference}"
    return f"resourceclaim {name} does not exist"


def _is_owned(meta: ObjectMeta, pod: Pod) -> bool:
    return meta.controller is not None and meta.controller.uid == pod.metadata.uid
