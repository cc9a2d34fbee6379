"""The state of a set at rest as users see it, independent of the changes that led to it.

Everything that may depend on those changes is left out: times, generations, epochs and names of gangs, the report of
the last update, and the indices of pods after a scale-in, because no document says which indices remain (SCALE-012).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from conformance.grove import labels, pods
from conformance.grove.fields import items, label, name, number, text, uid
from conformance.history.view import View

ObservedState = Mapping[str, Any]
"""Maps `resource/name` to the fields of the object that are compared."""
_COUNTS = frozenset(
    {"replicas", "readyReplicas", "scheduledReplicas", "scheduleGatedReplicas", "availableReplicas", "updatedReplicas"}
)
_OTHER_RESOURCES = ("services", "serviceaccounts", "roles", "rolebindings", "horizontalpodautoscalers")


def observe(view: View, namespace: str) -> ObservedState:
    """Return the state of a namespace."""
    return dict(sorted(_observe(view, namespace)))


def _observe(view: View, namespace: str) -> Iterator[tuple[str, Any]]:
    for resource in ("podcliquesets", "podcliquescalinggroups", "podcliques"):
        for item in view.list(resource):
            yield f"{resource}/{name(item)}", _status(item)
    pods_by_clique: dict[str, list[dict[str, Any]]] = {}
    for pod in view.list("pods"):
        pods_by_clique.setdefault(label(pod, labels.CLIQUE), []).append(_pod(pod))
    for clique, members in pods_by_clique.items():
        yield f"pods/{clique}", sorted(members, key=str)
    yield "podgangs", sorted((_gang(gang) for gang in view.list("podgangs")), key=str)
    for resource in _OTHER_RESOURCES:
        for item in view.list(resource):
            if item["metadata"].get("ownerReferences"):
                yield f"{resource}/{name(item)}", "exists"
    if orphans := sorted(_orphans(view, namespace)):
        yield "owners that do not exist", orphans


def _status(item: Mapping[str, Any]) -> dict[str, Any]:
    counts = {key: number(item, "status", key) for key in _COUNTS}
    return {
        "replicas": number(item, "spec", "replicas"),
        "status": {key: value for key, value in counts.items() if value is not None},
        "conditions": _conditions(item),
    }


def _conditions(item: Mapping[str, Any]) -> dict[str, str]:
    conditions = items(item, "status", "conditions")
    return {
        text(condition, "type"): text(condition, "status")
        for condition in conditions
        if not _is_transient(text(condition, "type"))
    }


def _is_transient(condition_type: str) -> bool:
    """Return whether a condition depends on previous changes. The conditions about updates exist only after an
    update."""
    return "Update" in condition_type or "InProgress" in condition_type


def _pod(pod: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "images": [container["image"] for container in pod["spec"]["containers"]],
        "gated": bool(pod["spec"].get("schedulingGates")),
        "ready": pods.is_ready(pod),
    }


def _gang(gang: Mapping[str, Any]) -> dict[str, Any]:
    return {
        text(group, "name"): {"minReplicas": number(group, "minReplicas"), "pods": len(items(group, "podReferences"))}
        for group in items(gang, "spec", "podgroups")
    }


def _orphans(view: View, namespace: str) -> Iterator[str]:
    existing_uids = {uid(item) for resource in view.resources() for item in view.list(resource)}
    kinds = {item["kind"] for resource in view.resources() for item in view.list(resource) if "kind" in item}
    for resource in view.resources():
        for item in view.list(resource):
            if item["metadata"].get("namespace") != namespace:
                continue
            for owner in item["metadata"].get("ownerReferences") or ():
                if (
                    item["metadata"].get("namespace") == namespace
                    and owner["kind"] in kinds
                    and owner["uid"] not in existing_uids
                ):
                    yield f"{resource}/{name(item)} of {owner['kind']} {owner['name']}"


def difference(expected: ObservedState, actual: ObservedState) -> list[str]:
    """Return the differences as lines: `-` is the end of a set that was brought directly to the desired state, `+` is
    the end after the changes."""
    expected_lines, actual_lines = (
        [line for key, value in state.items() for line in _lines(key, value)] for state in (expected, actual)
    )
    lines = difflib.unified_diff(expected_lines, actual_lines, lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def _lines(path: str, value: Any) -> Iterator[str]:
    match value:
        case dict():
            for key, item in sorted(value.items()):
                yield from _lines(f"{path} {key}", item)
        case list():
            yield from (f"{path}: {json.dumps(entry)}" for entry in value)
        case _:
            yield f"{path}: {value}"
