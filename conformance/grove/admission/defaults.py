"""The defaulting of a set (docs/spec/admission.md, section 5)."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping
from typing import Any

from conformance.grove.admission import durations
from conformance.grove.admission.violation import Document

COHERENT = "Coherent"
UNDOCUMENTED_FIELDS = ("roleName", "minReplicas", "maxReplicas", "restartPolicy", "terminationGracePeriodSeconds")
"""Fields whose defaults no document names; only upstream's code sets them."""


def without_coherent_defaults(pcs: Document, stored: Document) -> dict[str, Any]:
    """Return the spec of an accepted set without the defaults that implementations of coherent updates add: the
    strategy Coherent if no strategy was given (COH-060), and maxUnavailable (COH-062)."""
    spec: dict[str, Any] = copy.deepcopy(dict(stored))
    submitted_strategy = pcs["spec"].get("updateStrategy")
    if _strategy(spec) == COHERENT and not (isinstance(submitted_strategy, dict) and submitted_strategy.get("type")):
        if submitted_strategy is None:
            del spec["updateStrategy"]
        else:
            spec["updateStrategy"]["type"] = "RollingRecreate"
    template = spec.get("template") or {}
    for part in ("cliques", "podCliqueScalingGroups"):
        submitted = {item.get("name"): item for item in pcs["spec"]["template"].get(part) or []}
        for entry in template.get(part) or []:
            if "rollingUpdate" not in submitted.get(entry.get("name"), {"rollingUpdate": None}):
                entry.pop("rollingUpdate", None)
    return spec


def _strategy(spec: Mapping[str, Any]) -> object:
    strategy = spec.get("updateStrategy")
    return strategy.get("type") if isinstance(strategy, dict) else None


def with_defaults(pcs: Document) -> dict[str, Any]:
    """Return a copy of a set with all defaults filled in. The set must be well-formed."""
    result = copy.deepcopy(dict(pcs))
    spec: MutableMapping[str, Any] = result["spec"]
    _fill(spec, "replicas", 0)  # DEF-01
    if isinstance(spec.get("updateStrategy"), dict):
        _fill(spec["updateStrategy"], "type", "RollingRecreate")  # DEF-02
    template = spec["template"]
    _fill(template, "cliqueStartupType", "CliqueStartupTypeAnyOrder")  # DEF-03
    _fill(template, "headlessServiceConfig", {})  # DEF-09
    _fill(template["headlessServiceConfig"], "publishNotReadyAddresses", True)  # DEF-04
    _fill(template, "terminationDelay", "4h0m0s")  # DEF-08
    template["terminationDelay"] = durations.normalized(template["terminationDelay"]) or template["terminationDelay"]
    for clique in template.get("cliques") or []:
        clique_spec = clique["spec"]
        replicas = clique_spec["replicas"] = clique_spec.get("replicas") or 1  # DEF-10
        _fill(clique_spec, "minAvailable", replicas)  # DEF-11, DFT-02
        _fill(clique_spec, "roleName", "")
        _fill_autoscaling(clique_spec.get("autoScalingConfig"), replicas)  # DEF-12
        pod = clique_spec["podSpec"]
        pod["restartPolicy"] = pod.get("restartPolicy") or "Always"  # DEF-14
        _fill(pod, "terminationGracePeriodSeconds", 30)  # DEF-15
    for group in template.get("podCliqueScalingGroups") or []:
        _fill(group, "replicas", 1)  # DEF-05
        _fill(group, "minAvailable", 1)
        _fill_autoscaling(group.get("scaleConfig"), group["replicas"])  # DEF-13
    return result


def differences(expected: Any, observed: Any, at: str = "") -> dict[str, Any]:
    """Return the expected fields that are missing or differ: path → observed value. Additional fields do not count,
    because the suite does not judge other defaults."""
    if isinstance(expected, Mapping) and isinstance(observed, Mapping):
        result_fields: dict[str, Any] = {}
        for key, value in expected.items():
            result_fields |= differences(value, observed.get(key), f"{at}.{key}" if at else key)
        return result_fields
    if isinstance(expected, list) and isinstance(observed, list) and len(expected) == len(observed):
        result_fields = {}
        for i, (value, other) in enumerate(zip(expected, observed, strict=True)):
            result_fields |= differences(value, other, f"{at}[{i}]")
        return result_fields
    if at.endswith("terminationDelay") and durations.equal(expected, observed):
        return {}
    return {} if expected == observed else {at: observed}


def with_documented_defaults(pcs: Document) -> dict[str, Any]:
    """Return a copy of a set with only the defaults that documents name. The set must be well-formed."""
    result = with_defaults(pcs)
    if pcs["spec"]["template"].get("headlessServiceConfig") is None:
        del result["spec"]["template"]["headlessServiceConfig"]
    submitted = pcs["spec"]["template"]
    for part, at in (("cliques", ("spec", "autoScalingConfig")), ("podCliqueScalingGroups", ("scaleConfig",))):
        for submitted_entry, entry in zip(
            submitted.get(part) or [], result["spec"]["template"].get(part) or [], strict=True
        ):
            paths = (at, ("spec",), ("spec", "podSpec"))
            for path in paths:
                before, after = _mapping_at(submitted_entry, path), _mapping_at(entry, path)
                for field in set(UNDOCUMENTED_FIELDS) & set(after) - set(before):
                    del after[field]
    return result


def _mapping_at(entry: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        entry = entry.get(step) if isinstance(entry, dict) else None
    return entry if isinstance(entry, dict) else {}


def _fill(target: MutableMapping[str, Any], field: str, value: Any) -> None:
    if target.get(field) is None:
        target[field] = value


def _fill_autoscaling(scale: Any, replicas: Any) -> None:
    if isinstance(scale, dict):
        _fill(scale, "minReplicas", replicas)
        _fill(scale, "maxReplicas", 0)
