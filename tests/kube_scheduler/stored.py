"""The form in which the API server stores the pods of a scene: with what it adds by default and at admission."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tests.kube_scheduler.nodes import Manifest
from tests.kube_scheduler.pods import REQUIRED


def stored(pod: Manifest) -> Manifest:
    """Return a pod as a scheduler reads it."""
    pod = deepcopy(pod)
    spec, labels = pod["spec"], pod["metadata"]["labels"]
    _tolerate_failed_nodes(spec)
    for constraint in spec.get("topologySpreadConstraints", ()):
        _merge(constraint, labels)
    for kind in ("podAffinity", "podAntiAffinity"):
        for term in spec.get("affinity", {}).get(kind, {}).get(REQUIRED, ()):
            _merge(term, labels)
    return pod


def _tolerate_failed_nodes(spec: Manifest) -> None:
    """Add the tolerations of the admission plugin DefaultTolerationSeconds."""
    tolerations = spec.setdefault("tolerations", [])
    present = [(t.get("key", ""), t.get("effect", "")) for t in tolerations]
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(k in ("", key) and effect in ("", "NoExecute") for k, effect in present):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})


def _merge(term: Manifest, labels: dict[str, str]) -> None:
    """Merge the values of matchLabelKeys and mismatchLabelKeys into the selector."""
    if "labelSelector" not in term:
        return
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field, ()):
            if key in labels:
                expressions = term["labelSelector"].setdefault("matchExpressions", [])
                expressions.append({"key": key, "operator": operator, "values": [labels[key]]})


def difference(expected: Any, observed: Any, path: str = "") -> str:
    """Return where an object lacks what is expected; empty if it has all. Fields beside that are ignored."""
    if isinstance(expected, dict) and isinstance(observed, dict):
        parts = (difference(value, observed.get(key), f"{path}.{key}") for key, value in expected.items())
        return next(filter(None, parts), "")
    if isinstance(expected, list) and isinstance(observed, list) and len(expected) == len(observed):
        pairs = enumerate(zip(expected, observed, strict=True))
        return next(filter(None, (difference(a, b, f"{path}[{number}]") for number, (a, b) in pairs)), "")
    if expected in ({}, []) and not observed:
        return ""
    return "" if expected == observed else f"{path}: {expected!r} expected, {observed!r} observed"
