"""The resources that a pod requests: of its containers, pod-level, its overhead, and more during a resize in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from reference_impl.scheduler.quantity import thousandths

if TYPE_CHECKING:
    from reference_impl.scheduler.model import Container, ContainerStatus, Pod, Requirements

Resources = dict[str, int]
"""Resource name → thousandths."""
Quantities = Mapping[str, str | int] | None

PODS = "pods"


def requests(pod: Pod, *, bound: bool) -> Resources:
    """The requests of a pod: those of containers and sidecars together, or of the largest init container if that is
    more. Pod-level requests replace the sums. A bound pod holds what is allocated, too, while a resize is pending."""
    spec, status = pod.spec, pod.status
    statuses: dict[str, ContainerStatus] = {}
    if bound and (status.container_statuses or status.init_container_statuses):
        container_statuses = (*(status.container_statuses or ()), *(status.init_container_statuses or ()))
        statuses = {item.name: item for item in container_statuses if item.resources is not None}
    total: Resources = {}
    for container in spec.containers:
        _add(total, _effective(pod, container, statuses))
    sidecars: Resources = {}
    peak: Resources = {}
    for container in spec.init_containers or ():
        if container.restart_policy == "Always":
            own = _effective(pod, container, statuses)
            _add(total, own)
            _add(sidecars, own)
            _most(peak, sidecars)
        else:
            own = _own(container.resources)
            _add(own, sidecars)
            _most(peak, own)
    _most(total, peak)
    if spec.resources is not None and spec.resources.requests:
        total |= _pod_level(pod, spec.resources, bound=bound)
    if spec.overhead:
        _add(total, amounts(spec.overhead))
    total[PODS] = 1000
    return {name: whole(name, amount) for name, amount in total.items() if amount}


def amounts(quantities: Quantities) -> Resources:
    """Quantities in thousandths."""
    return {name: thousandths(amount) for name, amount in (quantities or {}).items()}


def whole(name: str, amount: int) -> int:
    """An amount as schedulers count it: CPU in thousandths, all else in whole units, rounded up."""
    return amount if name == "cpu" or not amount % 1000 else amount + 1000 - amount % 1000


def _pod_level(pod: Pod, resources: Requirements, *, bound: bool) -> Resources:
    """The pod-level requests of the resources that have such (KEP-2837)."""
    own = amounts(resources.requests)
    if bound and pod.status.resources is not None:
        own = _pending(pod, own, (pod.status.resources.requests, pod.status.allocated_resources))
    return {name: own[name] for name in resources.requests or () if _has_pod_level(name) and name in own}


def _has_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def _effective(pod: Pod, container: Container, statuses: Mapping[str, ContainerStatus]) -> Resources:
    own = _own(container.resources)
    status = statuses.get(container.name)
    if status is None or status.resources is None:
        return own
    return _pending(pod, own, (status.resources.requests, status.allocated_resources))


def _pending(pod: Pod, desired: Resources, reported: Iterable[Quantities]) -> Resources:
    """The largest of what is desired, in use and allocated (KEP-1287); a resize that never happens does not count."""
    result: Resources = {} if pod.resize_infeasible else dict(desired)
    for quantities in reported:
        _most(result, amounts(quantities))
    return result


def _own(resources: Requirements) -> Resources:
    if not resources.limits:
        return amounts(resources.requests)
    return amounts({**resources.limits, **(resources.requests or {})})


def _add(total: Resources, more: Resources) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _most(total: Resources, other: Resources) -> None:
    for name, amount in other.items():
        if amount > total.get(name, 0):
            total[name] = amount
