"""Scaling is blocked while a coherent update runs, at every door (spec COH-170 to COH-179).

The update plans with the replicas of the cliques and scaling groups. The block covers all replicas of the set, since an
update reaches each of them in turn: a scale between two of them would be planned with old numbers in one and new ones
in the other. A pure function: the state of the cluster is passed in.
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


def updating(pcs: PodCliqueSet) -> bool:
    """Whether a coherent update of the set is in progress."""
    return pcs.metadata.deletion_timestamp is None and update.running(pcs)


def reason(namespace: str, pcs: str) -> str:
    """The reason why a change of `spec.replicas` is refused, and until when."""
    return (
        f"replicas cannot be changed while a coherent update is in progress on PodCliqueSet {namespace}/{pcs}: "
        "scaling is blocked until status.updateProgress.updateEndedAt is set"
    )


def scales(request: Mapping[str, Any]) -> bool:
    """Whether a request changes `spec.replicas`, directly or through the subresource `scale`."""
    return bool(_replicas(request.get("object")) != _replicas(request.get("oldObject")))


def parent(request: Mapping[str, Any], of_scaled: Mapping[str, Any] | None) -> str | None:
    """The name of the set that is scaled, or whose part is. `of_scaled` are the labels of the scaled object, which a
    request through the subresource `scale` does not contain."""
    if _text(request.get("resource"), "resource") == "podcliquesets":
        return _text(request, "name") or None
    scaled_labels = of_scaled if request.get("subResource") == SCALE else _labels(request.get("oldObject"))
    return _text(scaled_labels, labels.PART_OF) or None


def judge(request: Mapping[str, Any], pcs: Mapping[str, Any] | None) -> AdmissionResult:
    """Judge a request. `pcs` is the set that `parent` names; a request without one is allowed."""
    if pcs is None or not scales(request):
        return AdmissionResult()
    try:
        parsed = msgspec.convert(pcs, PodCliqueSet)
    except msgspec.ValidationError:
        return AdmissionResult()
    if not updating(parsed):
        return AdmissionResult()
    return AdmissionResult(refusal=f"spec.{reason(parsed.metadata.namespace, parsed.metadata.name)}")


def _replicas(document: Any) -> Any:
    """`spec.replicas`; a Scale leaves out 0."""
    spec = document.get("spec") if isinstance(document, Mapping) else None
    return (spec.get("replicas") if isinstance(spec, Mapping) else None) or 0


def _labels(document: Any) -> Any:
    metadata = document.get("metadata") if isinstance(document, Mapping) else None
    return metadata.get("labels") if isinstance(metadata, Mapping) else None


def _text(value: Any, key: str) -> str:
    text = value.get(key) if isinstance(value, Mapping) else None
    return text if isinstance(text, str) else ""
