"""The canonical form of a pod spec: lists of keyed items whose order has no meaning are sorted by key (spec HASH-090 to
HASH-103). All other lists keep their order, which is significant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

PodSpec = Mapping[str, Any]
_Key = Callable[[Mapping[str, Any]], Any]


def _text_key(*names: str) -> _Key:
    return lambda item: tuple(item.get(name) or "" for name in names)


def _port_key(item: Mapping[str, Any]) -> tuple[int, str]:
    return item.get("containerPort") or 0, item.get("protocol") or ""


_POD_LIST_KEYS: dict[str, _Key] = {
    "containers": _text_key("name"),
    "ephemeralContainers": _text_key("name"),
    "volumes": _text_key("name"),
    "imagePullSecrets": _text_key("name"),
    "resourceClaims": _text_key("name"),
    "schedulingGates": _text_key("name"),
    "hostAliases": _text_key("ip"),
    "topologySpreadConstraints": _text_key("topologyKey", "whenUnsatisfiable"),
}
_CONTAINER_LIST_KEYS: dict[str, _Key] = {
    "ports": _port_key,
    "volumeMounts": _text_key("mountPath"),
    "volumeDevices": _text_key("devicePath"),
}
_RESOURCE_LIST_KEYS: dict[str, _Key] = {"claims": _text_key("name")}
_CONTAINER_FIELDS = ("containers", "initContainers", "ephemeralContainers")


def _with_sorted_lists(holder: Mapping[str, Any], keys: Mapping[str, _Key]) -> dict[str, Any]:
    """Return a copy in which the keyed lists are sorted. The sort is stable, so items with equal keys keep their order
    (HASH-099)."""
    result = dict(holder)
    for name, key in keys.items():
        items = result.get(name)
        if isinstance(items, list) and len(items) > 1:
            result[name] = sorted(items, key=lambda item: key(item or {}))
    return result


def _canonical_container(container: Mapping[str, Any]) -> dict[str, Any]:
    result = _with_sorted_lists(container, _CONTAINER_LIST_KEYS)
    resources = result.get("resources")
    if isinstance(resources, dict) and resources.get("claims"):
        result["resources"] = _with_sorted_lists(resources, _RESOURCE_LIST_KEYS)
    return result


def canonical_pod_spec(spec: PodSpec) -> dict[str, Any]:
    """Return the canonical form of a pod spec. The argument is not changed."""
    result = _with_sorted_lists(spec, _POD_LIST_KEYS)
    for name in _CONTAINER_FIELDS:
        if isinstance(containers := result.get(name), list):
            result[name] = [_canonical_container(container or {}) for container in containers]
    return result
