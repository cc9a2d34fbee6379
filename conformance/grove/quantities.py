"""Resource amounts: values of quantities, requests of a pod, and capacity of a node. Malformed input is accepted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

from conformance.grove.fields import Document, at, items, mapping, text

Amounts = dict[str, Decimal]

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,3}))?")
_BINARY = {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)}
_DECIMAL = {letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)}
_DECIMAL |= {letter: Decimal(1000) ** -power for power, letter in enumerate("mun", 1)}


def amount(quantity: object) -> Decimal | None:
    """Return the value of a quantity: `500m` → 0.5, `1Ki` → 1024, `2e3` → 2000. None for anything else."""
    if isinstance(quantity, int | float) and not isinstance(quantity, bool):
        return Decimal(str(quantity))
    match = _QUANTITY.fullmatch(quantity.strip()) if isinstance(quantity, str) else None
    if match is None:
        return None
    digits, binary, decimal, exponent = match.groups()
    if exponent:
        return Decimal(digits) * Decimal(10) ** int(exponent)
    return Decimal(digits) * (_BINARY[binary] if binary else _DECIMAL[decimal] if decimal else 1)


def amounts(quantities: Mapping[str, object]) -> Amounts:
    """Return the values of all valid quantities, by resource."""
    return {name: parsed for name, value in quantities.items() if (parsed := amount(value)) is not None}


def allocatable(node: Document) -> Amounts:
    """Return the amounts that a node offers to pods, from `status.allocatable`."""
    return amounts(mapping(node, "status", "allocatable"))


def requested(pod: Document) -> Amounts:
    """Return the amounts that a pod takes from its node: the sum of its containers or, if larger, an init container
    together with the sidecars started before it; pod-level resources take precedence. The overhead and the pod itself
    (`pods`: 1) are added."""
    container_requests_sum = _sum(_requests(container) for container in items(pod, "spec", "containers"))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in items(pod, "spec", "initContainers"):
        container_requests = _requests(container)
        if text(container, "restartPolicy") == "Always":
            sidecars = _sum([sidecars, container_requests])
            container_requests = {}
        peak = _larger(peak, _sum([sidecars, container_requests]))
    total = _larger(_sum([container_requests_sum, sidecars]), peak) | _requests(at(pod, "spec"))
    return _sum([total, amounts(mapping(pod, "spec", "overhead")), {"pods": Decimal(1)}])


def _requests(part: object) -> Amounts:
    return amounts(mapping(part, "resources", "limits")) | amounts(mapping(part, "resources", "requests"))


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, Decimal(0)) + value
    return total


def _larger(first: Amounts, second: Amounts) -> Amounts:
    return {name: max(first.get(name, Decimal(0)), second.get(name, Decimal(0))) for name in {**first, **second}}
