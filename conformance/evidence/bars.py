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
WORTH = 1.0
"""A gang that was torn for at least this many seconds is shown before the other gangs."""
EXACT = 0.001
"""Precision of the times of checks, in seconds."""
SIZED = {"podcliquesets": "set", "podcliquescalinggroups": "group", "podcliques": "clique"}
"""The resources that users change, with the short names used here."""


@dataclass(frozen=True)
class Bar:
    """A span during which a pod or gang was in one state, in seconds of the history."""

    state: str
    begin: float
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

    def at_the_end(self, *states: str) -> int:
        """Return how many pods were in one of these states at the end of the history."""
        return sum(lane.note != "gone" and lane.bars[-1].state in states for lane in self.pods)


@dataclass
class GangLanes:
    """A gang and its cliques. Pods without a gang are collected in a GangLanes whose lane has no bars."""

    lane: Lane
    cliques: list[CliqueLanes] = field(default_factory=list)

    @property
    def torn(self) -> bool:
        """Return whether the gang was torn at the end."""
        return bool(self.lane.bars) and self.lane.bars[-1].state == "torn" and self.lane.note != "gone"

    @property
    def torn_for(self) -> float:
        """Return the length of the longest torn span in seconds; infinity if the gang was still torn at the end."""
        longest = max((bar.end - bar.begin for bar in self.lane.bars if bar.state == "torn"), default=0.0)
        return float("inf") if self.torn else longest


@dataclass(frozen=True)
class TimelineMark:
    """A labelled time. `kind` is `failure` for a failed check, or `change` for a change of users' objects or of
    nodes."""

    at: float | None
    words: str
    kind: str


@dataclass
class TimelineContent:
    """The content of the picture, from `begin` to `end`. All times are seconds of the history, as in every other file
    of the bundle."""

    gangs: list[GangLanes]
    changes: list[TimelineMark]
    begin: float
    end: float

    @property
    def pods(self) -> int:
        """Return the number of pods in the picture."""
        return sum(len(clique.pods) for gang in self.gangs for clique in gang.cliques)


def scene(history: History, until: float = 0.0, pool: str = "") -> TimelineContent:
    """Read a namespace's history up to its last record, or up to `until` if that is later (seconds since the recorder
    started). `pool` is the node label whose value names the namespace that uses the node."""
    records = history.records()
    namespaced = [record for record in records if record.namespace]
    begin = namespaced[0].at if namespaced else 0.0
    end = max([record.at for record in namespaced] + [until, begin])
    gangs = _gangs(namespaced, end)
    node_records = [record for record in records if record.resource == "nodes" and pool]
    fleet = [record for record in node_records if label(record.object, pool) == history.namespace]
    return TimelineContent(gangs, _changes(namespaced, fleet, begin), begin, end)


def excuse(chart: TimelineContent, failures: Iterable[TimelineMark]) -> None:
    """Mark a torn span as partial if it has ended and no check that mentions the gang or one of its cliques failed
    during it."""
    listed = [(mark.at, mark.words) for mark in failures if mark.at is not None]
    for gang in chart.gangs:
        names = [gang.lane.name, *(clique.name for clique in gang.cliques)]
        failed_at = [at for at, words in listed if any(name in words for name in names)]
        last = gang.lane.bars[-1] if gang.torn else None
        gang.lane.bars = [
            bar
            if bar.state != "torn" or bar is last or any(bar.begin - EXACT <= at <= bar.end + EXACT for at in failed_at)
            else replace(bar, state="partial")
            for bar in gang.lane.bars
        ]


def counted(lanes: Iterable[Lane]) -> list[tuple[float, dict[str, int]]]:
    """Return the number of lanes in each state, at each time when these numbers changed."""
    steps: dict[float, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for lane in lanes:
        for bar in lane.bars:
            steps[bar.begin][bar.state] += 1
            steps[bar.end][bar.state] -= 1
    now: dict[str, int] = defaultdict(int)
    counts = []
    for moment in sorted(steps):
        for state, change in steps[moment].items():
            now[state] += change
        counts.append((moment, {state: n for state, n in now.items() if n}))
    return counts


def _gangs(records: list[Record], end: float) -> list[GangLanes]:
    counts, lanes = Gangs(), dict[str, GangLanes]()
    steps: dict[str, list[tuple[float, str, str]]] = defaultdict(list)
    of_pods: dict[str, list[Record]] = defaultdict(list)
    minimums: dict[str, int] = {}
    for record in records:
        if record.resource == "pods":
            of_pods[record.uid].append(record)
        name = counts.apply(record)
        if record.resource == "podgangs" or name in steps:
            minimums |= counts[name].minimums
            steps[name].append((record.at, *_gang_state(counts[name])))
    for name in sorted(steps):
        lanes[name] = GangLanes(_lane(name, steps[name], end))
    for incarnations in of_pods.values():
        last = incarnations[-1].object
        gang = lanes.setdefault(label(last, labels.GANG), GangLanes(Lane(label(last, labels.GANG))))
        clique = label(last, labels.CLIQUE) or text(controller(last), "name")
        lane = _lane(incarnations[-1].name, [(r.at, *_pod_state(r)) for r in incarnations], end)
        lane.note = lane.note.replace(
            f" {incarnations[-1].namespace}-", " "
        )  # the names of a pool's nodes start with the namespace
        _clique(gang, clique, minimums.get(clique)).pods.append(lane)
    for gang in lanes.values():
        for clique_lanes in gang.cliques:
            clique_lanes.pods.sort(key=lambda lane: (lane.bars[0].begin if lane.bars else 0.0, lane.name))
    return sorted(
        lanes.values(), key=lambda gang: (gang.torn_for < WORTH, not gang.lane.name, _natural(gang.lane.name))
    )


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """Return a sort key that puts `a-2` before `a-10`."""
    parts = name.split("-")
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def _clique(gang: GangLanes, name: str, minimum: int | None) -> CliqueLanes:
    for clique in gang.cliques:
        if clique.name == name:
            return clique
    gang.cliques.append(CliqueLanes(name, minimum))
    gang.cliques.sort(key=lambda clique: _natural(clique.name))
    return _clique(gang, name, minimum)


def _lane(name: str, steps: list[tuple[float, str, str]], end: float) -> Lane:
    """Merge adjacent steps (time, state, note) that have the same state. An empty state gets no bar."""
    lane = Lane(name, note=steps[-1][2])
    for (moment, state, _), (after, _, _) in pairwise([*steps, (end, "", "")]):
        if not state:
            continue
        if lane.bars and lane.bars[-1].state == state and lane.bars[-1].end == moment:
            lane.bars[-1] = Bar(state, lane.bars[-1].begin, after)
        else:
            lane.bars.append(Bar(state, moment, after))
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
    if gang.admitted:
        return "whole", "its minimums are bound"
    if gang.staying:
        return "torn", gang.missing()
    return ("waits", "no pod is bound") if gang.initialized else ("forming", "not initialized")


def _changes(namespaced: list[Record], fleet: list[Record], begin: float) -> list[TimelineMark]:
    """Return the changes that users made and the additions and removals of nodes, with their times."""
    marks = [*_nodes(fleet, begin), *_requested(namespaced)]
    return sorted(marks, key=lambda mark: mark.at or 0.0)


def _requested(records: list[Record]) -> Iterator[TimelineMark]:
    """Yield the creation, change and deletion of each set, and each change of the replicas of a group or clique."""
    sizes: dict[str, tuple[int | None, int | None]] = {}
    ending: set[str] = set()
    for record in records:
        if record.resource not in SIZED:
            continue
        subject, at = f"{SIZED[record.resource]} {record.name}", record.at
        now = number(record.object, "metadata", "generation"), number(record.object, "spec", "replicas")
        before = sizes.get(record.uid)
        sizes[record.uid] = now
        is_set = record.resource == "podcliquesets"
        going = record.kind == DELETED or bool(text(record.object, "metadata", "deletionTimestamp"))
        if going:
            if is_set and record.uid not in ending:
                yield TimelineMark(at, f"{subject} is deleted", "change")
            ending.add(record.uid)
        elif before is None:
            if is_set:
                yield TimelineMark(at, f"{subject} is created", "change")
        elif now[1] != before[1]:
            yield TimelineMark(at, f"{subject} has {now[1]} replicas instead of {before[1]}", "change")
        elif is_set and now[0] != before[0]:
            yield TimelineMark(at, f"{subject} is changed", "change")


def _nodes(fleet: list[Record], begin: float) -> Iterator[TimelineMark]:
    """Yield a mark for each time at which nodes were added or removed. Nodes that existed before `begin` are shown as
    added at `begin`."""
    seen_uids: set[str] = set()
    came: dict[float, int] = defaultdict(int)
    went: dict[float, int] = defaultdict(int)
    for record in fleet:
        if record.kind == DELETED:
            went[round(record.at, 1)] += 1
        elif record.uid not in seen_uids and record.kind == ADDED:
            came[max(begin, round(record.at, 1))] += 1
        seen_uids.add(record.uid)
    yield from (TimelineMark(at, f"{number} node{'s' * (number > 1)} added", "change") for at, number in came.items())
    yield from (TimelineMark(at, f"{number} node{'s' * (number > 1)} removed", "change") for at, number in went.items())
