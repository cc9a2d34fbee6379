"""A history as text, for failure bundles: a lane for each object, with its state changes and their times.

gang    demo-0                +1.204 not initialized … → +1.391 initialized …
clique    demo-0-router       +1.180 0 scheduled 0 ready 0 gated of 2 → …
pod         demo-0-router-x7k +1.301 gated → +1.420 waiting → +1.502 bound on node-3 → +1.611 ready on node-3
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from conformance.grove import labels
from conformance.grove.fields import label
from conformance.history.query import History
from conformance.history.record import Record
from conformance.history.summary import state

LANES = {
    "podcliquesets": "set",
    "podcliquescalinggroups": "group",
    "podgangmaps": "map",
    "podgangs": "gang",
    "podcliques": "clique",
    "pods": "pod",
    "services": "service",
    "nodes": "node",
}
"""The resources that have lanes, and the short names of these resources."""
WIDTH = max(map(len, LANES.values())) + 1

MAX_LANES = 400


def render(history: History, marks: Sequence[tuple[float, str]] = (), mark: int = 0) -> str:
    """Return the lanes of a namespace: sets first, then each gang with its cliques and their pods.

    `marks` are times (seconds since the recorder started) with a text, for example failures. They are shown above the
    lanes. Lanes beyond `MAX_LANES` are only counted.
    """
    lanes: dict[tuple[str, str, str], list[Record]] = {}
    for record in history.records(after=mark):
        if record.resource in LANES:
            lanes.setdefault((record.resource, record.name, record.uid), []).append(record)
    sorted_lanes = sorted(lanes.values(), key=_sort_key)
    lines = [f"{'':<{WIDTH}}{_format_time(time)} {text}" for time, text in sorted(marks)]
    lines += [_lane(records) for records in sorted_lanes[:MAX_LANES]]
    if len(sorted_lanes) > MAX_LANES:
        lines.append(f"… and {len(sorted_lanes) - MAX_LANES} more")
    return "\n".join(lines) + "\n"


def _sort_key(records: Sequence[Record]) -> tuple[object, ...]:
    """Return a sort key: nodes and sets first, then each gang, followed by its cliques, each of which is followed by
    its pods."""
    last_record = records[-1]
    if last_record.resource == "podgangs":
        return (2, last_record.name, "", 0, last_record.name)
    if last_record.resource in ("podcliques", "pods"):
        clique = last_record.name if last_record.resource == "podcliques" else label(last_record.object, labels.CLIQUE)
        return (2, label(last_record.object, labels.GANG), clique, last_record.resource == "pods", last_record.name)
    rank = {"nodes": 0, "podcliquesets": 1}.get(last_record.resource, 3)
    return (rank, LANES[last_record.resource], "", 0, last_record.name)


def _lane(records: Sequence[Record]) -> str:
    indent = {"podcliques": 2, "pods": 4}.get(records[0].resource, 0)
    name = " " * indent + records[0].name
    return f"{LANES[records[0].resource]:<{WIDTH}}{name:<44} " + " → ".join(_changes(records))


def _changes(records: Iterable[Record]) -> list[str]:
    changes: list[str] = []
    last_state = ""
    for record in records:
        new_state = state(record)
        if new_state != last_state:
            changes.append(f"{_format_time(record.at)} {new_state}")
        last_state = new_state
    return changes


def _format_time(at: float) -> str:
    return f"+{at:.3f}"
