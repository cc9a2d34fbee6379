"""The order in which changes happened on the server.

Watches of different resources are separate streams: of two changes the later one may arrive first, by milliseconds or,
on a busy machine, by more. A rule about several resources that relied on arrival would have to tolerate that lag, and
would miss faults that are as quick. But the API server counts the writes to all resources of one etcd with one
revision, and an object's resourceVersion is the revision of its last write. Sorted by version, the records are in the
order of the writes, without any tolerance.

Kubernetes promises this order within one resource only, and a cluster may keep resources in several etcds. The versions
of a history are therefore compared with the arrivals, which no lag can shift by `LAG` seconds. If they do not match,
`server_order` returns None, and rules that need the order are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.history.record import Record

LAG = 15.0
"""Seconds by which an event may arrive after another that happened later."""


def server_order(records: Sequence[Record]) -> list[Record] | None:
    """Return the records in the order of their writes; None if their versions are not comparable."""
    if any(record.revision == 0 for record in records):
        return None
    ordered = sorted(records, key=lambda record: (record.revision, record.seq))
    latest = float("-inf")
    for record in ordered:
        if record.listed:
            continue  # Lists are late by nature: they follow a broken watch.
        if record.at < latest - LAG:
            return None
        latest = max(latest, record.at)
    return ordered


def uncertain(ordered: Sequence[Record]) -> set[int]:
    """Return the indices of the records after which the state is not known, in the order of their writes: from the last
    event of a broken watch to what the list after it shows, the resource may have been in any state."""
    indices: set[int] = set()
    latest: dict[str, int] = {}
    for index, record in enumerate(ordered):
        if record.listed:
            indices.update(range(latest.get(record.resource, 0), index))
        else:
            latest[record.resource] = index
    return indices
