"""Mutants in the objects of coherent sets: maps, gangs, mappings, admission."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mutants.profiles.admission_served_kinds import spoil
from mutants.registry import mutant
from mutants.replacement import replace
from reference_impl.admission import scaling
from reference_impl.admission.errors import FieldError
from reference_impl.admission.result import AdmissionResult
from reference_impl.admission.rules import coherent as rules
from reference_impl.api.models import PodCliqueSet, PodGang
from reference_impl.control import coherent as control
from reference_impl.plan import defaults, labels, update_progress
from reference_impl.plan.coherent import gangs, maps, steady
from reference_impl.plan.coherent.bootstrap import bootstrap
from reference_impl.plan.coherent.components import Component
from reference_impl.plan.coherent.layout import Entry, Layout
from reference_impl.plan.coherent.maps import ReplicaMap
from reference_impl.plan.coherent.naming import NameSource, order
from reference_impl.plan.coherent.steady import IndexMapping
from reference_impl.plan.gangs import NO_TOPOLOGY, PlannedGang
from reference_impl.plan.topology import Topology

CRD = "podgangmaps.grove.io"


@mutant("anchor-holds-all", "operator", "puts all replicas of scaling groups into the first gang", "COHR-011")
def _anchor_holds_all() -> None:
    def one_gang(components: Iterable[Component], generation: str, names: NameSource) -> Layout:
        found = bootstrap(components, generation, names)
        groups: dict[str, tuple[int, ...]] = {}
        for entry in found:
            for group, own in entry.groups.items():
                groups[group] = tuple(sorted({*groups.get(group, ()), *own}))
        return (dataclasses.replace(found[0], groups=groups),) if found else found

    replace(control, "bootstrap", one_gang)


@mutant("anchors-unmarked", "operator", "does not mark anchors", "COHR-013")
def _anchors_unmarked() -> None:
    replace(gangs, "own_labels", lambda entry: {labels.GENERATION_HASH: entry.generation})


@mutant("generation-label-moves-on", "operator", "gives all gangs the present generation hash", "COHR-035")
def _generation_label_moves_on() -> None:
    right = gangs.planned

    def planned(
        pcs: PodCliqueSet, index: int, entry: Entry, found: PodGang | None, topology: Topology = NO_TOPOLOGY
    ) -> PlannedGang:
        present = dataclasses.replace(entry, generation=update_progress.generation(pcs))
        return right(pcs, index, present, found, topology)

    replace(gangs, "planned", planned)


@mutant("minimums-kept", "operator", "never releases the minimum of standalone cliques", "COHR-017")
def _minimums_kept() -> None:
    right = gangs.planned

    def planned(
        pcs: PodCliqueSet, index: int, entry: Entry, found: PodGang | None, topology: Topology = NO_TOPOLOGY
    ) -> PlannedGang:
        return right(pcs, index, entry, None, topology)

    replace(gangs, "planned", planned)


@mutant("all-minimums-released", "operator", "releases the minimum of scaling groups, too", "COHR-017")
def _all_minimums_released() -> None:
    right = gangs.planned

    def planned(
        pcs: PodCliqueSet, index: int, entry: Entry, found: PodGang | None, topology: Topology = NO_TOPOLOGY
    ) -> PlannedGang:
        whole = right(pcs, index, entry, found, topology)
        if found is None or not gangs.ever_scheduled(found):
            return whole
        return dataclasses.replace(whole, minimums=dict.fromkeys(whole.minimums, 0))

    replace(gangs, "planned", planned)


@mutant("anchors-last", "operator", "lets anchors wait for the gangs that depend on them", "COHR-020")
def _anchors_last() -> None:
    def dependencies(layout: Layout, entry: Entry) -> list[str]:
        return [other.name for other in layout if not other.anchor] if entry.anchor else []

    replace(gangs, "dependencies", dependencies)


@mutant("map-without-owner", "operator", "creates PodGangMaps that nobody controls", "COHR-010")
def _map_without_owner() -> None:
    right = maps.manifest

    def manifest(pcs: PodCliqueSet, index: int, wanted: ReplicaMap) -> dict[str, Any]:
        found = right(pcs, index, wanted)
        del found["metadata"]["ownerReferences"]
        return found

    replace(maps, "manifest", manifest)


@mutant("added-replicas-share-a-gang", "operator", "puts added replicas into a gang that exists", "COHR-080")
def _added_replicas_share_a_gang() -> None:
    right = steady.scaled_group

    def scaled_group(mapping: IndexMapping, replicas: int, names: NameSource) -> dict[str, tuple[int, ...]]:
        found = right(mapping, replicas, names)
        new = {index for gang, own in found.items() if gang not in mapping for index in own}
        kept = {gang: own for gang, own in found.items() if gang in mapping}
        if not new or not kept:
            return found
        first = min(kept, key=order)
        return {**kept, first: tuple(sorted({*kept[first], *new}))}

    replace(steady, "scaled_group", scaled_group)


@mutant("first-replica-removed", "operator", "removes the replicas with the lowest indices", "COHR-082")
def _first_replica_removed() -> None:
    right = steady.scaled_group

    def scaled_group(mapping: IndexMapping, replicas: int, names: NameSource) -> dict[str, tuple[int, ...]]:
        held = sorted(index for own in mapping.values() for index in own)
        if replicas >= len(held):
            return right(mapping, replicas, names)
        kept = set(held[len(held) - replicas :])
        found = {gang: tuple(index for index in own if index in kept) for gang, own in mapping.items()}
        return {gang: own for gang, own in found.items() if own}

    replace(steady, "scaled_group", scaled_group)


@mutant("added-pods-join-the-oldest", "operator", "lets added pods join the oldest gang", "COHR-081")
def _added_pods_join_the_oldest() -> None:
    replace(steady, "newest", lambda gangs: min(gangs, key=order, default=None))


@mutant("lost-map-starts-over", "operator", "makes a deleted PodGangMap from the template", "COHR-094")
def _lost_map_starts_over() -> None:
    async def adopt(self: control.CoherentSets, pcs: PodCliqueSet) -> None:
        return None

    replace(control.CoherentSets, "adopt", adopt)


@mutant("budget-undefaulted", "operator", "leaves maxUnavailable of coherent sets open", "COHR-006")
def _budget_undefaulted() -> None:
    replace(defaults, "_max_unavailable", lambda root, part, value: iter(()))


@mutant("low-budget-accepted", "operator", "accepts a maxUnavailable below minAvailable", "COHR-004")
def _low_budget_accepted() -> None:
    def budget(path: str, given: Any, minimum: int) -> Iterator[FieldError]:
        return iter(())

    replace(rules, "_budget", budget)


@mutant("low-budget-refused", "operator", "refuses a low maxUnavailable with any strategy", "COHR-008")
def _low_budget_refused() -> None:
    right = rules._budget

    def budget(path: str, given: Any, minimum: int) -> Iterator[FieldError]:
        yield from right(path, given, minimum or 2)

    replace(rules, "_budget", budget)


@mutant(
    "scaling-not-blocked",
    "operator",
    "accepts scaling during an update",
    "COHR-050",
    "COHR-051",
    "COHR-052",
)
def _scaling_not_blocked() -> None:
    replace(scaling, "updating", lambda pcs: False)


@mutant("scale-door-open", "operator", "accepts changes of replicas through the scale subresource", "COHR-052")
def _scale_door_open() -> None:
    right = scaling.judge

    def judge(request: Mapping[str, Any], pcs: Mapping[str, Any] | None) -> AdmissionResult:
        return AdmissionResult() if request.get("subResource") == scaling.SCALE else right(request, pcs)

    replace(scaling, "judge", judge)


@mutant("refusal-without-reason", "operator", "refuses changes of replicas without a word why", "COHR-054")
def _refusal_without_reason() -> None:
    replace(scaling, "reason", lambda namespace, pcs: "no")


@mutant("maps-without-a-key", "operator", "serves PodGangMaps whose entries have no key", "COHR-001", "COHR-002")
def _maps_without_a_key() -> None:
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/entries"
    spoil(
        CRD,
        {"op": "remove", "path": f"{path}/x-kubernetes-list-map-keys"},
        {"op": "replace", "path": f"{path}/x-kubernetes-list-type", "value": "atomic"},
    )


@mutant("maps-without-short-name", "operator", "serves PodGangMaps without their short name", "COHR-001")
def _maps_without_short_name() -> None:
    spoil(CRD, {"op": "replace", "path": "/spec/names/shortNames", "value": []})


@mutant("sets-without-budget", "operator", "serves scaling groups without maxUnavailable", "COHR-003")
def _sets_without_budget() -> None:
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/template/properties"
    groups = f"{path}/podCliqueScalingGroups/items/properties/rollingUpdate/properties/maxUnavailable"
    spoil("podcliquesets.grove.io", {"op": "remove", "path": groups})
