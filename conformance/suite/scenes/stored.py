"""Compare what the API server has stored with what the suite has sent. Admission changes a request under the name of
its user, so who wrote an object does not tell whether it is what that user asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.grove import quantities
from conformance.grove.admission import durations
from conformance.grove.fields import mapping

KINDS = ("PodCliqueSet", "PodGang", "Pod", "ResourceQuota", "LimitRange", "PriorityClass")
"""The kinds that the suite writes and checks rely on, beside nodes."""
GROWS = "Pod"
"""The kind whose lists may become longer: sidecars, tolerations, volumes."""
PRUNED = "PodGang"
"""The kind of which a field may be missing: an implementation may serve a version that does not have it. Sets are what
the suite is about, and the CRD of an operator has their fields."""
EMBEDDED = ".metadata."
"""The part of a path that marks metadata inside another object. Generated CRDs do not describe it, so the API server
drops it: CORE-014 judges that."""


def otherwise(sent: Mapping[str, Any], answer: Mapping[str, Any], kind: str) -> Iterator[tuple[str, object]]:
    """Yield path and value of what was stored otherwise than it was sent: of the labels, the annotations and all that a
    user writes of an object. For an empty value there may be a default."""
    for part in ("labels", "annotations"):
        yield from _unlike(mapping(sent, "metadata", part), mapping(answer, "metadata", part), f"metadata.{part}", kind)
    for part in sent.keys() - {"apiVersion", "kind", "metadata", "status"}:
        yield from _unlike(sent[part], answer.get(part), part, kind)


def _unlike(sent: object, stored: object, path: str, kind: str) -> Iterator[tuple[str, object]]:
    if isinstance(sent, Mapping):
        inside = stored if isinstance(stored, Mapping) else {}
        for key, value in sent.items():
            yield from _unlike(value, inside.get(key), f"{path}.{key}", kind)
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
    """Return whether two values mean the same: Kubernetes writes quantities and durations in its own notation."""
    if sent == stored or durations.equal(sent, stored):
        return True
    amount = quantities.amount(sent)
    return amount is not None and amount == quantities.amount(stored)
