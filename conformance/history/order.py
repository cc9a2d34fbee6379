"""The order in which changes happened on the server.

Watches of different resources are separate streams, so the later of two changes may arrive first: by milliseconds or,
on a busy machine, by more. A rule about several resources that relied on arrival would have to tolerate that lag, and
would miss faults that last no longer than the lag. But one etcd numbers the writes to all its resources with one
revision counter, and an object's resourceVersion is the revision of its last write. Sorted by resourceVersion, the
records are therefore exactly in the order of the writes.

Kubernetes promises this order within one resource only, and a cluster may keep resources in several etcds. The versions
of a history are therefore compared with the arrival times, on the assumption that no event lags by more than
`MAX_LAG_SECONDS` seconds. If they contradict each other, `server_order` returns None, and the results of rules that
need the order are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.history.record import Record

MAX_LAG_SECONDS = 15.0
"""The maximum number of seconds by which an event may arrive after the event of a later change."""


def server_order(records: Sequence[Record]) -> list[Record] | None:
    """Return the records in the order of their writes; None if their versions are not comparable."""
    if any(record.revision == 0 for record in records):
        return None
    ordered = sorted(records, key=lambda record: (record.revision, record.seq))
    latest = float("-inf")
    for record in ordered:
        if record.listed:
            continue  # Lists always lag, because they follow a broken watch.
        if record.at < latest - MAX_LAG_SECONDS:
            return None
        latest = max(latest, record.at)
    return ordered


def uncertain_indices(ordered: Sequence[Record]) -> set[int]:
    """Return the indices, in the order of the writes, of the records after which the state is not known: between the
    last event of a broken watch and the list that follows it, the resource may have been in any state."""
    indices: set[int] = set()
    latest: dict[str, int] = {}
    for index, record in enumerate(ordered):
        if record.listed:
            indices.update(range(latest.get(record.resource, 0), index))
        else:
            latest[record.resource] = index
    return indices
