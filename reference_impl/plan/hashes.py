"""Hashes that tell whether a template has changed. Equal meaning gives an equal hash: lists that the Kubernetes API
keys by a name are sorted before hashing (seed 002); order that means something is kept."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import orjson

from reference_impl.api.models import CliqueTemplate, PodCliqueSet, StartupType, wire

_POD_KEYS = {
    "containers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "imagePullSecrets": ("name",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
}
_CONTAINER_KEYS = {
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "resizePolicy": ("resourceName",),
}


def _sorted(holder: dict[str, Any], keys: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    result = dict(holder)
    for field, names in keys.items():
        if isinstance(items := result.get(field), list):
            result[field] = sorted(items, key=lambda item: [str(item.get(name, "")) for name in names])
    return result


def canonical_pod_spec(spec: dict[str, Any]) -> dict[str, Any]:
    """The pod spec with every list that has no order of its own sorted by its key."""
    result = _sorted(spec, _POD_KEYS)
    for field in ("containers", "initContainers", "ephemeralContainers"):
        if isinstance(containers := result.get(field), list):
            result[field] = [_sorted(container, _CONTAINER_KEYS) for container in containers]
    return result


def _digest(value: Any) -> str:
    """Ten characters that are legal in a label."""
    data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return base64.b32encode(hashlib.sha256(data).digest()).decode().lower()[:10]


def _template(template: CliqueTemplate, priority_class: str | None) -> dict[str, Any]:
    spec = canonical_pod_spec(template.spec.pod_spec)
    if priority_class:
        spec["priorityClassName"] = priority_class
    return {"labels": template.labels or {}, "annotations": template.annotations or {}, "spec": spec}


def pod_template(template: CliqueTemplate, priority_class: str | None) -> str:
    """The value of `grove.io/pod-template-hash` for the pods of a clique."""
    return _digest(_template(template, priority_class))


def generation(pcs: PodCliqueSet) -> str:
    """`status.currentGenerationHash`: changes when any clique's pods would. The order of cliques counts only where
    it is the start-up order."""
    spec = pcs.spec.template
    templates = [(t.name, _template(t, spec.priority_class_name)) for t in spec.cliques]
    in_order = spec.clique_startup_type == StartupType.IN_ORDER
    return _digest([in_order, wire(templates if in_order else sorted(templates, key=lambda pair: pair[0]))])
