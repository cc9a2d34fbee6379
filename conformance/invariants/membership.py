"""Complete the labels of operators' objects over their whole life.

Rules find the objects of operators by their labels. An operator that leaves these out at first, or removes them for a
while, would hide its violations from the rules. So an object that was created without the labels is treated as if it
had had its later ones from the beginning, and an object that loses its labels keeps them.
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


def whole(records: Sequence[Record], foreign_spans: Iterable[tuple[int, int | None]] = ()) -> list[Record]:
    """Return the records, where necessary with the labels that their objects have at another time. Objects that the
    first list showed, or that were created in one of the spans in which another operator ran (`foreign_spans`), are
    returned unchanged: they may have been adopted."""
    spans, completed = list(foreign_spans), list(records)
    identified: dict[str, Mapping[str, str]] = {}
    """The labels of each object, by uid, as they were when it last had the decisive one."""
    lacking: dict[str, list[int]] = {}
    """Uid of an object that was created without its identifying label → indices of its records."""
    for number, record in enumerate(records):
        key = _KEYS.get(record.resource)
        if key is None:
            continue
        own_labels = labels(record.object)
        if key == MANAGED_BY and own_labels.get(key) != OPERATOR:
            own_labels = {}
        if key in own_labels:
            for earlier in lacking.pop(record.uid, ()):
                completed[earlier] = _with(records[earlier], own_labels)
            identified[record.uid] = own_labels
        elif record.uid in identified:
            completed[number] = _with(record, identified[record.uid])
        elif record.uid in lacking or (record.kind == ADDED and not record.listed and not _within(record, spans)):
            lacking.setdefault(record.uid, []).append(number)
    return completed


def _within(record: Record, spans: Iterable[tuple[int, int | None]]) -> bool:
    return any(begin < record.seq and (until is None or record.seq <= until) for begin, until in spans)


def _with(record: Record, known_labels: Mapping[str, str]) -> Record:
    """Return a record whose object has these labels of Grove and Kubernetes, unless it has others."""
    added = {key: value for key, value in known_labels.items() if key.startswith((OWN_PREFIX, _KUBERNETES))}
    metadata = record.object.get("metadata") or {}
    filled = {**record.object, "metadata": {**metadata, "labels": {**added, **labels(record.object)}}}
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
        raw=orjson.dumps(filled),
        listed=record.listed,
    )
