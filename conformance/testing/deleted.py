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
from conformance.testing.observed import all_of, are_absent

CHILDREN = (CLIQUES, GROUPS, GANGS, "pods", "services")


def all_deleted(before: View, set_name: str) -> Predicate:
    """The set and the objects that it had in `before` no longer exist."""
    children = {
        resource: [name(it) for it in before.list(resource) if label(it, labels.PART_OF) == set_name]
        for resource in CHILDREN
    }
    return all_of(are_absent(SETS, [set_name]), *(are_absent(resource, names) for resource, names in children.items()))


def objects_created_after_deletion(history: Records, set_name: str) -> list[str]:
    """Return the objects that were created for a set after its deletion was requested, ordered by resource version."""
    deletion = incarnations.deletions(history, SETS).get(set_name)
    created = [record for record in child_records(history, set_name) if record.kind == ADDED]
    return [str(record) for record in created if deletion is not None and record.revision > deletion.revision]


def objects_deleted_after_set(history: Records, set_name: str) -> list[str]:
    """Return the objects of a set that were deleted after the set itself."""
    set_deletions = [record for record in history.records(SETS, set_name) if record.kind == DELETED]
    deletions = [record for record in child_records(history, set_name) if record.kind == DELETED]
    return [str(record) for record in deletions if set_deletions and record.revision > set_deletions[0].revision]


def child_records(history: Records, set_name: str) -> list[Record]:
    """Return the records of the objects of a set."""
    return [
        record
        for record in history.records()
        if record.resource in CHILDREN and label(record.object, labels.PART_OF) == set_name
    ]
