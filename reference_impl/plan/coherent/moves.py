"""The move of a batch of members from their gangs to new gangs, in one write (spec COH-121, COH-122, COH-163,
GM-155)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from reference_impl.plan.coherent.budget import Batch
from reference_impl.plan.components import Kind
from reference_impl.plan.epochs import Epochs
from reference_impl.plan.layout import Entry, Layout, Role, tidy_layout


def layout_after_move(
    layout: Layout,
    update_entries: Layout,
    batch: Batch,
    join: Entry | None,
    generation: str,
    epochs: Epochs,
    *,
    opens: bool,
) -> tuple[Layout, tuple[str, ...]]:
    """Return the layout after a sub-step, and the entries that the sub-step waits for.

    If the sub-step `opens` a step, all members move into a new anchor. In any other sub-step, standalone pods join the
    anchor `join`, and each scaling group replica gets a separate gang. The entries of an update form a chain in which
    each new entry depends on the newest one before it. `update_entries` are the earlier entries of the update.
    """
    remaining_layout = _without_batch(layout, batch)
    pods = {
        key.name: len(chosen_slots) for key, chosen_slots in batch.items() if key.kind is Kind.CLIQUE and chosen_slots
    }
    indices = {
        key.name: tuple(sorted(slot.index for slot in chosen_slots))
        for key, chosen_slots in batch.items()
        if key.kind is Kind.GROUP and chosen_slots
    }
    earlier_keys = [entry.key for entry in update_entries if not entry.is_empty]
    depends_on = tuple(earlier_keys[-1:])
    if opens:
        (key,) = epochs(1)
        return tidy_layout([*remaining_layout, Entry(key, generation, Role.ANCHOR, pods, indices, depends_on)]), (key,)
    if pods:
        assert join is not None, "standalone pods have no gang to join"
        remaining_layout = tuple(
            _with_joined_pods(entry, pods) if entry.key == join.key else entry for entry in remaining_layout
        )
    if not indices:
        return tidy_layout(remaining_layout), (join.key,) if join is not None else ()
    (key,) = epochs(1)
    return tidy_layout([*remaining_layout, Entry(key, generation, Role.TAIL, groups=indices, depends_on=depends_on)]), (
        key,
    )


def _without_batch(layout: Layout, batch: Batch) -> Layout:
    """Return the layout without the members of the batch."""
    entries = list(layout)
    for key, chosen_slots in batch.items():
        lost_counts = Counter(slot.entry for slot in chosen_slots)
        lost_indices = {slot.index for slot in chosen_slots}
        for position, entry in enumerate(entries):
            if entry.key not in lost_counts:
                continue
            if key.kind is Kind.CLIQUE:
                entries[position] = entry.with_pods(key.name, entry.count(key) - lost_counts[entry.key])
            else:
                remaining = set(entry.groups.get(key.name, ())) - lost_indices
                entries[position] = entry.with_indices(key.name, remaining)
    return tuple(entries)


def _with_joined_pods(entry: Entry, pods: dict[str, int]) -> Entry:
    counts = Counter(entry.cliques) + Counter(pods)
    return replace(entry, cliques=dict(counts))
