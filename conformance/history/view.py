"""The state of a namespace after a record: all objects that exist at that point."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from conformance.grove.fields import label
from conformance.history.record import DELETED, Record

Labels = Mapping[str, str]
Objects = list[Mapping[str, Any]]
Records = list[Record]
Names = list[str]
Group = Callable[[Record], str]
"""Returns the name of the group that an object belongs to. Pass the same function object each time, because it is the
key of an index."""


class View:
    """Objects by resource (plural) and name.

    `apply` takes constant time. A label key or group is indexed when it is first queried, so that the cost of a query
    for a clique's pods grows with the size of the clique, not of the namespace.

    The view that is passed to a predicate belongs to the history and changes later: keep a `copy()` of the view, or the
    objects.
    """

    def __init__(self) -> None:
        self.seq = 0
        self.at = 0.0
        self.last: Record | None = None
        self._objects: dict[str, dict[str, Record]] = {}
        self._indices: dict[tuple[str, Group], dict[str, dict[str, Record]]] = {}

    def apply(self, record: Record) -> None:
        """Apply a record."""
        self.seq, self.at, self.last = record.seq, record.at, record
        existing = self._objects.setdefault(record.resource, {})
        previous = existing.get(record.name)
        if record.kind == DELETED:
            if previous is None or (previous.uid and previous.uid != record.uid):
                return
            del existing[record.name]
        else:
            existing[record.name] = record
        for (resource, group), index in self._indices.items():
            if resource == record.resource:
                if previous is not None:
                    index.get(group(previous), {}).pop(previous.name, None)
                if record.kind != DELETED:
                    index.setdefault(group(record), {})[record.name] = record

    def get(self, resource: str, name: str) -> Mapping[str, Any] | None:
        """Return an object; None if it does not exist."""
        record = self._objects.get(resource, {}).get(name)
        return None if record is None else record.object

    def record(self, resource: str, name: str) -> Record | None:
        """Return the record of an object's current state; None if the object does not exist."""
        return self._objects.get(resource, {}).get(name)

    def list(self, resource: str, labels: Labels | None = None) -> Objects:
        """Return the objects with all these labels, sorted by name."""
        return [record.object for record in self.records(resource, labels)]

    def records(self, resource: str, labels: Labels | None = None) -> Records:
        """Return the records of the objects with all these labels, sorted by name."""
        matches = self._objects.get(resource, {})
        for key, value in (labels or {}).items():
            labeled = self._index(resource, _label(key)).get(value, {})
            smaller, larger = sorted((matches, labeled), key=len)
            matches = {name: record for name, record in smaller.items() if name in larger}
        return [matches[name] for name in sorted(matches)]

    def grouped(self, resource: str, group: Group, name: str) -> Objects:
        """Return the objects of a group, sorted by name."""
        records = self._index(resource, group).get(name, {})
        return [records[object_name].object for object_name in sorted(records)]

    def names(self, resource: str, labels: Labels | None = None) -> Names:
        """Return the sorted names of the objects with all these labels."""
        return [record.name for record in self.records(resource, labels)]

    def resources(self) -> Iterator[str]:
        """Yield the resources that have at least one object."""
        return (resource for resource in sorted(self._objects) if self._objects[resource])

    def copy(self) -> View:
        """Return a copy that does not change."""
        other = View()
        other.seq, other.at, other.last = self.seq, self.at, self.last
        other._objects = {resource: dict(objects) for resource, objects in self._objects.items()}
        return other

    def _index(self, resource: str, group: Group) -> dict[str, dict[str, Record]]:
        index = self._indices.get((resource, group))
        if index is None:
            index = self._indices[resource, group] = {}
            for record in self._objects.get(resource, {}).values():
                index.setdefault(group(record), {})[record.name] = record
        return index


@cache
def _label(key: str) -> Group:
    """Return the group function that groups objects by the value of a label."""

    def value(record: Record) -> str:
        return label(record.object, key)

    return value
