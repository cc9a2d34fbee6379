"""The objects of a deleted set, and the order in which they were deleted."""

from __future__ import annotations

from conformance.grove import labels
from conformance.grove.fields import label, name
from conformance.history.query import Predicate
from conformance.history.record import ADDED, DELETED, Record
from conformance.history.view import View
from conformance.testing import incarnations
from conformance.testing.disruption import CLIQUES, GANGS, GROUPS, SETS
from conformance.testing.incarnations import Records
from conformance.testing.observed import absent, all_of

CHILDREN = (CLIQUES, GROUPS, GANGS, "pods", "services")


def all_deleted(before: View, set_name: str) -> Predicate:
    """The set no longer exists, and neither do the objects that it had in `before`."""
    children = {
        kind: [name(it) for it in before.list(kind) if label(it, labels.PART_OF) == set_name] for kind in CHILDREN
    }
    return all_of(absent(SETS, [set_name]), *(absent(kind, names) for kind, names in children.items()))


def created_late(history: Records, set_name: str) -> list[str]:
    """Return the objects that were created for a set after its deletion was requested, ordered by resource version."""
    end = incarnations.ends(history, SETS).get(set_name)
    created = [record for record in children(history, set_name) if record.kind == ADDED]
    return [str(record) for record in created if end is not None and record.revision > end.revision]


def outlived(history: Records, set_name: str) -> list[str]:
    """Return the objects of a set that were deleted after the set itself."""
    last = [record for record in history.records(SETS, set_name) if record.kind == DELETED]
    went = [record for record in children(history, set_name) if record.kind == DELETED]
    return [str(record) for record in went if last and record.revision > last[0].revision]


def children(history: Records, set_name: str) -> list[Record]:
    """Return the records of the objects of a set."""
    return [
        record
        for record in history.records()
        if record.resource in CHILDREN and label(record.object, labels.PART_OF) == set_name
    ]
