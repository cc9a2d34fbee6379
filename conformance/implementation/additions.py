"""Labels and annotations that a gang scheduler needs on its pods and PodGangs, for example a queue: the suite adds them
to what it creates. An operator copies them from the set: those of pods from the templates of cliques, those of PodGangs
from the set itself. What names the PodGang or PodClique of a pod is for pods that the suite creates itself: an operator
that writes it does so by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformance.implementation import placeholders
from conformance.implementation.descriptor import Descriptor, Metadata

Object = dict[str, Any]


def with_additions(descriptor: Descriptor, obj: Mapping[str, Any]) -> Object:
    """Return a pod of the scheduler, a PodGang or a PodCliqueSet with what the descriptor adds; other objects as they
    are. Values that an object has already are kept."""
    added = dict(obj)
    match obj.get("kind"):
        case "Pod" if (obj.get("spec") or {}).get("schedulerName") == descriptor.scheduler_name:
            return _added(added, _of_pod(descriptor.pods, obj))
        case "PodGang":
            return _added(added, descriptor.podgangs)
        case "PodCliqueSet":
            return _of_templates(_added(added, descriptor.podgangs), _of_pod(descriptor.pods, {}))
        case _:
            return added


def _of_pod(addition: Metadata, pod: Mapping[str, Any]) -> Metadata:
    """Return what is added to a pod, without what names a PodGang or PodClique that it does not have."""
    metadata = pod.get("metadata")
    labels = (metadata.get("labels") if isinstance(metadata, Mapping) else None) or {}
    values = {name: labels[label] for name, label in placeholders.OF_PODS.items() if label in labels}

    def filled(texts: Mapping[str, str]) -> dict[str, str]:
        return {
            name: placeholders.expand(text, values.__getitem__)
            for name, text in texts.items()
            if values.keys() >= set(placeholders.used(text))
        }

    return Metadata(filled(addition.labels), filled(addition.annotations))


def _added(obj: Object, addition: Metadata) -> Object:
    metadata = obj.get("metadata")
    return {**obj, "metadata": _merged(metadata, addition)} if isinstance(metadata, Mapping) else obj


def _of_templates(pcs: Object, addition: Metadata) -> Object:
    """Return a set whose templates of cliques have the addition. A set that is not well-formed stays as it is."""
    spec = pcs.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    cliques = template.get("cliques") if isinstance(template, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(template, Mapping) or not isinstance(cliques, list):
        return pcs
    added = [_merged(clique, addition) if isinstance(clique, Mapping) else clique for clique in cliques]
    return {**pcs, "spec": {**spec, "template": {**template, "cliques": added}}}


def _merged(holder: Mapping[str, Any], addition: Metadata) -> Object:
    """Return a mapping with `labels` and `annotations`, completed."""
    merged = dict(holder)
    for field, values in (("labels", addition.labels), ("annotations", addition.annotations)):
        if values:
            merged[field] = {**values, **(holder.get(field) or {})}
    return merged
