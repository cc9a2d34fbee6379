"""In which order things happened on the server.

Watches of different resources are separate streams: of two changes the later one may arrive first, by milliseconds or,
on a busy machine, by more. A rule over several resources that went by arrival would have to allow for such a lag, and
would then be blind to faults as quick as the lag. But the API server keeps all resources of one etcd under one counter
of revisions, and an object's resourceVersion is the revision of its last write. So the records are sorted by version:
that is the very order of the writes, and no slack is needed.

Kubernetes promises this order within one resource only, and a cluster may keep resources in several etcds. Whether the
versions of a history do compare is therefore checked against the arrivals, which no lag can shift by `LAG` seconds;
where they don't, `server_order` gives None, and rules that need it are unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformance.history.record import Record

LAG = 15.0
"""Seconds by which an event may arrive after another that happened later."""


def server_order(records: Sequence[Record]) -> list[Record] | None:
    """The records in the order of their writes, None where their versions don't compare."""
    if any(record.revision == 0 for record in records):
        return None
    ordered = sorted(records, key=lambda record: (record.revision, record.seq))
    latest = float("-inf")
    for record in ordered:
        if record.listed:
            continue  # Lists come late by nature: after a broken watch.
        if record.at < latest - LAG:
            return None
        latest = max(latest, record.at)
    return ordered
