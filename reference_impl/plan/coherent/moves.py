"""A batch of members moves from their gangs to new ones, in one write (spec COH-121, COH-122, COH-163, COH-165)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from reference_impl.plan.coherent.budget import Batch
from reference_impl.plan.coherent.layout import Entry, Kind, Layout, compact, tail
from reference_impl.plan.coherent.naming import NameSource


def moved(
    layout: Layout, batch: Batch, join: Entry | None, generation: str, names: NameSource, *, opens: bool
) -> tuple[Layout, tuple[str, ...]]:
    """The layout after a sub-step, and the gangs that the sub-step waits for.

    If it `opens` a step, all members move into a new anchor. Otherwise standalone pods join the anchor `join`, and each
    replica of a scaling group gets a gang of its own.
    """
    drained = _drained(layout, batch)
    pods = {key.name: len(chosen) for key, chosen in batch.items() if key.kind is Kind.CLIQUE and chosen}
    indices = {
        key.name: tuple(sorted(slot.index for slot in chosen))
        for key, chosen in batch.items()
        if key.kind is Kind.GROUP and chosen
    }
    if opens:
        (name,) = names(1)
        return compact([*drained, Entry(name, generation, pods, indices, anchor=True)]), (name,)
    single = [(group, index) for group, chosen in indices.items() for index in chosen]
    new = [tail(name, generation, *one) for name, one in zip(names(len(single)), single, strict=True)]
    if pods:
        assert join is not None, "standalone pods have no gang to join"
        drained = tuple(_joined(entry, pods) if entry.name == join.name else entry for entry in drained)
    waiting = tuple(entry.name for entry in new) or ((join.name,) if join is not None else ())
    return compact([*drained, *new]), waiting


def _drained(layout: Layout, batch: Batch) -> Layout:
    """The layout without the members of the batch."""
    entries = list(layout)
    for key, chosen in batch.items():
        lost = Counter(slot.gang for slot in chosen)
        taken = {slot.index for slot in chosen}
        for position, entry in enumerate(entries):
            if entry.name not in lost:
                continue
            if key.kind is Kind.CLIQUE:
                entries[position] = entry.with_pods(key.name, entry.count(key) - lost[entry.name])
            else:
                kept = set(entry.groups.get(key.name, ())) - taken
                entries[position] = entry.with_indices(key.name, kept)
    return tuple(entries)


def _joined(entry: Entry, pods: dict[str, int]) -> Entry:
    counts = Counter(entry.cliques) + Counter(pods)
    return replace(entry, cliques=dict(counts))
