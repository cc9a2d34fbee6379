"""A layout in which each member is in exactly one gang (spec COH-059, COH-178, COH-215).

A layout needs repair if somebody edited the PodGangMap, or if a component was scaled just before its update began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from reference_impl.plan.coherent.components import Component, cliques, groups
from reference_impl.plan.coherent.layout import Entry, Key, Kind, Layout, compact, pods_of_clique, tail
from reference_impl.plan.coherent.naming import NameSource, order
from reference_impl.plan.coherent.observed import Observed
from reference_impl.plan.coherent.slots import slots


def violations(layout: Layout, components: Sequence[Component]) -> list[str]:
    """How the layout fails to hold each member of each component once."""
    result = []
    for component in cliques(components):
        held = sum(pods_of_clique(layout, component.key.name).values())
        if held != component.replicas:
            result.append(f"{component.key}: {held} pods in gangs, {component.replicas} expected")
    for component in groups(components):
        indices = sorted(index for entry in layout for index in entry.groups.get(component.key.name, ()))
        if indices != list(range(component.replicas)):
            result.append(
                f"{component.key}: replica indices {indices} in gangs, 0 to {component.replicas - 1} expected"
            )
    return result


def is_sound(layout: Layout, components: Sequence[Component]) -> bool:
    """Whether the layout holds each member of all components once, and nothing else: it needs no repair."""
    known = {component.key for component in components}
    return not violations(layout, components) and all(_restricted(entry, known) == entry for entry in layout)


def repaired(
    layout: Layout,
    components: Sequence[Component],
    observed: Observed,
    generation: str,
    names: NameSource,
    live: Layout = (),
) -> Layout:
    """The layout with each member of all components in one gang, and with no other components. `live` is the layout of
    the gangs that exist (`adoption.adopted`): a member that the layout has lost returns to its gang of there."""
    work = _Repair(layout, observed, generation, names, live)
    for component in groups(components):
        work.assign_indices(component)
    for component in cliques(components):
        work.assign_pods(component)
    known = {component.key for component in components}
    return compact(_restricted(entry, known) for entry in work.entries.values())


def _restricted(entry: Entry, known: set[Key]) -> Entry:
    pods = {name: count for name, count in entry.cliques.items() if Key(Kind.CLIQUE, name) in known}
    indices = {name: held for name, held in entry.groups.items() if Key(Kind.GROUP, name) in known}
    return replace(entry, cliques=pods, groups=indices)


class _Repair:
    """The entries of a layout under repair, by gang."""

    def __init__(self, layout: Layout, observed: Observed, generation: str, names: NameSource, live: Layout) -> None:
        self.entries = {entry.name: entry for entry in layout}
        self._observed = observed
        self._generation = generation
        self._names = names
        self._live = {entry.name: entry for entry in live}

    @property
    def layout(self) -> Layout:
        return tuple(self.entries.values())

    def assign_indices(self, component: Component) -> None:
        """Put each replica of a scaling group into one gang, and remove those beyond `spec.replicas`."""
        group = component.key.name
        holders: dict[int, list[str]] = {}
        for entry in self.layout:
            for index in entry.groups.get(group, ()):
                holders.setdefault(index, []).append(entry.name)
        gangs = [self._gang_of(component.key, index, holders.get(index, [])) for index in range(component.replicas)]
        fresh = iter(self._names(gangs.count(None)))
        held: dict[str, list[int]] = {}
        for index, gang in enumerate(gangs):
            if gang is not None:
                held.setdefault(gang, []).append(index)
        for name, entry in self.entries.items():
            self.entries[name] = entry.with_indices(group, held.get(name, ()))
        for index, gang in enumerate(gangs):
            if gang is None:
                entry = tail(next(fresh), self._generation, group, index)
                self.entries[entry.name] = entry

    def _gang_of(self, key: Key, index: int, holders: list[str]) -> str | None:
        """The gang that holds a replica; of several `holders` the one where it runs, else the newest."""
        found = self._observed.replicas.get(key.name, {}).get(index)
        if found is not None and (found.gang in holders or (not holders and self._restored(found.gang))):
            return found.gang
        return holders[-1] if holders else None

    def assign_pods(self, component: Component) -> None:
        """Give a clique as many places as it has replicas."""
        key = component.key
        surplus = sum(entry.count(key) for entry in self.layout) - component.replicas
        if surplus > 0:
            found = slots(self.layout, key, self._observed, self._generation)
            for slot in sorted(found, key=lambda slot: (slot.available, slot.done))[:surplus]:
                self._add(key, slot.gang, -1)
            return
        for gang, pods in self._homeless(key).items():
            returned = min(pods, -surplus)
            if returned and self._restored(gang):
                self._add(key, gang, returned)
                surplus += returned
        if surplus < 0:
            self._add(key, self._home(key), -surplus)

    def _homeless(self, key: Key) -> dict[str, int]:
        """Gang → pods of a clique that are in the gang, and for which the layout has no place there."""
        present = Counter(pod.gang for pod in self._observed.pods.get(key.name, ()))
        for entry in self.layout:
            present[entry.name] -= entry.count(key)
        return {gang: count for gang, count in sorted(present.items()) if count > 0}

    def _home(self, key: Key) -> str:
        """The gang that gets places for which there are no pods: the newest one that holds the clique (COH-245). If it
        is an old one, nothing is created in it, and the update moves these places first (COH-178)."""
        holders = [entry.name for entry in self.layout if entry.count(key)]
        candidates = holders or [entry.name for entry in self.layout if entry.anchor]
        if candidates:
            return candidates[-1]
        (name,) = self._names(1)
        self.entries[name] = Entry(name, self._generation, anchor=True)
        return name

    def _add(self, key: Key, gang: str, pods: int) -> None:
        entry = self.entries[gang]
        self.entries[gang] = entry.with_pods(key.name, entry.count(key) + pods)

    def _restored(self, gang: str) -> bool:
        """Whether a gang is in the layout, or has returned to it from the live gangs."""
        if gang not in self.entries and gang in self._live:
            lost = replace(self._live[gang], cliques={}, groups={})
            entries = sorted([*self.entries.values(), lost], key=lambda entry: order(entry.name))
            self.entries = {entry.name: entry for entry in entries}
        return gang in self.entries
