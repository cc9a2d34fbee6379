"""Objects as the API server stores them, with the fields that it adds by default and at admission."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tests.kube_scheduler.draw import Manifest
from tests.kube_scheduler.pods import REQUIRED


def stored(plural: str, manifest: Manifest) -> Manifest:
    """Return an object as a scheduler reads it. Only pods differ from their manifest."""
    if plural != "pods":
        return manifest
    pod = deepcopy(manifest)
    spec, labels = pod["spec"], pod["metadata"]["labels"]
    tolerations = spec.setdefault("tolerations", [])
    existing = [(t.get("key", ""), t.get("effect", "")) for t in tolerations]
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):  # as DefaultTolerationSeconds does
        if not any(k in ("", key) and effect in ("", "NoExecute") for k, effect in existing):
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    terms = list(spec.get("topologySpreadConstraints", ()))
    for kind in ("podAffinity", "podAntiAffinity"):
        terms += spec.get("affinity", {}).get(kind, {}).get(REQUIRED, ())
    for term in terms:
        _merge(term, labels)
    return pod


def _merge(term: Manifest, labels: dict[str, str]) -> None:
    """Merge the values of matchLabelKeys and mismatchLabelKeys into the selector."""
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field, ()) if "labelSelector" in term else ():
            if key in labels:
                expressions = term["labelSelector"].setdefault("matchExpressions", [])
                expressions.append({"key": key, "operator": operator, "values": [labels[key]]})


def difference(expected: Any, observed: Any, path: str = "") -> str:
    """Return the path at which an object lacks an expected value, or an empty string if it has all expected values.
    Additional fields are ignored."""
    parts = []
    if isinstance(expected, dict) and isinstance(observed, dict):
        parts = [difference(value, observed.get(key), f"{path}.{key}") for key, value in expected.items()]
    elif isinstance(expected, list) and isinstance(observed, list) and len(expected) == len(observed):
        pairs = enumerate(zip(expected, observed, strict=True))
        parts = [difference(one, other, f"{path}[{number}]") for number, (one, other) in pairs]
    elif expected != observed and not (expected in ({}, []) and observed is None):
        return f"{path}: {expected!r} expected, {observed!r} observed"
    return next(filter(None, parts), "")
