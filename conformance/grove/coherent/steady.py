"""The changes that scaling may make to a replica's gangs while no update is running (coherent.md, section 5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.grove.coherent.change import LayoutChange
from conformance.grove.coherent.model import Key, broken_partition, indices
from conformance.grove.fields import decimal


def problems(change: LayoutChange, sizes: Mapping[Key, int]) -> list[str]:
    """Return the reasons why scaling to `sizes` may not make a change; empty if it may. Implementations may choose
    which pods of a standalone clique are removed, and the order in which gangs lose replicas, as long as the replicas
    with the highest indices are removed."""
    return [*_growth_problems(change), *_new_gang_problems(change), *_replica_problems(change, sizes)]


def _growth_problems(change: LayoutChange) -> Iterator[str]:
    """Yield errors unless only pods of standalone cliques join existing gangs, and each joins the newest gang that
    holds its clique (COH-245)."""
    for gang, gained in change.gains_by_gang.items():
        for key in gained:
            if key.kind == "group":
                yield f"gang {gang} gains replicas of {key.name}: each has a gang of its own (COH-240)"
            elif (newest := _newest_with(change, key)) not in ("", gang):
                yield f"pods of {key.name} join {gang}, and not {newest}, the newest gang that holds the clique"


def _new_gang_problems(change: LayoutChange) -> Iterator[str]:
    for entry in (*change.new_anchors, *change.new_non_anchors):
        if entry.anchor:
            yield f"gang {entry.key} is new and an anchor"
        if any(key.kind == "clique" for key in entry.components()):
            yield f"gang {entry.key} is new and holds pods of a standalone clique"
        if sum(map(entry.size, entry.components())) != 1:
            yield f"gang {entry.key} is new and holds {entry.content()}, not one replica"


def _replica_problems(change: LayoutChange, sizes: Mapping[Key, int]) -> Iterator[str]:
    yield from broken_partition(change.after, sizes)
    for key, size in sorted(sizes.items()):
        if key.kind != "group":
            continue
        old_indices, new_indices = set(indices(change.before, key.name)), set(indices(change.after, key.name))
        moved_indices = [index for index in sorted(old_indices & new_indices) if _has_moved(change, key.name, index)]
        if moved_indices:
            yield f"replicas {moved_indices} of {key.name} are in another gang than before"
        if size > len(old_indices) and (lost_indices := sorted(old_indices - new_indices)):
            yield f"replicas {lost_indices} of {key.name} are removed by a scale-out"


def _has_moved(change: LayoutChange, group: str, index: int) -> bool:
    """Return whether a replica of a scaling group is in a different gang than before."""
    old_holders, new_holders = (
        {entry.key for entry in layout if index in entry.groups.get(group, ())}
        for layout in (change.before, change.after)
    )
    return old_holders != new_holders


def _newest_with(change: LayoutChange, key: Key) -> str:
    """Return the gang with the highest numeric suffix among the gangs that hold pods of a clique; empty if not all
    names have such a suffix."""
    holding_gangs = [entry.key for entry in change.before if entry.size(key)]
    suffixes = {name: name.rpartition("-")[2] for name in holding_gangs}
    numbers_by_gang = {
        name: suffix_number for name, suffix in suffixes.items() if (suffix_number := decimal(suffix)) is not None
    }
    if len(numbers_by_gang) == 1 and len(holding_gangs) == 1:
        return holding_gangs[0]
    return (
        max(numbers_by_gang, key=lambda name: numbers_by_gang[name])
        if len(numbers_by_gang) == len(holding_gangs) and holding_gangs
        else ""
    )
