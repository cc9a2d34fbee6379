"""Compare the objects that the API server has stored with those that the suite sent. Admission changes a request in the
name of the requesting user, so the writer of an object does not show whether the object is what that user sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.grove import quantities
from conformance.grove.admission import durations
from conformance.grove.fields import mapping

KINDS = ("PodCliqueSet", "PodGang", "Pod", "ResourceQuota", "LimitRange", "PriorityClass")
"""The kinds, in addition to nodes, that the suite writes and on which checks rely."""
GROWS = "Pod"
"""The kind to whose lists admission may add items: sidecars, tolerations, volumes."""
PRUNED = "PodGang"
"""The kind whose fields may be missing, because an implementation may serve a version without them. This does not apply
to sets, because the CRD of an operator must have all their fields."""
EMBEDDED = ".metadata."
"""The part of a path that marks metadata inside another object. Generated CRDs do not describe such metadata, so the
API server drops it; CORE-014 judges that."""


def changes(sent: Mapping[str, Any], answer: Mapping[str, Any], kind: str) -> Iterator[tuple[str, object]]:
    """Yield the path and stored value of each field that was stored differently than it was sent: labels, annotations
    and all fields that a user writes. Empty values may be replaced by a default."""
    for part in ("labels", "annotations"):
        yield from _unlike(mapping(sent, "metadata", part), mapping(answer, "metadata", part), f"metadata.{part}", kind)
    for part in sent.keys() - {"apiVersion", "kind", "metadata", "status"}:
        yield from _unlike(sent[part], answer.get(part), part, kind)


def _unlike(sent: object, stored: object, path: str, kind: str) -> Iterator[tuple[str, object]]:
    if isinstance(sent, Mapping):
        stored_mapping = stored if isinstance(stored, Mapping) else {}
        for key, value in sent.items():
            yield from _unlike(value, stored_mapping.get(key), f"{path}.{key}", kind)
    elif isinstance(sent, list) and isinstance(stored, list) and kind == GROWS:
        for number, value in enumerate(sent):
            if all(any(_unlike(value, other, path, kind)) for other in stored):
                yield f"{path}[{number}]", stored
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        for number, (value, other) in enumerate(zip(sent, stored, strict=True)):
            yield from _unlike(value, other, f"{path}[{number}]", kind)
    elif stored is None and (kind == PRUNED or EMBEDDED in path):
        return
    elif not same(sent, stored) and (sent or (sent is False and stored)):
        yield path, stored


def same(sent: object, stored: object) -> bool:
    """Return whether two values have the same meaning: Kubernetes writes quantities and durations in its own
    notation."""
    if sent == stored or durations.equal(sent, stored):
        return True
    amount = quantities.amount(sent)
    return amount is not None and amount == quantities.amount(stored)
