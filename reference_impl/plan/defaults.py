"""What the defaulting webhook adds to a PodCliqueSet (spec DEF-08 to DEF-15). Works on plain JSON: an object that is
wrong in any way passes through, for the schema to refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Operation = dict[str, Any]
TERMINATION_DELAY = "4h0m0s"
GRACE_SECONDS = 30


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _add(path: str, value: Any) -> Operation:
    return {"op": "add", "path": path, "value": value}


def patch(pcs: dict[str, Any]) -> list[Operation]:
    """The defaults that a set lacks, as JSON patch operations."""
    spec = _mapping(pcs.get("spec"))
    template = spec.get("template")
    return list(_template(template)) if isinstance(template, dict) else []


def _template(template: dict[str, Any]) -> Iterator[Operation]:
    root = "/spec/template"
    if template.get("terminationDelay") is None:
        yield _add(f"{root}/terminationDelay", TERMINATION_DELAY)
    if template.get("headlessServiceConfig") is None:
        yield _add(f"{root}/headlessServiceConfig", {"publishNotReadyAddresses": True})
    for i, clique in enumerate(_items(template.get("cliques"))):
        yield from _clique(f"{root}/cliques/{i}/spec", _mapping(_mapping(clique).get("spec")))
    for i, config in enumerate(_items(template.get("podCliqueScalingGroups"))):
        scale = _mapping(config).get("scaleConfig")
        if isinstance(scale, dict) and scale.get("minReplicas") is None:
            replicas = config.get("replicas")
            yield _add(
                f"{root}/podCliqueScalingGroups/{i}/scaleConfig/minReplicas", 1 if replicas is None else replicas
            )


def _clique(root: str, spec: dict[str, Any]) -> Iterator[Operation]:
    if not spec:
        return
    replicas = spec.get("replicas") or 1
    if not spec.get("replicas"):
        yield _add(f"{root}/replicas", replicas)
    if spec.get("minAvailable") is None:
        # All replicas, after they have been defaulted themselves (DEF-11 done right).
        yield _add(f"{root}/minAvailable", replicas)
    scale = spec.get("autoScalingConfig")
    if isinstance(scale, dict) and scale.get("minReplicas") is None:
        yield _add(f"{root}/autoScalingConfig/minReplicas", replicas)
    pod = spec.get("podSpec")
    if isinstance(pod, dict):
        if not pod.get("restartPolicy"):
            yield _add(f"{root}/podSpec/restartPolicy", "Always")
        if pod.get("terminationGracePeriodSeconds") is None:
            yield _add(f"{root}/podSpec/terminationGracePeriodSeconds", GRACE_SECONDS)
