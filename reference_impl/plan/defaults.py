"""The defaults that the mutating webhook sets in a PodCliqueSet (spec DEF-08 to DEF-15). The webhook works on plain
JSON, so an invalid object passes through and is rejected by the schema or the validating webhook.

Absent scalars that the CRD requires get their zero values, as if Go had decoded and encoded the object (DFT-23). The
error then comes from the more specific rule (`must be greater than 0` instead of `is required`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reference_impl.api.models import UpdateStrategyType
from reference_impl.plan import durations, notation
from reference_impl.plan.termination import DEFAULT_DELAY

Operation = dict[str, Any]
GRACE_SECONDS = 30
ROOT = "/spec/template"


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects in a list, with their indices."""
    for i, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict):
            yield i, item


def _add(path: str, value: Any) -> Operation:
    return {"op": "add", "path": path, "value": value}


def _default_field(root: str, parent: dict[str, Any], field: str, value: Any = "") -> Iterator[Operation]:
    if parent.get(field) is None:
        yield _add(f"{root}/{field}", value)


def patch(pcs: dict[str, Any], stored: Any = None) -> list[Operation]:
    """Return the JSON patch operations that add missing defaults to a set and normalize the notation of its quantities.
    `stored` is the set that an update replaces."""
    spec = _mapping(pcs.get("spec"))
    template = spec.get("template")
    if not isinstance(template, dict):
        return []
    strategy = _mapping(spec.get("updateStrategy")).get("type")
    return [
        *_default_template(template),
        *_default_rolling_updates(template, strategy, created=stored is None),
        *notation.patch(pcs, stored),
    ]


def _default_template(template: dict[str, Any]) -> Iterator[Operation]:
    yield from _default_termination_delay(template.get("terminationDelay"))
    yield from _default_field(ROOT, template, "headlessServiceConfig", {"publishNotReadyAddresses": True})
    yield from _default_names(f"{ROOT}/resourceClaimTemplates", template.get("resourceClaimTemplates"))
    yield from _default_names(f"{ROOT}/resourceSharing", template.get("resourceSharing"))
    for i, clique in _mappings(template.get("cliques")):
        root = f"{ROOT}/cliques/{i}"
        yield from _default_field(root, clique, "name")
        yield from _default_names(f"{root}/resourceSharing", clique.get("resourceSharing"))
        if isinstance(clique.get("spec"), dict):
            yield from _default_clique(f"{root}/spec", clique["spec"])
    for i, config in _mappings(template.get("podCliqueScalingGroups")):
        root = f"{ROOT}/podCliqueScalingGroups/{i}"
        yield from _default_field(root, config, "name")
        yield from _default_names(f"{root}/resourceSharing", config.get("resourceSharing"))
        replicas = config.get("replicas")
        yield from _default_scale(f"{root}/scaleConfig", config.get("scaleConfig"), 1 if replicas is None else replicas)


def _default_rolling_updates(template: dict[str, Any], strategy: Any, *, created: bool) -> Iterator[Operation]:
    """Default `maxUnavailable` of standalone cliques and scaling groups (COH-062). There is no default for a set
    without a strategy, nor for a stored set with a strategy other than Coherent, because it never opted in
    (COH-278)."""
    coherent = strategy == UpdateStrategyType.COHERENT
    if not coherent and not (created and strategy == UpdateStrategyType.ROLLING_RECREATE):
        return
    groups = list(_mappings(template.get("podCliqueScalingGroups")))
    members = [name for _, config in groups for name in _as_list(config.get("cliqueNames"))]
    for i, clique in _mappings(template.get("cliques")):
        if clique.get("name") not in members:
            spec = _mapping(clique.get("spec"))
            minimum = spec.get("minAvailable")
            minimum = (spec.get("replicas") or 1) if minimum is None else minimum
            yield from _default_max_unavailable(f"{ROOT}/cliques/{i}", clique, minimum if coherent else 1)
    for i, config in groups:
        minimum = config.get("minAvailable")
        minimum = 1 if minimum is None else minimum
        yield from _default_max_unavailable(f"{ROOT}/podCliqueScalingGroups/{i}", config, minimum if coherent else 1)


def _default_max_unavailable(root: str, part: dict[str, Any], value: Any) -> Iterator[Operation]:
    rolling_update = part.get("rollingUpdate")
    if rolling_update is None:
        yield _add(f"{root}/rollingUpdate", {"maxUnavailable": value})
    elif isinstance(rolling_update, dict):
        yield from _default_field(f"{root}/rollingUpdate", rolling_update, "maxUnavailable", value)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _default_termination_delay(delay: Any) -> Iterator[Operation]:
    """Default the delay. Rewrite an existing value in Go's notation, and leave an invalid value to the validation."""
    if delay is None:
        yield _add(f"{ROOT}/terminationDelay", DEFAULT_DELAY)
    elif isinstance(delay, str):
        try:
            canonical = durations.format_duration(durations.parse(delay))
        except ValueError:
            return
        if canonical != delay:
            yield _add(f"{ROOT}/terminationDelay", canonical)


def _default_names(root: str, entries: Any) -> Iterator[Operation]:
    for i, entry in _mappings(entries):
        yield from _default_field(f"{root}/{i}", entry, "name")


def _default_scale(root: str, scale: Any, replicas: Any) -> Iterator[Operation]:
    if isinstance(scale, dict):
        yield from _default_field(root, scale, "minReplicas", replicas)
        yield from _default_field(root, scale, "maxReplicas", 0)


def _default_clique(root: str, spec: dict[str, Any]) -> Iterator[Operation]:
    yield from _default_field(root, spec, "roleName")
    replicas = spec.get("replicas") or 1
    if not spec.get("replicas"):
        yield _add(f"{root}/replicas", replicas)
    # The default is the number of replicas, after the default for `replicas` has been set (DEF-11 and DEF-12).
    yield from _default_field(root, spec, "minAvailable", replicas)
    yield from _default_scale(f"{root}/autoScalingConfig", spec.get("autoScalingConfig"), replicas)
    pod = spec.get("podSpec")
    if isinstance(pod, dict):
        if not pod.get("restartPolicy"):
            yield _add(f"{root}/podSpec/restartPolicy", "Always")
        yield from _default_field(f"{root}/podSpec", pod, "terminationGracePeriodSeconds", GRACE_SECONDS)
