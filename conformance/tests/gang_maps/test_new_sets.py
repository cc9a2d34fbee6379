"""Tests of the PodGangMaps of new sets, and of the PodGangs that the maps describe."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.grove import gang_maps, labels, names, updates
from conformance.grove.fields import controller, label, name, number, text, uid
from conformance.grove.fields import labels as labels_of
from conformance.history.view import View
from conformance.testing import following, predicates
from conformance.testing.comparison import value_or_absent
from conformance.testing.disruption import CLIQUES, GANGS, SETS
from conformance.testing.following import MAPS
from conformance.testing.observed import all_of
from conformance.testing.scene import Recorded, Scene, SceneEnvironment, invariants, requirement

AT_REST = "at rest"
SIZES = {"t": 2, "o": 1, "w": 1}
"""Set → its replicas."""


class NewSets(Scene):
    """One node with room for all pods. Three new sets: `t` has a standalone clique and a scaling group with replicas
    above its minimum; `o` has a group without replicas above its minimum, and the strategy OnDelete; `w` has only a
    standalone clique."""

    def play(self, env: SceneEnvironment) -> None:
        env.nodes("tiny", 1)
        sizes = {"alone": 2, "aloneMinAvailable": 1, "members": 1, "membersMinAvailable": 1}
        env.create(env.workload("kept", setName="t", replicas=SIZES["t"], groups=3, groupsMinAvailable=1, **sizes))
        on_delete_set = env.workload("kept", setName="o", **sizes)
        on_delete_set["spec"]["updateStrategy"] = {"type": "OnDelete"}
        env.create(on_delete_set)
        env.create(env.workload("frontend", setName="w"))
        all_available = (predicates.is_available(set_name, replicas) for set_name, replicas in SIZES.items())
        env.wait_for("sets available", all_of(*all_available))
        env.settled("maps followed", all_of(*map(following.are_maps_followed, SIZES)))
        env.quiet(1)
        env.mark(AT_REST)


def _maps(view: View) -> Iterator[tuple[str, int]]:
    for set_name, replicas in SIZES.items():
        for replica in range(replicas):
            yield set_name, replica


@requirement("MAP-001", reaches="sets available")
def test_each_replica_has_a_map(run: Recorded[NewSets]) -> None:
    """The namespace contains no other maps."""
    view = run.at(AT_REST)
    replicas = {names.gang_map(set_name, replica): replica for set_name, replica in _maps(view)}
    run.expect("PodGangMaps", sorted(replicas), view.names(MAPS))
    stored = {map_name: view.get(MAPS, map_name) for map_name in replicas}
    observed = {
        key: value_or_absent(gang_map, number(gang_map, "spec", "podCliqueSetReplicaIndex"))
        for key, gang_map in stored.items()
    }
    run.same("replicas of PodGangMaps", replicas, observed)


@requirement("MAP-044")
def test_maps_are_controlled_by_their_set(run: Recorded[NewSets]) -> None:
    """Controllers are compared by the UIDs in the owner references."""
    view = run.at(AT_REST)
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for set_name, replica in _maps(view):
        gang_map = view.get(MAPS, names.gang_map(set_name, replica))
        expected[f"{set_name}-{replica}"] = uid(view.get(SETS, set_name))
        observed[f"{set_name}-{replica}"] = value_or_absent(gang_map, text(controller(gang_map), "uid"))
    run.same("controllers of PodGangMaps", expected, observed)


@requirement("MAP-002")
def test_a_new_replica_begins_with_an_anchor(run: Recorded[NewSets]) -> None:
    """Additional entries are allowed if they are empty. The entry for replicas that scaling adds may be created
    early."""
    view = run.at(AT_REST)
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for set_name, replica in _maps(view):
        pcs = view.get(SETS, set_name)
        entries = following.entries_of(view, set_name, replica)
        expected[f"{set_name}-{replica}"] = gang_maps.expected_first_entries(pcs or {}, updates.generation_hash(pcs))
        gang_map = following.maps_of(view, set_name).get(replica)
        observed[f"{set_name}-{replica}"] = value_or_absent(gang_map, gang_maps.observed_first_entries(entries))
    run.same("entries", expected, observed)
    epochs = [entry.epoch for set_name in SIZES for entry in following.entries_of(view, set_name)]
    run.expect("epochs that are no decimal numbers", [], [epoch for epoch in epochs if not epoch.isdecimal()])


@requirement("MAP-003")
def test_gangs_are_those_of_the_entries(run: Recorded[NewSets]) -> None:
    """Gangs are compared by the PodCliques that they hold."""
    view = run.at(AT_REST)
    for set_name in SIZES:
        expected = sorted(gang.cliques for gang in following.desired_gangs(view, set_name).values())
        observed = sorted(gang_maps.pod_group_names(gang) for gang in following.gangs_of(view, set_name).values())
        run.expect(f"PodGangs of {set_name}, by their PodGroups", expected, observed)


@requirement("MAP-065")
def test_gangs_are_named_after_their_entries(run: Recorded[NewSets]) -> None:
    """A PodGang is identified by the PodCliques that it holds."""
    view = run.at(AT_REST)
    for set_name in SIZES:
        gangs = following.built_gangs(view, set_name)
        observed = {gang.name: value_or_absent(gang_object, name(gang_object)) for gang, gang_object in gangs}
        run.same(f"names of PodGangs of {set_name}", {gang_name: gang_name for gang_name in observed}, observed)


@requirement("MAP-004")
def test_pods_name_the_gang_that_holds_them(run: Recorded[NewSets]) -> None:
    """PodCliques that are not in a scaling group may or may not name a gang. The names of gangs are not judged."""
    view = run.at(AT_REST)
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for set_name in SIZES:
        for gang, gang_object in following.built_gangs(view, set_name):
            gang_name = name(gang_object) if gang_object is not None else f"the gang of {', '.join(gang.cliques)}"
            for clique in gang.cliques:
                podclique = view.get(CLIQUES, clique)
                if label(podclique, labels.GROUP):
                    expected[f"{CLIQUES}/{clique}"] = gang_name
                    observed[f"{CLIQUES}/{clique}"] = value_or_absent(gang_object, label(podclique, labels.GANG))
                for pod in predicates.pods_of(view, clique):
                    expected[f"pods/{name(pod)}"] = gang_name
                    observed[f"pods/{name(pod)}"] = value_or_absent(gang_object, label(pod, labels.GANG))
    run.same("gangs that are named", expected, observed)


@requirement("MAP-005")
def test_gangs_say_to_which_entry_they_belong(run: Recorded[NewSets]) -> None:
    """The sets are new, so all gangs belong to the current generation."""
    view = run.at(AT_REST)
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for set_name in SIZES:
        generation = updates.generation_hash(view.get(SETS, set_name))
        for gang, gang_object in following.built_gangs(view, set_name):
            expected[gang.name] = gang_maps.expected_entry_labels(gang.entry, generation)
            observed[gang.name] = value_or_absent(gang_object, gang_maps.entry_labels(gang_object))
    run.same("labels of PodGangs", expected, observed)


@requirement("MAP-006")
def test_nothing_names_a_base_gang(run: Recorded[NewSets]) -> None:
    """Dependencies between gangs are stored in the map."""
    view = run.at(AT_REST)
    objects = [*view.list(CLIQUES), *view.list("pods"), *view.list(GANGS)]
    marked = [f"{obj.get('kind', '')} {name(obj)}" for obj in objects if labels.BASE_GANG in labels_of(obj)]
    run.expect(f"objects with the label {labels.BASE_GANG}", [], marked)


test_invariants = invariants(NewSets, "INV-001", "INV-002", "INV-004", "INV-005", "INV-008")
