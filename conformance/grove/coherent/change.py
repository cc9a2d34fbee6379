"""The change that one write makes to a map, and whether a coherent update may make it (coherent.md, sections 3.3 to
3.5)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformance.grove.coherent.model import Component, Entry, Key, Layout
from conformance.grove.coherent.plan import Batch
from conformance.grove.fields import decimal


@dataclass(frozen=True)
class LayoutChange:
    """The difference between two layouts of a replica."""

    before: Layout
    after: Layout

    @property
    def new_anchors(self) -> list[Entry]:
        """Return the new anchors."""
        return [entry for entry in self._new() if entry.anchor]

    @property
    def new_non_anchors(self) -> list[Entry]:
        """Return the new gangs that are not anchors."""
        return [entry for entry in self._new() if not entry.anchor]

    @property
    def gains_by_gang(self) -> dict[str, dict[Key, int]]:
        """Return the numbers of members that existing gangs have gained, by gang and component."""
        return {key: gained for key, gained in self._differences(1).items() if gained}

    @property
    def losses_by_gang(self) -> dict[str, dict[Key, int]]:
        """Return the numbers of members that gangs, including removed ones, have lost, by gang and component."""
        return {key: lost for key, lost in self._differences(-1).items() if lost}

    @property
    def batch(self) -> Batch:
        """Return the total numbers of members that new and existing gangs have gained, by component."""
        counts: dict[Key, int] = {}
        for entry in self._new():
            for key in entry.components():
                counts[key] = counts.get(key, 0) + entry.size(key)
        for gained in self.gains_by_gang.values():
            for key, count in gained.items():
                counts[key] = counts.get(key, 0) + count
        return Batch(bool(self.new_anchors), counts)

    def __bool__(self) -> bool:
        """Return whether the members of any gang have changed. Hashes and dependencies do not count."""
        return bool(self._new() or self.gains_by_gang or self.losses_by_gang)

    def _new(self) -> list[Entry]:
        old_keys = {entry.key for entry in self.before}
        return [entry for entry in self.after if entry.key not in old_keys]

    def _differences(self, sign: int) -> dict[str, dict[Key, int]]:
        later_entries = {entry.key: entry for entry in self.after}
        by_gang: dict[str, dict[Key, int]] = {}
        for entry in self.before:
            later_entry = later_entries.get(entry.key)
            if later_entry is None and sign > 0:
                continue
            keys = entry.components() | (later_entry.components() if later_entry else set())
            differences = {key: sign * _difference(entry, later_entry, key, sign) for key in keys}
            by_gang[entry.key] = {key: count for key, count in differences.items() if count > 0}
        return by_gang


def _difference(before: Entry, after: Entry | None, key: Key, sign: int) -> int:
    """Return the number of members that were added (sign 1) or removed (sign -1), the latter as a negative number."""
    if key.kind == "clique":
        return (after.size(key) if after else 0) - before.size(key)
    later_indices = set(after.groups.get(key.name, ())) if after else set()
    earlier_indices = set(before.groups.get(key.name, ()))
    return len(later_indices - earlier_indices) if sign > 0 else -len(earlier_indices - later_indices)


def changes(layouts: Iterable[Layout]) -> list[LayoutChange]:
    """Return the changes between successive layouts; writes that move no members are left out."""
    result: list[LayoutChange] = []
    last: Layout | None = None
    for layout in layouts:
        if last is not None and (change := LayoutChange(last, layout)):
            result.append(change)
        last = layout
    return result


def problems(
    change: LayoutChange,
    generation: str,
    components: Sequence[Component],
    *,
    before: Iterable[str] = (),
    unavailable: Mapping[Key, int] | None = None,
    settled: Callable[[Entry, Key], bool] | None = None,
    single_anchor: bool = False,
) -> list[str]:
    """Return the reasons why a coherent update to `generation` may not make a change to a map; empty if it may.
    `components`: the components in scope; `before`: keys of the gangs that existed at the start of the update, which
    may lose members even if a revert has made their generation current again; `unavailable`: component → the number of
    its members in the batch that were already unavailable (they may be replaced beyond maxUnavailable); `settled`:
    returns whether a gang's members of a component are of the current template, if more is known about the gang than
    its generation (COH-197); `single_anchor`: whether only one anchor may be opened."""
    in_scope = {component.key: component for component in components}
    earlier_keys = set(before)
    errors = [*movement_errors(change, generation, earlier_keys), *_joining_replicas(change)]
    out_of_scope = sorted(change.batch.counts.keys() - in_scope.keys())
    errors += [f"{key.name} is not in the scope of the update, and {change.batch} moves it" for key in out_of_scope]
    if change.new_anchors:
        is_settled = settled or (lambda entry, key: entry.generation == generation)
        is_ahead = any(
            entry.size(key) and is_settled(entry, key) and (entry.generation != generation or entry.key in earlier_keys)
            for entry in change.before
            for key in in_scope
        )
        errors += _anchor_problems(change, in_scope, is_settled, unavailable or {}, is_ahead=is_ahead)
    else:
        errors += _tail_problems(change, generation)
    if change.new_anchors and single_anchor and any(e.anchor and e.key not in earlier_keys for e in change.before):
        errors.append("a second anchor is opened")
    errors += _over_budget(change, in_scope, unavailable or {})
    return errors


def movement_errors(change: LayoutChange, generation: str, old: Collection[str]) -> Iterator[str]:
    """Yield errors if the members that a change removes and adds differ, or if members do not move from gangs of other
    generations to gangs of this generation. `old`: keys of the gangs that existed at the start of the update."""
    removed: dict[Key, int] = {}
    entries = {entry.key: entry for entry in (*change.after, *change.before)}
    for gang, lost_members in change.losses_by_gang.items():
        for key, count in lost_members.items():
            removed[key] = removed.get(key, 0) + count
        if entries[gang].generation == generation and gang not in old:
            yield f"gang {gang} of the new generation loses members"
    for gang in change.gains_by_gang:
        if entries[gang].generation != generation:
            yield f"gang {gang} of an old generation gains members (COH-164)"
    for entry in (*change.new_anchors, *change.new_non_anchors):
        if entry.generation != generation:
            yield f"gang {entry.key} is new and of another generation than the update"
    if removed != dict(change.batch.counts):
        yield f"the write takes {_described(removed)} and adds {_described(change.batch.counts)}"


def _joining_replicas(change: LayoutChange) -> Iterator[str]:
    """Yield errors for replicas of scaling groups that join an existing gang."""
    for gang, gained in change.gains_by_gang.items():
        for key in gained:
            if key.kind == "group":
                yield f"gang {gang} gains replicas of {key.name} after it was created"


def _anchor_problems(
    change: LayoutChange,
    in_scope: Mapping[Key, Component],
    settled: Callable[[Entry, Key], bool],
    unavailable: Mapping[Key, int],
    *,
    is_ahead: bool,
) -> Iterator[str]:
    """Yield the errors of a sub-step that opens an anchor: the anchor must hold the minimum of every component in
    scope, and the sub-step may not do anything else. The anchor may hold less if members that it takes over were
    unavailable (COH-213), or if some members were of the current template before the update (`is_ahead`), because
    components may then have progressed differently (COH-Q33)."""
    if len(change.new_anchors) > 1:
        yield f"{len(change.new_anchors)} anchors are opened at once"
    if change.new_non_anchors or change.gains_by_gang:
        yield "more than an anchor is made in the sub-step that opens it"
    for entry in change.new_anchors:
        for key, component in in_scope.items():
            unsettled = sum(e.size(key) for e in change.before if not settled(e, key))
            limit = min(component.minimum, unsettled)
            may_be_smaller = is_ahead or any(unavailable.values())
            if entry.size(key) > limit or (entry.size(key) < limit and not may_be_smaller):
                yield f"anchor {entry.key} holds {entry.size(key)} of {key.name}, whose minimum is {component.minimum}"


def _tail_problems(change: LayoutChange, generation: str) -> Iterator[str]:
    """Yield the errors of a sub-step without a new anchor: each tail must hold one replica, and pods must join the
    newest anchor of the update."""
    for entry in change.new_non_anchors:
        if sum(map(entry.size, entry.components())) != 1 or any(key.kind == "clique" for key in entry.components()):
            yield f"gang {entry.key} is no anchor and holds {entry.content()}, not one replica of one scaling group"
    anchors = [entry.key for entry in change.after if entry.anchor and entry.generation == generation]
    if change.new_non_anchors and not anchors:
        yield "replicas get gangs of their own before the update has opened an anchor"
    for gang in change.gains_by_gang:
        if anchors and gang != _newest(anchors):
            yield f"pods join {gang}, and not the newest anchor {_newest(anchors)}"


def _over_budget(
    change: LayoutChange, in_scope: Mapping[Key, Component], unavailable: Mapping[Key, int]
) -> Iterator[str]:
    for key, count in sorted(change.batch.counts.items()):
        component = in_scope.get(key)
        if component is None:
            continue
        budget = component.unavailable
        if count > budget and count > unavailable.get(key, 0):
            yield f"{count} of {key.name} are replaced at once, and maxUnavailable is {budget}"


def _newest(anchors: Sequence[str]) -> str:
    """Return the anchor that was created last, by the time at the end of its name (COH-036) or otherwise by the order
    in the map."""
    times = {name: decimal(name.rpartition("-")[2]) for name in anchors}
    known_times = {name: timestamp for name, timestamp in times.items() if timestamp is not None}
    return max(known_times, key=known_times.__getitem__) if len(known_times) == len(times) else anchors[-1]


def _described(counts: Mapping[Key, int]) -> str:
    return "{" + ", ".join(f"{count} {key.name}" for key, count in sorted(counts.items()) if count) + "}"
