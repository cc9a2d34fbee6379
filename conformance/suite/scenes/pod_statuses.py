"""Pod statuses, which only the kubelet may write: statuses that others have written, and statuses that were stored
otherwise than the suite or a component of the cluster has sent them, because admission has changed them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import orjson

from conformance.grove.fields import at, condition_is, count, items, text, truth
from conformance.history.query import History
from conformance.history.record import Record

CONDITIONS = ("Ready", "ContainersReady", "Initialized", "PodReadyToStartContainers")
"""The conditions that only a kubelet knows."""
CONTAINERS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
KUBELETS = ("phase", *CONTAINERS, "podIP", "startTime")
"""The other parts of a status that only a kubelet knows."""

Parts = dict[str, object]


def forged(history: History) -> Iterator[str]:
    """Yield each part of a status that only a kubelet may write and that another user has written, as a sentence."""
    for record, now, before in _changes(history) if history.origins.statuses else ():
        user = history.origins.statuses.get(record.version)
        changed = [part for part in now if (now[part] or before.get(part)) and now[part] != before.get(part)]
        if user and changed:
            yield f"{changed[0]} of pod {record.name} was written by the user {user} ({record})"


def altered(history: History, sent: Mapping[str, Sequence[bytes]]) -> Iterator[str]:
    """Yield each part that was stored otherwise than it was sent, as a sentence. `sent`: the bodies of the requests of
    the suite and the components that have led to a resource version."""
    for record, now, before in _changes(history):
        requests = [_parts(body) for body in sent.get(record.version, ())]
        for part, value in now.items() if requests else ():
            values = [request[part] for request in requests if part in request]
            like = [value_sent for value_sent in values if _alike(part, value_sent, value)]
            if not like and (values or (value and value != before.get(part))):
                yield f"{part} of pod {record.name} was stored otherwise than it was sent ({record})"


def _changes(history: History) -> Iterator[tuple[Record, Parts, Parts]]:
    """Yield each state of a pod with what a kubelet says in it and in the state before. A list may hide states."""
    states: dict[str, Parts] = {}
    for record in history.records("pods"):
        now: Parts = {kind: condition_is(record.object, kind) for kind in CONDITIONS}
        now |= {part: at(record.object, "status", part) for part in KUBELETS}
        before = states.get(record.uid, {"phase": "Pending"})
        states[record.uid] = now
        if not record.listed:
            yield record, now, before


def _parts(body: bytes) -> Parts:
    """Return the parts that the body of a request sets: a whole pod, or a patch of one."""
    status = at(orjson.loads(body), "status")
    conditions = (
        condition for condition in items(status, "conditions") if "status" in condition and "$patch" not in condition
    )
    parts: Parts = {text(condition, "type"): text(condition, "status") for condition in conditions}
    return parts | {part: value for part in KUBELETS if (value := at(status, part)) is not None}


def _alike(part: str, sent: object, stored: object) -> bool:
    if part in CONTAINERS:
        one, other = ([_container(container) for container in items({part: value}, part)] for value in (sent, stored))
        return one == other
    if part == "startTime":
        return _second(sent) == _second(stored)
    return sent == stored


def _second(timestamp: object) -> object:
    """Return the second of a timestamp: the API server stores no fractions, and in UTC what a kubelet sends with the
    offset of its time zone."""
    try:
        return int(datetime.fromisoformat(str(timestamp)).timestamp())
    except ValueError:
        return timestamp


def _container(status: Mapping[str, object]) -> tuple[object, ...]:
    """Return what a container status says of the progress of its container."""
    state = at(status, "state")
    words = sorted(word for word, detail in state.items() if detail is not None) if isinstance(state, Mapping) else []
    restarts = count(status, "restartCount")
    return text(status, "name"), bool(truth(status, "ready")), bool(truth(status, "started")), restarts, words
