"""Complete the labels of operators' objects for the whole lifetime of each object.

Rules identify the objects of operators by their labels. An operator that sets these labels late, or removes them for a
while, would hide its violations from the rules. An object that was created without the labels is therefore treated as
if it had its later labels from the start, and an object that loses its labels is treated as if it had kept them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import orjson

from conformance.grove.fields import labels
from conformance.grove.labels import GANG, MANAGED_BY, OPERATOR, OWN_PREFIX
from conformance.history.record import ADDED, Record

_KEYS = {"pods": GANG, "podcliques": MANAGED_BY, "podcliquescalinggroups": MANAGED_BY, "podgangs": MANAGED_BY}
"""Resource → the label that every object of an operator has."""
_KUBERNETES = "app.kubernetes.io/"


def with_complete_labels(
    records: Sequence[Record], foreign_spans: Iterable[tuple[int, int | None]] = ()
) -> list[Record]:
    """Return the records; where labels are missing, add the labels that the object has at another time. Objects that
    first appear in a list, or that were created in a span in which another operator ran (`foreign_spans`), get no later
    labels, because they may have been adopted."""
    spans, completed = list(foreign_spans), list(records)
    labels_by_uid: dict[str, Mapping[str, str]] = {}
    """UID of an object → its labels when it last had the identifying label."""
    unlabeled_indices: dict[str, list[int]] = {}
    """UID of an object that was created without its identifying label → indices of its records."""
    for index, record in enumerate(records):
        key = _KEYS.get(record.resource)
        if key is None:
            continue
        own_labels = labels(record.object)
        if key == MANAGED_BY and own_labels.get(key) != OPERATOR:
            own_labels = {}
        if key in own_labels:
            for earlier_index in unlabeled_indices.pop(record.uid, ()):
                completed[earlier_index] = _with_labels(records[earlier_index], own_labels)
            labels_by_uid[record.uid] = own_labels
        elif record.uid in labels_by_uid:
            completed[index] = _with_labels(record, labels_by_uid[record.uid])
        elif record.uid in unlabeled_indices or (
            record.kind == ADDED and not record.listed and not _is_within(record, spans)
        ):
            unlabeled_indices.setdefault(record.uid, []).append(index)
    return completed


def _is_within(record: Record, spans: Iterable[tuple[int, int | None]]) -> bool:
    return any(start < record.seq and (until is None or record.seq <= until) for start, until in spans)


def _with_labels(record: Record, known_labels: Mapping[str, str]) -> Record:
    """Return a copy of a record whose object has these labels of Grove and Kubernetes in addition to its own, which
    take precedence."""
    added_labels = {key: value for key, value in known_labels.items() if key.startswith((OWN_PREFIX, _KUBERNETES))}
    metadata = record.object.get("metadata") or {}
    labeled = {**record.object, "metadata": {**metadata, "labels": {**added_labels, **labels(record.object)}}}
    return Record(
        seq=record.seq,
        at=record.at,
        wall=record.wall,
        kind=record.kind,
        resource=record.resource,
        namespace=record.namespace,
        name=record.name,
        uid=record.uid,
        version=record.version,
        raw=orjson.dumps(labeled),
        listed=record.listed,
    )
