"""The resources that a pod requests: of its containers, pod-level, its overhead, and more during a resize in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from reference_impl.scheduler.quantity import thousandths

if TYPE_CHECKING:
    from reference_impl.scheduler.model import Container, ContainerStatus, Pod, Requirements

Resources = dict[str, int]
"""Resource name → thousandths."""
Quantities = Mapping[str, str | int] | None

PODS = "pods"


Amount = Callable[["Container", "ContainerStatus | None"], Resources]
"""The resources of a container, in a new dict: requested ones or, by its status, allocated ones or those in use."""


def requests(pod: Pod, *, bound: bool) -> Resources:
    """The requests of a pod: those of containers and sidecars together, or of the largest init container if that is
    more. Pod-level requests replace the sums. A bound pod holds what is allocated, too, while a resize is pending."""

    def pending(container: Container, status: ContainerStatus | None) -> Resources:
        requested = _container_requests(container.resources)
        if status is None or status.resources is None:
            return requested
        return _pending(pod, requested, (status.resources.requests, status.allocated_resources))

    return _complete(pod, _sum(pod, pending if bound else _desired), bound=bound)


def usage_from_1_37(pod: Pod) -> Resources:
    """The resources that a bound pod holds for kube-scheduler from Kubernetes 1.37 on: the largest of the sums of what
    its containers request, have been allocated and use. Before, it is the sum of the largest of each container."""
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
        sums = [_sum(pod, allocated), _sum(pod, in_use)]
    if not infeasible:
        sums.append(_sum(pod, _desired))
    for resources in sums:
        _raise_to(total, resources)
    return _complete(pod, total, bound=True)


def _sum(pod: Pod, amount: Amount) -> Resources:
    """Sum up an amount over the containers of a pod, whose init containers run one after the other."""
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
            container_amounts = amount(container, None)  # it is not resized
            _add(container_amounts, sidecars)
            _raise_to(peak, container_amounts)
    _raise_to(total, peak)
    return total


def _complete(pod: Pod, total: Resources, *, bound: bool) -> Resources:
    """Add the pod-level requests, the overhead and the pod itself to a sum over containers."""
    spec = pod.spec
    if spec.resources is not None and spec.resources.requests:
        total |= _pod_level(pod, spec.resources, bound=bound)
    if spec.overhead:
        _add(total, amounts(spec.overhead))
    total[PODS] = 1000
    return {name: whole(name, amount) for name, amount in total.items() if amount}


def _desired(container: Container, _: ContainerStatus | None) -> Resources:
    return _container_requests(container.resources)


def amounts(quantities: Quantities) -> Resources:
    """Quantities in thousandths."""
    return {name: thousandths(amount) for name, amount in (quantities or {}).items()}


def whole(name: str, amount: int) -> int:
    """An amount as schedulers count it: CPU in thousandths, all else in whole units, rounded up."""
    return amount if name == "cpu" or not amount % 1000 else amount + 1000 - amount % 1000


def _pod_level(pod: Pod, resources: Requirements, *, bound: bool) -> Resources:
    """The pod-level requests of the resources that have such (KEP-2837)."""
    pod_requests = amounts(resources.requests)
    if bound and pod.status.resources is not None:
        pod_requests = _pending(pod, pod_requests, (pod.status.resources.requests, pod.status.allocated_resources))
    return {
        name: pod_requests[name] for name in resources.requests or () if _has_pod_level(name) and name in pod_requests
    }


def _has_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _pending(pod: Pod, desired: Resources, reported: Iterable[Quantities]) -> Resources:
    """The largest of what is desired, in use and allocated (KEP-1287); a resize that never happens does not count."""
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
