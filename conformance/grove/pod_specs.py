"""Compare the pod specs of Pods and PodCliques with their template: they must contain everything in the template, in
order, and only additions by Grove and by the API server. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.grove.fields import Document, items, mapping, text

GROVE_FIELDS = ("hostname", "subdomain", "schedulingGates", "schedulingGroup", "nodeName")
"""Fields of a pod spec that Grove, a scheduler back-end or the scheduler sets."""
ACCOUNT_FIELDS = ("serviceAccountName", "serviceAccount")
"""The ServiceAccount of a Pod, and the deprecated name of that field."""
CONTAINERS = ("initContainers", "containers")
VARIABLE_PREFIX = "GROVE_"
"""The prefix of the names of Grove's environment variables."""
_TOKEN_VOLUME = re.compile(r"\bkube-api-access-[a-z0-9]{5}\b")


def prune(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a value without the fields that a structural schema does not contain, because the API server prunes
    them."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or not schema:
        return value
    if isinstance(value, list):
        return [prune(item, schema.get("items", {})) for item in value]
    if not isinstance(value, Mapping):
        return value
    properties, additional = schema.get("properties", {}), schema.get("additionalProperties", False)
    if isinstance(additional, Mapping):
        return {key: prune(item, additional) for key, item in value.items()}
    return dict(value) if additional else {k: prune(v, properties[k]) for k, v in value.items() if k in properties}


def of_pod(pod_spec: Document, accepted: Document, template: Document) -> dict[str, object]:
    """Return the fields of a Pod's spec by path, for comparison with `accepted`: the spec that the API server creates
    from the template. Permitted additions are left out: fields that Grove sets; ResourceClaims, tolerations, node
    selectors and an affinity from a scheduler back-end; and the init containers, volumes and ServiceAccount with which
    Pods wait for other Pods."""
    fields = by_path(_without_additions(_without_waits(pod_spec, accepted), accepted))
    return fields if "serviceAccountName" in template else {k: v for k, v in fields.items() if k not in ACCOUNT_FIELDS}


def of_clique(pod_spec: Document, template: Document, accepted: Document) -> dict[str, object]:
    """Return the fields of a PodClique's podSpec by path, for comparison with its template. Everything that may be
    added to a Pod may already be added here. Defaults as in `accepted` may also be written, and values that the API
    server omits because they have no meaning, such as an empty list, may be missing."""
    spec = _without_additions(_without_waits(pod_spec, template), template)
    wait_fields = ("schedulerName",) if "serviceAccountName" in template else ("schedulerName", *ACCOUNT_FIELDS)
    return by_path(_without_defaults({k: v for k, v in spec.items() if k not in wait_fields}, template, accepted))


def by_path(value: object, path: str = "") -> dict[str, object]:
    """Return the scalars and lists of scalars in a value by their paths, including empty objects and lists."""
    if isinstance(value, Mapping) and value:
        parts = [by_path(item, f"{path}.{key}".lstrip(".")) for key, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        parts = [by_path(item, f"{path}[{index}]") for index, item in enumerate(value)]
    else:
        return {path: _TOKEN_VOLUME.sub("kube-api-access", value) if isinstance(value, str) else value}
    return {key: item for part in parts for key, item in part.items()}


def _without_waits(pod_spec: Document, accepted: Document) -> dict[str, Any]:
    """Return a Pod's spec without additional init containers that are not sidecars, and without the volumes that only
    these containers mount."""
    accepted_names = {text(container, "name") for container in items(accepted, "initContainers")}
    containers = items(pod_spec, "initContainers")
    waiting_containers = [
        c for c in containers if text(c, "name") not in accepted_names and text(c, "restartPolicy") != "Always"
    ]
    if not waiting_containers:
        return dict(pod_spec)
    other_containers = [container for container in containers if container not in waiting_containers]
    still_mounted = _mounted([*other_containers, *items(pod_spec, "containers")]) | {
        text(v, "name") for v in items(accepted, "volumes")
    }
    volumes = [
        v for v in items(pod_spec, "volumes") if text(v, "name") not in _mounted(waiting_containers) - still_mounted
    ]
    return {**pod_spec, "initContainers": other_containers, "volumes": volumes}


def _mounted(containers: Iterable[Document]) -> set[str]:
    return {text(mount, "name") for container in containers for mount in items(container, "volumeMounts")}


def _without_additions(pod_spec: Document, template: Document) -> dict[str, Any]:
    claims = {text(claim, "name") for claim in items(template, "resourceClaims")}
    spec = {k: v for k, v in pod_spec.items() if k not in GROVE_FIELDS and (k != "affinity" or k in template)}
    if "nodeSelector" in spec:
        selector = mapping(template, "nodeSelector")
        spec["nodeSelector"] = {key: value for key, value in mapping(spec, "nodeSelector").items() if key in selector}
    if "tolerations" in spec:
        tolerations = items(template, "tolerations")
        spec["tolerations"] = [toleration for toleration in items(spec, "tolerations") if toleration in tolerations]
    if "resourceClaims" in spec:
        spec["resourceClaims"] = [claim for claim in items(spec, "resourceClaims") if text(claim, "name") in claims]
    for field in CONTAINERS:
        if field in spec:
            spec[field] = [_container(container, claims) for container in items(spec, field)]
    return {key: value for key, value in spec.items() if value or key in template}


def _container(container: Document, claims: set[str]) -> dict[str, Any]:
    result = dict(container)
    if "env" in result:
        result["env"] = [v for v in items(result, "env") if not text(v, "name").startswith(VARIABLE_PREFIX)]
    if "claims" in result.get("resources", ()):
        kept_claims = [claim for claim in items(result, "resources", "claims") if text(claim, "name") in claims]
        remaining = {key: value for key, value in result["resources"].items() if key != "claims"}
        result["resources"] = {**remaining, **({"claims": kept_claims} if kept_claims else {})}
    return {key: value for key, value in result.items() if value or key != "env"}


def _without_defaults(value: object, template: object, accepted: object) -> object:
    """Return a value without fields that are missing in the template and equal the default in `accepted`, and without
    empty fields that are missing in `accepted`."""
    if isinstance(value, Mapping) and isinstance(template, Mapping):
        defaults = accepted if isinstance(accepted, Mapping) else {}
        return {
            key: _without_defaults(item, template.get(key), defaults.get(key))
            for key, item in value.items()
            if (key in template and (item or key in defaults)) or (item and item != defaults.get(key))
        }
    if isinstance(value, list) and isinstance(template, list) and len(value) == len(template):
        # The API server's admission appends to lists, for example the token volume.
        defaults_of = accepted if isinstance(accepted, list) and len(accepted) >= len(value) else [None] * len(value)
        return [_without_defaults(*items_) for items_ in zip(value, template, defaults_of, strict=False)]
    return value
