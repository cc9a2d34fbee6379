"""The webhook that blocks all ways of scaling while a coherent update runs (spec COH-170 to COH-179).

The update plans with the replicas of the cliques and scaling groups. Scaling is blocked for all replicas of the set,
since an update reaches one replica after another. After a change in between, some replicas would be planned with the
old numbers and other replicas with the new numbers. The functions are pure: callers pass in the state of the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from reference_impl.admission.result import AdmissionResult
from reference_impl.api.models import PodCliqueSet
from reference_impl.plan import labels
from reference_impl.plan.coherent import update

SCALE = "scale"


def is_updating(pcs: PodCliqueSet) -> bool:
    """Return whether a coherent update of the set is in progress."""
    return pcs.metadata.deletion_timestamp is None and update.is_running(pcs)


def rejection_reason(namespace: str, pcs: str) -> str:
    """Return the message for a rejected change to `spec.replicas`, which states the reason and how long changes are
    rejected."""
    return (
        f"replicas cannot be changed while a coherent update is in progress on PodCliqueSet {namespace}/{pcs}: "
        "scaling is blocked until status.updateProgress.updateEndedAt is set"
    )


def changes_replicas(request: Mapping[str, Any]) -> bool:
    """Return whether a request changes `spec.replicas`, directly or through the subresource `scale`."""
    return bool(_replicas(request.get("object")) != _replicas(request.get("oldObject")))


def parent_name(request: Mapping[str, Any], object_labels: Mapping[str, Any] | None) -> str | None:
    """Return the name of the set that is scaled or that owns the scaled object. `object_labels` holds the labels of the
    scaled object, which a request through the subresource `scale` does not contain."""
    if _text(request.get("resource"), "resource") == "podcliquesets":
        return _text(request, "name") or None
    scaled_labels = object_labels if request.get("subResource") == SCALE else _labels(request.get("oldObject"))
    return _text(scaled_labels, labels.PART_OF) or None


def judge(request: Mapping[str, Any], pcs: Mapping[str, Any] | None) -> AdmissionResult:
    """Judge a request. `pcs` is the set that `parent_name` names. Without a set, the request is allowed."""
    if pcs is None or not changes_replicas(request):
        return AdmissionResult()
    try:
        parsed = msgspec.convert(pcs, PodCliqueSet)
    except msgspec.ValidationError:
        return AdmissionResult()
    if not is_updating(parsed):
        return AdmissionResult()
    return AdmissionResult(refusal=f"spec.{rejection_reason(parsed.metadata.namespace, parsed.metadata.name)}")


def _replicas(document: Any) -> Any:
    """Return `spec.replicas`, or 0 if it is absent, since a Scale object omits 0."""
    spec = document.get("spec") if isinstance(document, Mapping) else None
    return (spec.get("replicas") if isinstance(spec, Mapping) else None) or 0


def _labels(document: Any) -> Any:
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    return metadata.get("labels") if isinstance(metadata, Mapping) else None


def _text(value: Any, key: str) -> str:
    text = value.get(key) if isinstance(value, Mapping) else None
    return text if isinstance(text, str) else ""
