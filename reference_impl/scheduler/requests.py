"""The resources that a pod requests for its containers, at pod level, for its overhead, and additionally during an
in-place resize."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from reference_impl.scheduler.quantity import thousandths

if TYPE_CHECKING:
    from reference_impl.scheduler.model import Container, ContainerStatus, Pod, Requirements

Resources = dict[str, int]
"""Amounts in thousandths of a unit, by resource name."""
Quantities = Mapping[str, str | int] | None

PODS = "pods"


Amount = Callable[["Container", "ContainerStatus | None"], Resources]
"""Returns the resources of a container in a new dict: its requests or, by its status, its allocated resources or those
in use."""


def requests(pod: Pod, *, bound: bool) -> Resources:
    """Return the requests of a pod: the sum over containers and sidecars, or the largest init container if it requests
    more. Pod-level requests replace these sums. While a resize is pending, a bound pod also holds the allocated
    resources."""

    def resized_requests(container: Container, status: ContainerStatus | None) -> Resources:
        requested = _container_requests(container.resources)
        if status is None or status.resources is None:
            return requested
        return _largest_resources(pod, requested, (status.resources.requests, status.allocated_resources))

    return _with_pod_amounts(pod, _sum_containers(pod, resized_requests if bound else _desired_resources), bound=bound)


def usage_from_1_37(pod: Pod) -> Resources:
    """Return the resources that a bound pod holds according to kube-scheduler 1.37 and later: the largest of three sums
    over its containers, which are the requested, the allocated and the used resources. Earlier versions sum up the
    largest of the three for each container."""
    status, infeasible = pod.status, pod.resize_infeasible

    def allocated(container: Container, reported: ContainerStatus | None) -> Resources:
        if reported is not None and reported.allocated_resources is not None:
            return amounts(reported.allocated_resources)
        return {} if infeasible else _container_requests(container.resources)

    def in_use(container: Container, reported: ContainerStatus | None) -> Resources:
        if reported is not None and reported.resources is not None and reported.resources.requests is not None:
            return amounts(reported.resources.requests)
        return allocated(container, reported)

    total: Resources = {}
    if (
        status.allocated_resources is not None
        and status.resources is not None
        and status.resources.requests is not None
    ):
        sums = [amounts(status.allocated_resources), amounts(status.resources.requests)]
    else:
        sums = [_sum_containers(pod, allocated), _sum_containers(pod, in_use)]
    if not infeasible:
        sums.append(_sum_containers(pod, _desired_resources))
    for resources in sums:
        _raise_to(total, resources)
    return _with_pod_amounts(pod, total, bound=True)


def _sum_containers(pod: Pod, amount: Amount) -> Resources:
    """Sum up an amount over the containers of a pod. Init containers other than sidecars run one after another, so only
    the largest of them counts."""
    container_statuses = (*(pod.status.container_statuses or ()), *(pod.status.init_container_statuses or ()))
    statuses = {status.name: status for status in container_statuses}
    total: Resources = {}
    for container in pod.spec.containers:
        _add(total, amount(container, statuses.get(container.name)))
    sidecars: Resources = {}
    peak: Resources = {}
    for container in pod.spec.init_containers or ():
        if container.restart_policy == "Always":
            container_amounts = amount(container, statuses.get(container.name))
            _add(total, container_amounts)
            _add(sidecars, container_amounts)
            _raise_to(peak, sidecars)
        else:
            container_amounts = amount(container, None)  # init containers are not resized
            _add(container_amounts, sidecars)
            _raise_to(peak, container_amounts)
    _raise_to(total, peak)
    return total


def _with_pod_amounts(pod: Pod, total: Resources, *, bound: bool) -> Resources:
    """Add the pod-level requests, the overhead and the pod itself to a sum over containers."""
    spec = pod.spec
    if spec.resources is not None and spec.resources.requests:
        total |= _pod_level(pod, spec.resources, bound=bound)
    if spec.overhead:
        _add(total, amounts(spec.overhead))
    total[PODS] = 1000
    return {name: rounded_up(name, amount) for name, amount in total.items() if amount}


def _desired_resources(container: Container, _: ContainerStatus | None) -> Resources:
    return _container_requests(container.resources)


def amounts(quantities: Quantities) -> Resources:
    """Return quantities in thousandths of a unit."""
    return {name: thousandths(amount) for name, amount in (quantities or {}).items()}


def rounded_up(name: str, amount: int) -> int:
    """Return an amount as schedulers count it: CPU in thousandths, any other resource in whole units, rounded up."""
    return amount if name == "cpu" or not amount % 1000 else amount + 1000 - amount % 1000


def _pod_level(pod: Pod, resources: Requirements, *, bound: bool) -> Resources:
    """Return the pod-level requests, for the resources that support them (KEP-2837)."""
    pod_requests = amounts(resources.requests)
    if bound and pod.status.resources is not None:
        pod_requests = _largest_resources(
            pod, pod_requests, (pod.status.resources.requests, pod.status.allocated_resources)
        )
    return {
        name: pod_requests[name] for name in resources.requests or () if _has_pod_level(name) and name in pod_requests
    }


def _has_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _largest_resources(pod: Pod, desired: Resources, reported: Iterable[Quantities]) -> Resources:
    """Return the largest of the desired, used and allocated resources (KEP-1287). The desired resources of an
    infeasible resize do not count."""
    result: Resources = {} if pod.resize_infeasible else dict(desired)
    for quantities in reported:
        _raise_to(result, amounts(quantities))
    return result


def _container_requests(resources: Requirements) -> Resources:
    if not resources.limits:
        return amounts(resources.requests)
    return amounts({**resources.limits, **(resources.requests or {})})


def _add(total: Resources, addend: Resources) -> None:
    for name, amount in addend.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Resources, other: Resources) -> None:
    for name, amount in other.items():
        if amount > total.get(name, 0):
            total[name] = amount
