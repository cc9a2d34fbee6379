"""Detect manipulated pod statuses, which only the kubelet may write: statuses that other clients have written, and
statuses that admission has changed, so that they were stored differently than the suite or a component of the cluster
sent them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import orjson

from conformance.grove.fields import at, condition_is, count, items, text, truth
from conformance.history.query import History
from conformance.history.record import Record

CONDITIONS = ("Ready", "ContainersReady", "Initialized", "PodReadyToStartContainers")
"""The conditions that only a kubelet may set."""
CONTAINER_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
KUBELET_FIELDS = ("phase", *CONTAINER_STATUSES, "podIP", "startTime")
"""The other parts of a status that only a kubelet may set."""

Parts = dict[str, object]


def forged(history: History) -> Iterator[str]:
    """Yield a message for each part of a status that only a kubelet may write but another user has written."""
    for record, current, previous in _changes(history) if history.origins.statuses else ():
        user = history.origins.statuses.get(record.version)
        changed = _changed_parts(current, previous)
        if user and changed:
            yield f"{changed[0]} of pod {record.name} was written by the user {user} ({record})"


def unconfirmed(history: History, writers: Mapping[str, str], sent: Mapping[str, Sequence[bytes]]) -> dict[str, str]:
    """Return `writers` (resourceVersion → the other user that got it in response to a write) without the versions that
    the suite or a component produced: a write that changes nothing gets the version that an earlier write produced.
    A version is confirmed if requests of the suite or of components (`sent`, as in `altered`) contained every part of
    the status that is new in it."""
    confirmed_versions = set()
    for record, current, previous in _changes(history) if writers else ():
        requests = [_parts(body) for body in sent.get(record.version, ())]
        if requests and all(
            any(part in request and _is_equal(part, request[part], current[part]) for request in requests)
            for part in _changed_parts(current, previous)
        ):
            confirmed_versions.add(record.version)
    return {version: user for version, user in writers.items() if version not in confirmed_versions}


def altered(history: History, sent: Mapping[str, Sequence[bytes]]) -> Iterator[str]:
    """Yield a message for each part of a status that was stored differently than it was sent. `sent`: resourceVersion →
    the bodies of the requests by which the suite and the components produced that version."""
    for record, current, previous in _changes(history):
        requests = [_parts(body) for body in sent.get(record.version, ())]
        for part, value in current.items() if requests else ():
            values = [request[part] for request in requests if part in request]
            matching = [value_sent for value_sent in values if _is_equal(part, value_sent, value)]
            if not matching and (values or (value and value != previous.get(part))):
                yield f"{part} of pod {record.name} was stored otherwise than it was sent ({record})"


def _changes(history: History) -> Iterator[tuple[Record, Parts, Parts]]:
    """Yield each record of a pod, with the parts that a kubelet sets in it and in the pod's previous record. Records
    from lists are skipped, because a list may hide states."""
    states: dict[str, Parts] = {}
    for record in history.records("pods"):
        current: Parts = {condition_type: condition_is(record.object, condition_type) for condition_type in CONDITIONS}
        current |= {part: at(record.object, "status", part) for part in KUBELET_FIELDS}
        previous = states.get(record.uid, {"phase": "Pending"})
        states[record.uid] = current
        if not record.listed:
            yield record, current, previous


def _changed_parts(current: Parts, previous: Parts) -> list[str]:
    return [part for part in current if (current[part] or previous.get(part)) and current[part] != previous.get(part)]


def _parts(body: bytes) -> Parts:
    """Return the parts that the body of a request sets. The body is a whole pod or a patch of a pod."""
    status = at(orjson.loads(body), "status")
    conditions = (
        condition for condition in items(status, "conditions") if "status" in condition and "$patch" not in condition
    )
    parts: Parts = {text(condition, "type"): text(condition, "status") for condition in conditions}
    return parts | {part: value for part in KUBELET_FIELDS if (value := at(status, part)) is not None}


def _is_equal(part: str, sent: object, stored: object) -> bool:
    if part in CONTAINER_STATUSES:
        sent_statuses, stored_statuses = (
            [_container(container) for container in items({part: value}, part)] for value in (sent, stored)
        )
        return sent_statuses == stored_statuses
    if part == "startTime":
        return _whole_seconds(sent) == _whole_seconds(stored)
    return sent == stored


def _whole_seconds(timestamp: object) -> object:
    """Return a timestamp in whole seconds since the epoch: a kubelet sends fractions and its time zone's offset, but
    the API server stores whole seconds in UTC."""
    try:
        return int(datetime.fromisoformat(str(timestamp)).timestamp())
    except ValueError:
        return timestamp


def _container(status: Mapping[str, object]) -> tuple[object, ...]:
    """Return the parts of a container status that show the progress of the container."""
    state = at(status, "state")
    state_names = (
        sorted(word for word, detail in state.items() if detail is not None) if isinstance(state, Mapping) else []
    )
    restarts = count(status, "restartCount")
    return text(status, "name"), bool(truth(status, "ready")), bool(truth(status, "started")), restarts, state_names
