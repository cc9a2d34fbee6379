"""The fitting of a layout, so that each member is in exactly one gang (spec GM-38 to GM-42, COH-059, COH-178, COH-215).

This is necessary after the scaling of a clique or a scaling group, and after a manual change to the PodGangMap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from reference_impl.plan.components import Component, Key, Kind, cliques, groups
from reference_impl.plan.epochs import Epochs, sort_key
from reference_impl.plan.layout import Entry, Layout, Role, anchors, first_layout, pods_of_clique, tidy_layout
from reference_impl.plan.observed import Observed


def violations(layout: Layout, components: Sequence[Component]) -> list[str]:
    """Return the violations of the rule that a layout holds each member of each component exactly once."""
    result = []
    for component in cliques(components):
        pods = sum(pods_of_clique(layout, component.key.name).values())
        if pods != component.replicas:
            result.append(f"{component.key}: {pods} pods in gangs, {component.replicas} expected")
    for component in groups(components):
        indices = sorted(index for entry in layout for index in entry.groups.get(component.key.name, ()))
        if indices != list(range(component.replicas)):
            result.append(
                f"{component.key}: replica indices {indices} in gangs, 0 to {component.replicas - 1} expected"
            )
    return result


def fits(layout: Layout, components: Sequence[Component]) -> bool:
    """Return whether the layout holds each member of all components exactly once and nothing else, with standalone pods
    only in anchors, dependencies only on existing entries, and an entry for replicas that scaling adds."""
    component_keys = {component.key for component in components}
    return (
        not violations(layout, components)
        and all(_only_components(entry, component_keys) == entry for entry in layout)
        and not any(entry.cliques for entry in layout if not entry.anchor)
        and tidy_layout(layout) == layout
        and (bool(anchors(layout)) or not layout)
        and (not layout or not groups(components) or any(entry.role is Role.SCALE_OUT for entry in layout))
    )


def fitted_layout(
    layout: Layout,
    components: Sequence[Component],
    observed: Observed,
    generation: str,
    epochs: Epochs,
    live: Layout = (),
) -> Layout:
    """Return the layout with each member of all components in one gang, and without any other component.

    `live` is the layout of the existing gangs. A member that the layout has lost returns to the gang that holds it in
    `live`, and an entry keeps the role that its gangs have. All other missing members are new: a scaling group replica
    joins the entry for replicas that scaling adds, and a pod joins the newest anchor. If there is no anchor, the result
    is the layout of a new replica.
    """
    fitter = _LayoutFitter(layout, observed, generation, epochs, live)
    if not any(entry.anchor for entry in fitter.entries.values()):
        fitter.restore()
    if not any(entry.anchor for entry in fitter.entries.values()):
        return first_layout(components, generation, epochs)
    for component in groups(components):
        fitter.assign_indices(component)
    for component in cliques(components):
        fitter.assign_pods(component)
    if groups(components):
        fitter.ensure_scale_out_entry()
    component_keys = {component.key for component in components}
    return tidy_layout(_only_components(entry, component_keys) for entry in fitter.entries.values())


def _only_components(entry: Entry, component_keys: set[Key]) -> Entry:
    pods = {name: count for name, count in entry.cliques.items() if Key(Kind.CLIQUE, name) in component_keys}
    indices = {
        name: group_indices for name, group_indices in entry.groups.items() if Key(Kind.GROUP, name) in component_keys
    }
    return replace(entry, cliques=pods, groups=indices)


class _LayoutFitter:
    """The entries of a layout, by key, while members are being assigned."""

    def __init__(self, layout: Layout, observed: Observed, generation: str, epochs: Epochs, live: Layout) -> None:
        self._observed, self._generation, self._epochs = observed, generation, epochs
        self._live = {entry.key: entry for entry in live}
        self.entries = {entry.key: self._with_live_role(entry) for entry in layout}

    def _with_live_role(self, entry: Entry) -> Entry:
        live = self._live.get(entry.key)
        role = live.role if live is not None else entry.role
        return replace(entry, role=role, cliques=entry.cliques if role is Role.ANCHOR else {})

    def restore(self) -> None:
        """Restore all live entries that the layout has lost, without their members."""
        for key in self._live:
            self._ensure_entry(key)

    def assign_indices(self, component: Component) -> None:
        """Assign each replica of a scaling group to one entry, and remove replicas beyond `spec.replicas`."""
        group = component.key.name
        holders: dict[int, list[str]] = {}
        for entry in self.entries.values():
            for index in entry.groups.get(group, ()):
                holders.setdefault(index, []).append(entry.key)
        indices_by_entry: dict[str, list[int]] = {}
        for index in range(component.replicas):
            key = self._entry_of(component.key, index, holders.get(index, [])) or self.ensure_scale_out_entry()
            indices_by_entry.setdefault(key, []).append(index)
        for key, entry in self.entries.items():
            self.entries[key] = entry.with_indices(group, indices_by_entry.get(key, ()))

    def _entry_of(self, key: Key, index: int, holders: list[str]) -> str | None:
        """Return the entry that holds a replica, or None if there is no such entry. If there are several `holders`,
        choose the entry where the replica runs, or else the newest."""
        replica = self._observed.replicas.get(key.name, {}).get(index)
        if replica is not None and (replica.entry in holders or (not holders and self._ensure_entry(replica.entry))):
            return replica.entry
        return holders[-1] if holders else None

    def ensure_scale_out_entry(self) -> str:
        """Return the newest entry for replicas that scaling adds, and create the entry if it does not exist (GM-40,
        GM-42). A new entry depends on the oldest anchor of its own generation (GM-155)."""
        for entry in reversed(self.entries.values()):
            if entry.role is Role.SCALE_OUT:
                return entry.key
        (key,) = self._epochs(1)
        anchor_keys = [
            candidate.key
            for candidate in self.entries.values()
            if candidate.anchor and candidate.generation == self._generation
        ]
        self.entries[key] = Entry(key, self._generation, Role.SCALE_OUT, depends_on=tuple(anchor_keys[:1]))
        return key

    def assign_pods(self, component: Component) -> None:
        """Give a clique as many places as it has replicas. Surplus places are removed from the newest entry first
        (GM-39)."""
        key = component.key
        surplus = sum(entry.count(key) for entry in self.entries.values()) - component.replicas
        for entry in self._entries_newest_first():
            if surplus > 0 and (removed_count := min(surplus, entry.count(key))):
                self._add(key, entry.key, -removed_count)
                surplus -= removed_count
        for entry_key, pods in self._pods_without_place(key).items():
            returned_count = min(pods, -surplus)
            if returned_count > 0 and self._ensure_entry(entry_key):
                self._add(key, entry_key, returned_count)
                surplus += returned_count
        if surplus < 0:
            self._add(key, self._default_anchor(key), -surplus)

    def _entries_newest_first(self) -> list[Entry]:
        """Return the entries in the order in which they give up places."""
        return list(self.entries.values())[::-1]

    def _pods_without_place(self, key: Key) -> dict[str, int]:
        """Return, for each entry, the number of a clique's pods that exceed the places in the layout."""
        surplus = Counter(pod.entry for pod in self._observed.pods.get(key.name, ()))
        for entry in self.entries.values():
            surplus[entry.key] -= entry.count(key)
        return {entry: count for entry, count in sorted(surplus.items()) if count > 0}

    def _default_anchor(self, key: Key) -> str:
        """Return the entry that gets places for which there are no pods. It is the newest anchor that holds the clique
        (COH-245), or else the newest anchor. If the anchor is outdated, no pods are created in it, and the update moves
        these places first (COH-178)."""
        all_anchors = [entry for entry in self.entries.values() if entry.anchor]
        return (next((anchor for anchor in reversed(all_anchors) if anchor.count(key)), None) or all_anchors[-1]).key

    def _add(self, key: Key, entry: str, pods: int) -> None:
        current = self.entries[entry]
        self.entries[entry] = current.with_pods(key.name, current.count(key) + pods)

    def _ensure_entry(self, key: str) -> bool:
        """Return whether an entry is in the layout, after restoring it from the live gangs if necessary."""
        if key not in self.entries and key in self._live:
            restored = replace(self._live[key], cliques={}, groups={})
            entries = sorted([*self.entries.values(), restored], key=lambda entry: sort_key(entry.key))
            self.entries = {entry.key: entry for entry in entries}
        return key in self.entries
