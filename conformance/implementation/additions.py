"""Labels and annotations that a gang scheduler needs on its pods, PodGangs and claims, for example a queue. The suite
adds them to the objects that it creates. An operator copies them from the set: the additions for pods from the clique
templates, and the additions for PodGangs from the set itself. Additions that contain the name of a pod's PodGang or
PodClique apply only to pods that the suite creates itself, because an operator that needs such labels writes them
itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.implementation import placeholders
from conformance.implementation.descriptor import Descriptor
from conformance.implementation.fields import Metadata

Object = dict[str, Any]


def with_additions(descriptor: Descriptor, obj: Mapping[str, Any]) -> Object:
    """Return a pod of the scheduler, a PodGang, a ResourceClaim or a PodCliqueSet with the additions of the descriptor;
    return other objects unchanged. Values that an object already has are kept."""
    result = dict(obj)
    match obj.get("kind"):
        case "Pod" if (obj.get("spec") or {}).get("schedulerName") == descriptor.scheduler_name:
            return _with_metadata(result, _pod_additions(descriptor.pods, obj))
        case "PodGang":
            return _with_metadata(result, descriptor.podgangs)
        case "ResourceClaim":
            return _with_metadata(result, descriptor.resource_claims)
        case "PodCliqueSet":
            return _with_template_metadata(
                _with_metadata(result, descriptor.podgangs), _pod_additions(descriptor.pods, {})
            )
        case _:
            return result


def _pod_additions(addition: Metadata, pod: Mapping[str, Any]) -> Metadata:
    """Return the additions for a pod. Additions that refer to a PodGang or PodClique are left out if the pod has
    none."""
    metadata = pod.get("metadata")
    labels = (metadata.get("labels") if isinstance(metadata, Mapping) else None) or {}
    values = {name: labels[label] for name, label in placeholders.POD_LABELS.items() if label in labels}

    def expand_all(texts: Mapping[str, str]) -> dict[str, str]:
        return {
            name: placeholders.expand(text, values.__getitem__)
            for name, text in texts.items()
            if values.keys() >= set(placeholders.names_in(text))
        }

    return Metadata(expand_all(addition.labels), expand_all(addition.annotations))


def _with_metadata(obj: Object, addition: Metadata) -> Object:
    metadata = obj.get("metadata")
    return {**obj, "metadata": _merged(metadata, addition)} if isinstance(metadata, Mapping) else obj


def _with_template_metadata(pcs: Object, addition: Metadata) -> Object:
    """Return a set whose clique templates have the additions. A set that is not well-formed is returned unchanged."""
    spec = pcs.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    cliques = template.get("cliques") if isinstance(template, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(template, Mapping) or not isinstance(cliques, list):
        return pcs
    cliques_with_additions = [
        _merged(clique, addition) if isinstance(clique, Mapping) else clique for clique in cliques
    ]
    return {**pcs, "spec": {**spec, "template": {**template, "cliques": cliques_with_additions}}}


def _merged(holder: Mapping[str, Any], addition: Metadata) -> Object:
    """Return a mapping whose `labels` and `annotations` are completed with the additions."""
    merged = dict(holder)
    for field, values in (("labels", addition.labels), ("annotations", addition.annotations)):
        if values:
            merged[field] = {**values, **(holder.get(field) or {})}
    return merged
