"""One-line summaries of objects, for messages, timelines and failure bundles. Malformed objects are accepted; nothing
is raised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from conformance.grove import pods
from conformance.grove.coherent import shapes
from conformance.grove.fields import Document, condition_is, count, items, number, terminating, text
from conformance.history.record import DELETED, Record
from conformance.history.view import View


def _pod(pod: Document) -> str:
    node = pods.node(pod)
    return pods.phase(pod) + (f" on {node}" if node and not terminating(pod) else "")


def _gang(gang: Document) -> str:
    groups = items(gang, "spec", "podgroups")
    sizes = " ".join(
        f"{text(group, 'name')}:{len(items(group, 'podReferences'))}(min {number(group, 'minReplicas')})"
        for group in groups
    )
    initialized = condition_is(gang, "Initialized")
    return ("initialized " if initialized == "True" else "not initialized ") + (sizes or "no podgroups")


def _map(gang_map: Document) -> str:
    """Return the gangs of a PodGangMap, each with the last characters of its generation hash."""
    layout = shapes.entries(gang_map)
    words = (f"{'anchor ' if entry.anchor else ''}{entry.content()}@{entry.generation[-4:]}" for entry in layout)
    return " ".join(words) or "no entries"


def _clique(clique: Document) -> str:
    status = clique.get("status")
    return (
        f"{count(status, 'scheduledReplicas')} scheduled {count(status, 'readyReplicas')} ready "
        f"{count(status, 'scheduleGatedReplicas')} gated of {number(clique, 'spec', 'replicas')}"
    )


def _available(owner: Document) -> str:
    return f"{count(owner, 'status', 'availableReplicas')} available of {number(owner, 'spec', 'replicas')}"


def _node(node: Document) -> str:
    return "ready" if condition_is(node, "Ready") == "True" else "not ready"


def _lease(lease: Document) -> str:
    holder = text(lease, "spec", "holderIdentity")
    return f"held by {holder}" if holder else "held by nobody"


def _nothing(_: Document) -> str:
    return "exists"


_WORDS: dict[str, Callable[[Document], str]] = {
    "pods": _pod,
    "podgangs": _gang,
    "podgangmaps": _map,
    "podcliques": _clique,
    "podcliquescalinggroups": _available,
    "podcliquesets": _available,
    "nodes": _node,
    "leases": _lease,
}


def state(record: Record) -> str:
    """Return the state of an object after a record, in a few words."""
    if record.kind == DELETED:
        return "gone"
    words = _WORDS.get(record.resource, _nothing)(record.object)
    return f"terminating, {words}" if terminating(record.object) and record.resource != "pods" else words


def describe(record: Record) -> str:
    """Return a record as one line: its time, its object and the object's state."""
    return f"+{record.at:.3f}s {record.resource}/{record.name}: {state(record)}"


def overview(view: View, limit: int = 12) -> list[str]:
    """Return the state of a namespace: one line per object or, for resources with more than `limit` objects, one line
    with the number of objects in the most common states."""
    lines = []
    for resource in view.resources():
        if resource == "events":
            continue
        records = view.records(resource)
        if len(records) <= limit:
            lines += [f"{resource}/{record.name}: {state(record)}" for record in records]
        else:
            tally = Counter(state(record).split(" on ")[0] for record in records)
            counts = ", ".join(f"{number} {word}" for word, number in tally.most_common(limit))
            lines.append(f"{resource}: {counts}")
    return lines or ["nothing exists"]
