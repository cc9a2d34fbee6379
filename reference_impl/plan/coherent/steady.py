"""Between updates: scale decisions are made in the `podGangMapping` of each component, and the layout is rebuilt from
them (spec COH-041, COH-240 to COH-252)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from reference_impl.plan.coherent.layout import Entry, Key, Kind, Layout, anchors, compact
from reference_impl.plan.coherent.naming import NameSource, newest, order
from reference_impl.plan.coherent.observed import ObservedPod

PodMapping = Mapping[str, int]
"""`podGangMapping` of a standalone clique: gang → pods."""
IndexMapping = Mapping[str, Sequence[int]]
"""`podGangMapping` of a scaling group: gang → replica indices."""


def rebuilt(
    layout: Layout,
    pods: Mapping[str, PodMapping | None],
    indices: Mapping[str, IndexMapping | None],
    generation: str,
    live: Layout = (),
) -> Layout:
    """The layout that the mappings of all components describe (COH-252).

    `pods` and `indices` are the mappings by template and config name; None is a mapping that has not been written yet,
    whose component keeps what the layout says (COH-272). A component that is not named holds nothing any more. Gangs
    keep their generation. A gang that only a mapping names was made by a scale-out, unless it is `live`
    (`adoption.adopted`): then somebody has removed it from the map.
    """
    held = {entry.name: replace(entry, cliques={}, groups={}) for entry in (*live, *layout)}
    for clique, mapping in pods.items():
        counts = {e.name: e.count(Key(Kind.CLIQUE, clique)) for e in layout} if mapping is None else mapping
        for gang, count in counts.items():
            held[gang] = held.get(gang, Entry(gang, generation, anchor=True)).with_pods(clique, count)
    for group, parts in indices.items():
        places = {e.name: e.groups.get(group, ()) for e in layout} if parts is None else parts
        for gang, own in places.items():
            held[gang] = held.get(gang, Entry(gang, generation)).with_indices(group, own)
    return compact(sorted(held.values(), key=lambda entry: order(entry.name)))


def scaled_group(mapping: IndexMapping, replicas: int, names: NameSource) -> dict[str, tuple[int, ...]]:
    """The mapping of a scaling group with this number of replicas.

    New replicas get the lowest free indices and a gang each (COH-240). Of the others, those with the highest indices
    are removed: what remains is always `0 … replicas - 1`, also where the order of the gangs would leave a gap
    (COH-243). An index that two gangs hold stays in the older one.
    """
    result: dict[str, tuple[int, ...]] = {}
    seen: set[int] = set()
    for gang in sorted(mapping, key=order):
        held = {index for index in mapping[gang] if index < replicas} - seen
        seen |= held
        if held:
            result[gang] = tuple(sorted(held))
    missing = [index for index in range(replicas) if index not in seen]
    return result | {name: (index,) for name, index in zip(names(len(missing)), missing, strict=True)}


def scaled_clique(
    mapping: PodMapping,
    replicas: int,
    pods: Sequence[ObservedPod],
    layout: Layout,
    generation: str,
    names: NameSource,
) -> dict[str, int]:
    """The mapping of a standalone clique with this number of replicas.

    New pods join the newest gang that holds the clique (COH-245). On scale-in, places without a pod are removed first,
    then those of the pods that are deleted first, whatever their gang (COH-246).
    """
    result = {gang: count for gang, count in mapping.items() if count > 0}
    total = sum(result.values())
    if replicas > total:
        gang = newest(result) or _gang_of_first_pods(layout, generation) or names(1)[0]
        return result | {gang: result.get(gang, 0) + replicas - total}
    for gang in _removed_first(result, pods)[: total - replicas]:
        result[gang] -= 1
    return {gang: count for gang, count in result.items() if count > 0}


def _removed_first(mapping: PodMapping, pods: Sequence[ObservedPod]) -> list[str]:
    """The gang of each place of a clique, in the order in which the places are removed."""
    lost: list[str] = []
    ranked: list[tuple[tuple[float, ...], str, str]] = []
    for gang, count in mapping.items():
        found = sorted((pod.rank, pod.name, gang) for pod in pods if pod.gang == gang)
        ranked += found[max(0, len(found) - count) :]
        lost += [gang] * (count - len(found))
    return sorted(lost, key=order, reverse=True) + [gang for *_, gang in sorted(ranked)]


def _gang_of_first_pods(layout: Layout, generation: str) -> str | None:
    """The gang of the first pods of a clique that had none: the newest anchor of the present generation."""
    return newest(entry.name for entry in anchors(layout) if entry.generation == generation)
