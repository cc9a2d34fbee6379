"""The canonical form of a pod spec: lists of keyed items whose order has no meaning are sorted by key (spec HASH-090 to
HASH-103). All other lists keep their order, which is significant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

PodSpec = Mapping[str, Any]
_Key = Callable[[Mapping[str, Any]], Any]


def _texts(*names: str) -> _Key:
    return lambda item: tuple(item.get(name) or "" for name in names)


def _port(item: Mapping[str, Any]) -> tuple[int, str]:
    return item.get("containerPort") or 0, item.get("protocol") or ""


_OF_POD: dict[str, _Key] = {
    "containers": _texts("name"),
    "ephemeralContainers": _texts("name"),
    "volumes": _texts("name"),
    "imagePullSecrets": _texts("name"),
    "resourceClaims": _texts("name"),
    "schedulingGates": _texts("name"),
    "hostAliases": _texts("ip"),
    "topologySpreadConstraints": _texts("topologyKey", "whenUnsatisfiable"),
}
_OF_CONTAINER: dict[str, _Key] = {
    "ports": _port,
    "volumeMounts": _texts("mountPath"),
    "volumeDevices": _texts("devicePath"),
}
_OF_RESOURCES: dict[str, _Key] = {"claims": _texts("name")}
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def _sorted(holder: Mapping[str, Any], keys: Mapping[str, _Key]) -> dict[str, Any]:
    """Return a copy in which the keyed lists are sorted. The sort is stable, so items with equal keys keep their order
    (HASH-099)."""
    result = dict(holder)
    for name, key in keys.items():
        items = result.get(name)
        if isinstance(items, list) and len(items) > 1:
            result[name] = sorted(items, key=lambda item: key(item or {}))
    return result


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    result = _sorted(container, _OF_CONTAINER)
    resources = result.get("resources")
    if isinstance(resources, dict) and resources.get("claims"):
        result["resources"] = _sorted(resources, _OF_RESOURCES)
    return result


def pod_spec(spec: PodSpec) -> dict[str, Any]:
    """Return the canonical form of a pod spec. The argument is not changed."""
    result = _sorted(spec, _OF_POD)
    for name in _CONTAINERS:
        if isinstance(containers := result.get(name), list):
            result[name] = [_container(container or {}) for container in containers]
    return result
