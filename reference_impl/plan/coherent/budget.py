"""The members that an update takes down next, within `maxUnavailable` (spec COH-152, COH-153, COH-212, COH-213)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reference_impl.plan.coherent.slots import Slot
from reference_impl.plan.components import Component, Key

Slots = Mapping[Key, Sequence[Slot]]
Batch = dict[Key, list[Slot]]


def affordable_batch(
    components: Sequence[Component], slots_by_key: Slots, counts: Mapping[Key, int], *, whole: bool
) -> Batch:
    """Return the members of the next batch. `counts` specifies the number of members of each component. Unavailable
    members are taken first, and only as many available members as the budget permits. If the batch must be `whole`, it
    includes either all its available members or no available members.

    Unavailable members may always be taken, since this does not reduce availability. A workload that never works can
    therefore be updated (COH-213). While any component has fewer available members than it must keep, no available
    member of any component is taken (COH-212).
    """
    batch = {component.key: _chosen_slots(component, slots_by_key, counts) for component in components}
    if any(shortage_reason(component, slots_by_key) for component in components):
        return _unavailable_slots(batch)
    if whole:
        fits = all(count_available(batch[c.key]) <= _spare_members(c, slots_by_key) for c in components)
        return batch if fits else _unavailable_slots(batch)
    return {
        component.key: _limit_available(batch[component.key], max(0, _spare_members(component, slots_by_key)))
        for component in components
    }


def shortage_reason(component: Component, slots_by_key: Slots) -> str | None:
    """Return why no available member may be taken, or None if the component has at least as many available members as
    it must keep."""
    spare_count = _spare_members(component, slots_by_key)
    return None if spare_count >= 0 else _message(component, slots_by_key)


def exhaustion_reason(components: Sequence[Component], slots_by_key: Slots, counts: Mapping[Key, int]) -> str:
    """Return a message that names the components whose budget is too small for any member to be taken."""
    short_components = [
        c
        for c in components
        if count_available(_chosen_slots(c, slots_by_key, counts)) > _spare_members(c, slots_by_key)
    ]
    return "; ".join(_message(component, slots_by_key) for component in short_components or components)


def count_available(slots: Sequence[Slot]) -> int:
    """Return the number of available members in these slots."""
    return sum(slot.available for slot in slots)


def _chosen_slots(component: Component, slots_by_key: Slots, counts: Mapping[Key, int]) -> list[Slot]:
    return [slot for slot in slots_by_key[component.key] if not slot.has_current_template][: counts[component.key]]


def _spare_members(component: Component, slots_by_key: Slots) -> int:
    """Return the number of available members that may be taken down. The number is negative if too few members are
    available."""
    return count_available(slots_by_key[component.key]) - component.floor


def _message(component: Component, slots_by_key: Slots) -> str:
    return (
        f"{component.key}: {count_available(slots_by_key[component.key])} of {component.replicas} available, "
        f"at least {component.floor} have to stay available"
    )


def _unavailable_slots(batch: Batch) -> Batch:
    return {key: [slot for slot in chosen_slots if not slot.available] for key, chosen_slots in batch.items()}


def _limit_available(chosen_slots: list[Slot], limit: int) -> list[Slot]:
    """Return the chosen slots with at most `limit` available slots."""
    unavailable_slots = [slot for slot in chosen_slots if not slot.available]
    return unavailable_slots + [slot for slot in chosen_slots if slot.available][:limit]
