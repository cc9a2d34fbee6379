"""Comparison of the PodGangMaps of a set with its gangs and pods, and predicates that scenes wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.grove import gang_maps, labels, names, template
from conformance.grove.fields import Document, controller, label, name, number, terminating, text, uid
from conformance.grove.gang_maps import EntryGang, MapEntry
from conformance.grove.kinds import PODCLIQUESETS
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.scene_environment import SceneEnvironment
from conformance.testing import predicates
from conformance.testing.disruption import CLIQUES, GANGS, GROUPS, SETS
from conformance.testing.scaled import pods_are

MAPS = "podgangmaps"


def maps_of(view: View, set_name: str) -> dict[int, Document]:
    """Return the maps of a set, by replica. A map belongs to the set if the set controls it, or if it has the name of
    one of the set's maps."""
    set_uid = uid(view.get(SETS, set_name))
    return {
        replica: gang_map
        for gang_map in view.list(MAPS)
        if (replica := gang_maps.replica_of(gang_map)) >= 0 and not terminating(gang_map)
        if text(controller(gang_map), "uid") == set_uid or name(gang_map) == names.gang_map(set_name, replica)
    }


def entries_of(view: View, set_name: str, replica: int = 0) -> tuple[MapEntry, ...]:
    """Return the entries of a replica's map."""
    return gang_maps.entries(maps_of(view, set_name).get(replica))


def desired_gangs(view: View, set_name: str) -> dict[str, EntryGang]:
    """Return the gangs that the maps of a set describe, by name."""
    pcs = view.get(SETS, set_name) or {}
    return {
        gang.name: gang
        for replica, gang_map in maps_of(view, set_name).items()
        for gang in gang_maps.gangs(pcs, replica, gang_maps.entries(gang_map))
    }


def built_gangs(view: View, set_name: str) -> list[tuple[EntryGang, Document | None]]:
    """Return the gangs that the maps of a set describe, each with the PodGang that holds the same PodCliques, whatever
    its name. The PodGang is None if none exists or all are already paired with other gangs."""
    gangs_by_cliques: dict[tuple[str, ...], list[Document]] = {}
    for gang in gangs_of(view, set_name).values():
        gangs_by_cliques.setdefault(gang_maps.pod_group_names(gang), []).append(gang)
    return [
        (gang, candidates.pop(0) if (candidates := gangs_by_cliques.get(gang.cliques)) else None)
        for gang in desired_gangs(view, set_name).values()
    ]


def gangs_of(view: View, set_name: str) -> dict[str, Document]:
    """Return the gangs of a set that are not being deleted, by name. A gang belongs to the set that controls it. A gang
    that no PodCliqueSet controls belongs to the set that its label names, because no document says who owns a
    PodGang."""
    set_uid = uid(view.get(SETS, set_name))

    def belongs_to_set(gang: Document) -> bool:
        owner = controller(gang)
        if text(owner, "kind") == PODCLIQUESETS.kind:
            return text(owner, "uid") == set_uid
        return label(gang, labels.PART_OF) == set_name

    return {name(gang): gang for gang in view.list(GANGS) if belongs_to_set(gang) and not terminating(gang)}


def pods_of_set(view: View, set_name: str) -> list[Mapping[str, object]]:
    """Return the pods of a set that are not being deleted."""
    members = (predicates.pods_of(view, clique) for clique in cliques_of_set(view, set_name))
    return [pod for clique_pods in members for pod in clique_pods]


def cliques_of_set(view: View, set_name: str) -> list[str]:
    """Return the names of the PodCliques of a set."""
    return [name(clique) for clique in view.list(CLIQUES) if label(clique, labels.PART_OF) == set_name]


# -- what may be wrong -------------------------------------------------------------------------------------------------


def misplaced_members(view: View, set_name: str) -> list[str]:
    """Return the members that the maps of a set do not hold exactly once (GM-38)."""
    pcs, map_by_replica = view.get(SETS, set_name) or {}, maps_of(view, set_name)
    set_template = template.read(pcs)
    misplaced: list[str] = []
    for replica in range(number(pcs, "spec", "replicas") or 0):
        standalone = {part.name: names.clique(set_name, replica, part.name) for part in set_template.standalone}
        groups = {part.name: names.scaling_group(set_name, replica, part.name) for part in set_template.groups}
        clique_sizes = {
            key: number(view.get(CLIQUES, full), "spec", "replicas") or 0 for key, full in standalone.items()
        }
        group_sizes = {key: number(view.get(GROUPS, full), "spec", "replicas") or 0 for key, full in groups.items()}
        entries = gang_maps.entries(map_by_replica.get(replica))
        misplaced += [
            f"replica {replica}: {part}" for part in gang_maps.placement_errors(entries, clique_sizes, group_sizes)
        ]
    return misplaced


def gang_differences(view: View, set_name: str) -> list[str]:
    """Return the gangs that an entry describes but that do not exist, and the gangs that no entry describes. Gangs are
    compared by epoch and PodCliques, whatever their names."""
    expected = sorted(_gang_text(gang.entry.epoch, gang.cliques) for gang in desired_gangs(view, set_name).values())
    current = sorted(
        _gang_text(label(gang, labels.EPOCH), gang_maps.pod_group_names(gang))
        for gang in gangs_of(view, set_name).values()
    )
    missing = [f"no gang {gang}" for gang in expected if gang not in current]
    return missing + [f"gang {gang}, which no entry stands for" for gang in current if gang not in expected]


def _gang_text(epoch: str, cliques: tuple[str, ...]) -> str:
    return f"of epoch {epoch or '(none)'} with {', '.join(cliques) or 'nothing'}"


def stray_pods(view: View, set_name: str) -> list[str]:
    """Return the pods whose gang does not exist or does not reference them."""
    gangs = gangs_of(view, set_name)
    return [reason for pod in pods_of_set(view, set_name) for reason in _reasons_astray(pod, gangs)]


def _reasons_astray(pod: Mapping[str, object], gangs: Mapping[str, Document]) -> Iterator[str]:
    gang_name = label(pod, labels.GANG)
    gang = gangs.get(gang_name)
    if gang is None:
        yield f"{name(pod)} is of the gang {gang_name or '(none)'}, which does not exist"
    elif name(pod) not in gang_maps.referenced_pods(gang):
        yield f"{name(pod)} is of the gang {gang_name}, which does not refer to it"


def unmet_dependencies(view: View, set_name: str) -> list[str]:
    """Return the entries that can never proceed because they depend on entries that do not exist."""
    return [
        f"replica {replica}: {entry}"
        for replica, gang_map in maps_of(view, set_name).items()
        for entry in gang_maps.unmet_dependencies(gang_maps.entries(gang_map))
    ]


def all_violations(view: View, set_name: str) -> list[str]:
    """Return all violations: misplaced members, gangs that do not follow the maps, stray pods and unmet
    dependencies."""
    return [
        violation
        for check in (misplaced_members, gang_differences, stray_pods, unmet_dependencies)
        for violation in check(view, set_name)
    ]


# -- conditions --------------------------------------------------------------------------------------------------------


@predicate
def are_maps_followed(view: View, set_name: str) -> bool | Unmet:
    """The maps, gangs and pods of a set agree."""
    violations = all_violations(view, set_name)
    return not violations or Unmet("; ".join(violations[:3]))


def wait_until_settled(env: SceneEnvironment, step: str, set_name: str, sizes: Mapping[str, int]) -> None:
    """Wait for the step that these pods are Ready. Then wait, without judging it, until the gangs and pods agree with
    the maps and nothing changes."""
    env.settle(step, pods_are(sizes, ready=True), 60)
    env.settled(f"{step}: maps followed", are_maps_followed(set_name))
    env.quiet(1)
    env.mark(f"{step}: at rest")


def trigger_reconcile(env: SceneEnvironment, set_name: str, reason: str) -> None:
    """Make the operator reconcile a set again."""
    env.patch(SETS, set_name, {"metadata": {"annotations": {labels.TRIGGER: reason}}})
