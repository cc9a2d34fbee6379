"""Incarnations: successive objects with the same name. A recreated object has a new UID."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conformance.grove.fields import condition_is, name, terminating, uid
from conformance.history.query import History, Predicate, Unmet
from conformance.history.record import DELETED, Record
from conformance.history.view import View
from conformance.suite.scenes.recorded import Span

Records = History | Span
"""A whole history, or a span of a history."""


def uids(view: View, resource: str) -> dict[str, str]:
    """Return name → UID for each object that is not being deleted."""
    return {name(item): uid(item) for item in view.list(resource) if not terminating(item)}


def counts(history: Records, resource: str) -> dict[str, int]:
    """Return name → number of incarnations."""
    uids_by_name: dict[str, set[str]] = {}
    for record in history.records(resource):
        uids_by_name.setdefault(record.name, set()).add(record.uid)
    return {name: len(uids) for name, uids in uids_by_name.items()}


def deletions(history: Records, resource: str) -> dict[str, Record]:
    """Return name → the first record that shows that an object with this name was deleted or is terminating."""
    result: dict[str, Record] = {}
    for record in history.records(resource):
        if record.name not in result and (record.kind == DELETED or terminating(record.object)):
            result[record.name] = record
    return result


def are_recreated(resource: str, names: Iterable[str], previous_uids: Mapping[str, str]) -> Predicate:
    """An object with each of these names exists, and its UID differs from the UID in `previous_uids`."""
    expected_names = list(names)

    def check(view: View) -> bool | Unmet:
        current_uids = uids(view, resource)
        missing = [name for name in expected_names if current_uids.get(name, "") in ("", previous_uids.get(name))]
        return not missing or Unmet(f"not created again: {', '.join(missing)}")

    return check


def condition_start(
    history: Records, resource: str, object_name: str, condition_type: str, status: str
) -> Record | None:
    """Return the record with which a condition of an object got the status that it still has at the end. Return None if
    the condition has another status by then."""
    start_record: Record | None = None
    for record in history.records(resource, object_name):
        holds = record.kind != DELETED and condition_is(record.object, condition_type) == status
        start_record = (start_record or record) if holds else None
    return start_record
