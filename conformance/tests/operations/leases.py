"""The Lease with which operators elect their leader. No other Lease is recorded."""

from __future__ import annotations

from itertools import pairwise

from conformance.grove.fields import Document, name, number, text
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.record import Record
from conformance.history.view import View
from conformance.testing.incarnations import Records

LEASES = "leases"


def holder_of(record: Record) -> str:
    """Return the holder of the Lease in a record."""
    return text(record.object, "spec", "holderIdentity")


def lease(view: View) -> Document | None:
    """Return the Lease that the descriptor names, if it exists."""
    return next(iter(view.list(LEASES)), None)


def current_holder(view: View) -> str | Unmet:
    """Return the current holder of the Lease."""
    current = lease(view)
    if current is None:
        return Unmet("the Lease that the descriptor names (lease) does not exist")
    return text(current, "spec", "holderIdentity") or Unmet(f"the Lease {name(current)} names no holder")


def is_renewed(holder: str) -> Predicate:
    """The holder has renewed the Lease since the first evaluation of this predicate."""
    observed_times: list[str] = []

    def check(view: View) -> bool | Unmet:
        current = lease(view)
        renew_time = text(current, "spec", "renewTime")
        observed_times.append(renew_time)
        if text(current, "spec", "holderIdentity") != holder:
            return Unmet(f"its holder is {text(current, 'spec', 'holderIdentity') or 'nobody'}")
        return renew_time != observed_times[0] or Unmet(f"its renewTime is still {renew_time or 'absent'}")

    return check


@predicate
def has_other_holder(view: View, former: str) -> bool | Unmet:
    """The holder of the Lease is not `former`."""
    current = current_holder(view)
    return current if isinstance(current, Unmet) else current != former or Unmet(f"its holder is still {former}")


def takeover_from(history: Records, former: str) -> Record | None:
    """Return the write by which another operator took over the Lease from `former`."""
    records = history.records(LEASES)
    indices = [i for i, record in enumerate(records) if holder_of(record) == former]
    later = records[indices[-1] + 1 :] if indices else []
    return next((record for record in later if holder_of(record)), None)


def successive_holders(records: list[Record]) -> list[str]:
    """Return the successive holders of the Lease, with `nobody` for the times without a holder."""
    names = [holder_of(record) or "nobody" for record in records]
    return names[:1] + [after for before, after in pairwise(names) if after != before]


def takeover_delay(history: Records, former: str) -> tuple[float, int]:
    """Return the seconds from the last renewal by `former` until another operator held the Lease, and the lease
    duration in seconds."""
    records = [record for record in history.records(LEASES) if holder_of(record) == former]
    takeover = takeover_from(history, former)
    if not records or takeover is None:
        return float("inf"), 0
    return takeover.at - records[-1].at, number(records[-1].object, "spec", "leaseDurationSeconds") or 0
