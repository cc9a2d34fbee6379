"""The content of a picture: the states of each pod and each gang over time. Pure functions.

A gang is *torn* while some of its pods are bound but its minimums are not met. A gang whose pods are bound one by one
is always torn for a moment, so a torn span that has ended is called *partial* unless a failed check mentions the gang.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from conformance.grove import labels, pods
from conformance.grove.fields import controller, label, number, text
from conformance.history.gangs import Gangs, ObservedGang
from conformance.history.query import History
from conformance.history.record import ADDED, DELETED, Record

POD_STATES = ("gated", "waiting", "bound", "ready", "ended", "terminating")
"""`waiting`: the pod has no scheduling gate and no node; `ended`: its phase is Failed or Succeeded."""
MIN_TORN_SECONDS = 1.0
"""A gang that was torn for at least this many seconds is shown before the other gangs."""
TIME_PRECISION = 0.001
"""Precision of the times of checks, in seconds."""
SHORT_NAMES = {"podcliquesets": "set", "podcliquescalinggroups": "group", "podcliques": "clique"}
"""The resources that users change, with the short names used here."""


@dataclass(frozen=True)
class Bar:
    """A span during which a pod or gang was in one state, in seconds of the history."""

    state: str
    start: float
    end: float


@dataclass
class Lane:
    """The states of one pod or one gang over time. `note` describes its last state."""

    name: str
    bars: list[Bar] = field(default_factory=list)
    note: str = ""


@dataclass
class CliqueLanes:
    """A clique and the lanes of its pods."""

    name: str
    minimum: int | None
    """minReplicas of the clique's PodGroup; None if it has no PodGang yet."""
    pods: list[Lane] = field(default_factory=list)

    def count_final(self, *states: str) -> int:
        """Return the number of pods that were in one of these states at the end of the history."""
        return sum(lane.note != "gone" and lane.bars[-1].state in states for lane in self.pods)


@dataclass
class GangLanes:
    """A gang and its cliques. Pods without a gang are collected in a GangLanes whose lane has no bars."""

    lane: Lane
    cliques: list[CliqueLanes] = field(default_factory=list)

    @property
    def is_torn(self) -> bool:
        """Return whether the gang was torn at the end."""
        return bool(self.lane.bars) and self.lane.bars[-1].state == "torn" and self.lane.note != "gone"

    @property
    def longest_torn_seconds(self) -> float:
        """Return the length of the longest torn span in seconds; infinity if the gang was still torn at the end."""
        longest = max((bar.end - bar.start for bar in self.lane.bars if bar.state == "torn"), default=0.0)
        return float("inf") if self.is_torn else longest


@dataclass(frozen=True)
class TimelineMark:
    """A labelled time. `kind` is `failure` for a failed check, or `change` for a change of users' objects or of
    nodes."""

    at: float | None
    words: str
    kind: str


@dataclass
class TimelineContent:
    """The content of the picture, from `start` to `end`. All times are seconds of the history, as in every other file
    of the bundle."""

    gangs: list[GangLanes]
    changes: list[TimelineMark]
    start: float
    end: float

    @property
    def pods(self) -> int:
        """Return the number of pods in the picture."""
        return sum(len(clique.pods) for gang in self.gangs for clique in gang.cliques)


def read_timeline(history: History, until: float = 0.0, pool: str = "") -> TimelineContent:
    """Read a namespace's history up to its last record, or up to `until` if that is later (seconds since the recorder
    started). `pool` is the node label whose value names the namespace that uses the node."""
    records = history.records()
    namespaced_records = [record for record in records if record.namespace]
    start = namespaced_records[0].at if namespaced_records else 0.0
    end = max([record.at for record in namespaced_records] + [until, start])
    gangs = _gangs(namespaced_records, end)
    node_records = [record for record in records if record.resource == "nodes" and pool]
    pool_nodes = [record for record in node_records if label(record.object, pool) == history.namespace]
    return TimelineContent(gangs, _changes(namespaced_records, pool_nodes, start), start, end)


def mark_partial_spans(chart: TimelineContent, failures: Iterable[TimelineMark]) -> None:
    """Mark a torn span as partial if it has ended and no check that mentions the gang or one of its cliques failed
    during it."""
    failed_checks = [(mark.at, mark.words) for mark in failures if mark.at is not None]
    for gang in chart.gangs:
        names = [gang.lane.name, *(clique.name for clique in gang.cliques)]
        failed_at = [time for time, text in failed_checks if any(name in text for name in names)]
        lasting_bar = gang.lane.bars[-1] if gang.is_torn else None
        gang.lane.bars = [
            bar
            if bar.state != "torn"
            or bar is lasting_bar
            or any(bar.start - TIME_PRECISION <= time <= bar.end + TIME_PRECISION for time in failed_at)
            else replace(bar, state="partial")
            for bar in gang.lane.bars
        ]


def count_states(lanes: Iterable[Lane]) -> list[tuple[float, dict[str, int]]]:
    """Return the number of lanes in each state, at each time when these numbers changed."""
    steps: dict[float, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for lane in lanes:
        for bar in lane.bars:
            steps[bar.start][bar.state] += 1
            steps[bar.end][bar.state] -= 1
    totals: dict[str, int] = defaultdict(int)
    counts = []
    for time in sorted(steps):
        for state, change in steps[time].items():
            totals[state] += change
        counts.append((time, {state: n for state, n in totals.items() if n}))
    return counts


def _gangs(records: list[Record], end: float) -> list[GangLanes]:
    observed_gangs, lanes = Gangs(), dict[str, GangLanes]()
    steps: dict[str, list[tuple[float, str, str]]] = defaultdict(list)
    pod_records: dict[str, list[Record]] = defaultdict(list)
    minimums: dict[str, int] = {}
    for record in records:
        if record.resource == "pods":
            pod_records[record.uid].append(record)
        name = observed_gangs.apply(record)
        if record.resource == "podgangs" or name in steps:
            minimums |= observed_gangs[name].minimums
            steps[name].append((record.at, *_gang_state(observed_gangs[name])))
    for name in sorted(steps):
        lanes[name] = GangLanes(_lane(name, steps[name], end))
    for pod_history in pod_records.values():
        last_object = pod_history[-1].object
        gang = lanes.setdefault(label(last_object, labels.GANG), GangLanes(Lane(label(last_object, labels.GANG))))
        clique = label(last_object, labels.CLIQUE) or text(controller(last_object), "name")
        lane = _lane(pod_history[-1].name, [(r.at, *_pod_state(r)) for r in pod_history], end)
        lane.note = lane.note.replace(
            f" {pod_history[-1].namespace}-", " "
        )  # the names of a pool's nodes start with the namespace
        _clique_lanes(gang, clique, minimums.get(clique)).pods.append(lane)
    for gang in lanes.values():
        for clique_lanes in gang.cliques:
            clique_lanes.pods.sort(key=lambda lane: (lane.bars[0].start if lane.bars else 0.0, lane.name))
    return sorted(
        lanes.values(),
        key=lambda gang: (
            gang.longest_torn_seconds < MIN_TORN_SECONDS,
            not gang.lane.name,
            _natural_key(gang.lane.name),
        ),
    )


def _natural_key(name: str) -> list[tuple[bool, int, str]]:
    """Return a sort key that puts `a-2` before `a-10`."""
    segments = name.split("-")
    return [(segment.isdigit(), int(segment) if segment.isdigit() else 0, segment) for segment in segments]


def _clique_lanes(gang: GangLanes, name: str, minimum: int | None) -> CliqueLanes:
    for clique in gang.cliques:
        if clique.name == name:
            return clique
    gang.cliques.append(CliqueLanes(name, minimum))
    gang.cliques.sort(key=lambda clique: _natural_key(clique.name))
    return _clique_lanes(gang, name, minimum)


def _lane(name: str, steps: list[tuple[float, str, str]], end: float) -> Lane:
    """Merge adjacent steps (time, state, note) that have the same state. An empty state gets no bar."""
    lane = Lane(name, note=steps[-1][2])
    for (moment, state, _), (next_moment, _, _) in pairwise([*steps, (end, "", "")]):
        if not state:
            continue
        if lane.bars and lane.bars[-1].state == state and lane.bars[-1].end == moment:
            lane.bars[-1] = Bar(state, lane.bars[-1].start, next_moment)
        else:
            lane.bars.append(Bar(state, moment, next_moment))
    return lane


def _pod_state(record: Record) -> tuple[str, str]:
    if record.kind == DELETED:
        return "", "gone"
    phase = pods.phase(record.object)
    state = phase if phase in POD_STATES else "ended"
    node = pods.node(record.object)
    return state, f"{phase} on {node}" if node and state in ("bound", "ready") else phase


def _gang_state(gang: ObservedGang) -> tuple[str, str]:
    if not gang.exists:
        return "", "gone"
    if gang.is_admitted:
        return "whole", "its minimums are bound"
    if gang.active_pods:
        return "torn", gang.shortfall()
    return ("waits", "no pod is bound") if gang.is_initialized else ("forming", "not initialized")


def _changes(records: list[Record], node_records: list[Record], start: float) -> list[TimelineMark]:
    """Return the changes that users made and the additions and removals of nodes, with their times."""
    marks = [*_node_changes(node_records, start), *_object_changes(records)]
    return sorted(marks, key=lambda mark: mark.at or 0.0)


def _object_changes(records: list[Record]) -> Iterator[TimelineMark]:
    """Yield the creation, change and deletion of each set, and each change of the replicas of a group or clique."""
    sizes: dict[str, tuple[int | None, int | None]] = {}
    deleted_uids: set[str] = set()
    for record in records:
        if record.resource not in SHORT_NAMES:
            continue
        subject, time = f"{SHORT_NAMES[record.resource]} {record.name}", record.at
        new_size = number(record.object, "metadata", "generation"), number(record.object, "spec", "replicas")
        old_size = sizes.get(record.uid)
        sizes[record.uid] = new_size
        is_set = record.resource == "podcliquesets"
        is_deleted = record.kind == DELETED or bool(text(record.object, "metadata", "deletionTimestamp"))
        if is_deleted:
            if is_set and record.uid not in deleted_uids:
                yield TimelineMark(time, f"{subject} is deleted", "change")
            deleted_uids.add(record.uid)
        elif old_size is None:
            if is_set:
                yield TimelineMark(time, f"{subject} is created", "change")
        elif new_size[1] != old_size[1]:
            yield TimelineMark(time, f"{subject} has {new_size[1]} replicas instead of {old_size[1]}", "change")
        elif is_set and new_size[0] != old_size[0]:
            yield TimelineMark(time, f"{subject} is changed", "change")


def _node_changes(records: list[Record], start: float) -> Iterator[TimelineMark]:
    """Yield a mark for each time at which nodes were added or removed. Nodes that existed before `start` are shown as
    added at `start`."""
    known_uids: set[str] = set()
    added: dict[float, int] = defaultdict(int)
    removed: dict[float, int] = defaultdict(int)
    for record in records:
        if record.kind == DELETED:
            removed[round(record.at, 1)] += 1
        elif record.uid not in known_uids and record.kind == ADDED:
            added[max(start, round(record.at, 1))] += 1
        known_uids.add(record.uid)
    yield from (
        TimelineMark(time, f"{number} node{'s' * (number > 1)} added", "change") for time, number in added.items()
    )
    yield from (
        TimelineMark(time, f"{number} node{'s' * (number > 1)} removed", "change") for time, number in removed.items()
    )
