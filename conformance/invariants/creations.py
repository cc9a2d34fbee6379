"""Code that is shared by the invariants about the creation of objects."""

from __future__ import annotations

from conformance.history.record import ADDED, Record

STALE = 5.0
"""Seconds for which a component may act on an earlier state, because watches deliver changes with a delay."""


class Creations:
    """Finds the records that show the creation of an object."""

    def __init__(self) -> None:
        self._seen_uids: set[str] = set()

    def shows(self, record: Record) -> bool:
        """Return whether this record shows the creation of its object. Objects from a list do not count, because they
        may have been created at any earlier time."""
        is_new = record.uid not in self._seen_uids
        self._seen_uids.add(record.uid)
        return is_new and record.kind == ADDED and not record.listed
