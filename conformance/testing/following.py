"""Whether the maps of a set, its gangs and its pods say the same, and conditions that scenes wait for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.grove import gang_maps, labels, names, template
from conformance.grove.fields import Document, controller, label, name, number, terminating, text, uid
from conformance.grove.gang_maps import Entry, Gang
from conformance.grove.kinds import PODCLIQUESETS
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.scene_environment import SceneEnvironment
from conformance.testing import predicates
from conformance.testing.disruption import CLIQUES, GANGS, GROUPS, SETS
from conformance.testing.scaled import pods_are

MAPS = "podgangmaps"


def maps_of(view: View, set_name: str) -> dict[int, Document]:
    """Return the maps of a set, by replica: those that it controls, and those with the name of one of its replicas."""
    own = uid(view.get(SETS, set_name))
    return {
        replica: each
        for each in view.list(MAPS)
        if (replica := gang_maps.replica_of(each)) >= 0 and not terminating(each)
        if text(controller(each), "uid") == own or name(each) == names.gang_map(set_name, replica)
    }


def entries_of(view: View, set_name: str, replica: int = 0) -> tuple[Entry, ...]:
    """Return the entries of a replica's map."""
    return gang_maps.entries(maps_of(view, set_name).get(replica))


def wanted_gangs(view: View, set_name: str) -> dict[str, Gang]:
    """Return the gangs that the maps of a set stand for, by name."""
    pcs = view.get(SETS, set_name) or {}
    return {
        gang.name: gang
        for replica, found in maps_of(view, set_name).items()
        for gang in gang_maps.gangs(pcs, replica, gang_maps.entries(found))
    }


def built_gangs(view: View, set_name: str) -> list[tuple[Gang, Document | None]]:
    """Return the gangs that the maps of a set stand for, each with the PodGang that holds the same PodCliques, whatever
    its name; None if there is none, or another gang takes it."""
    seen: dict[tuple[str, ...], list[Document]] = {}
    for gang in gangs_of(view, set_name).values():
        seen.setdefault(gang_maps.held(gang), []).append(gang)
    return [
        (gang, same.pop(0) if (same := seen.get(gang.cliques)) else None)
        for gang in wanted_gangs(view, set_name).values()
    ]


def gangs_of(view: View, set_name: str) -> dict[str, Document]:
    """Return the gangs of a set that are not being deleted, by name: those that it controls, and those that have its
    label where no PodCliqueSet is the controller (no document names the owner of a PodGang)."""
    own = uid(view.get(SETS, set_name))

    def of_set(gang: Document) -> bool:
        owner = controller(gang)
        if text(owner, "kind") == PODCLIQUESETS.kind:
            return text(owner, "uid") == own
        return label(gang, labels.PART_OF) == set_name

    return {name(gang): gang for gang in view.list(GANGS) if of_set(gang) and not terminating(gang)}


def pods_of_set(view: View, set_name: str) -> list[Mapping[str, object]]:
    """Return the pods of a set that are not being deleted."""
    found = (predicates.pods_of(view, clique) for clique in cliques_of_set(view, set_name))
    return [pod for own in found for pod in own]


def cliques_of_set(view: View, set_name: str) -> list[str]:
    """Return the names of the PodCliques of a set."""
    return [name(clique) for clique in view.list(CLIQUES) if label(clique, labels.PART_OF) == set_name]


# -- what may be wrong -------------------------------------------------------------------------------------------------


def misplaced(view: View, set_name: str) -> list[str]:
    """Return what the maps of a set do not hold exactly once (GM-38)."""
    pcs, found = view.get(SETS, set_name) or {}, maps_of(view, set_name)
    wanted = template.read(pcs)
    wrong: list[str] = []
    for replica in range(number(pcs, "spec", "replicas") or 0):
        alone = {each.name: names.clique(set_name, replica, each.name) for each in wanted.standalone}
        groups = {each.name: names.scaling_group(set_name, replica, each.name) for each in wanted.groups}
        sizes = {key: number(view.get(CLIQUES, full), "spec", "replicas") or 0 for key, full in alone.items()}
        grouped = {key: number(view.get(GROUPS, full), "spec", "replicas") or 0 for key, full in groups.items()}
        entries = gang_maps.entries(found.get(replica))
        wrong += [f"replica {replica}: {each}" for each in gang_maps.misplaced(entries, sizes, grouped)]
    return wrong


def unfollowed(view: View, set_name: str) -> list[str]:
    """Return the gangs that entries stand for and that are not there, and gangs that no entry stands for, by what they
    say and hold, whatever their names."""
    wanted = sorted(_spelled(gang.entry.epoch, gang.cliques) for gang in wanted_gangs(view, set_name).values())
    seen = sorted(
        _spelled(label(gang, labels.EPOCH), gang_maps.held(gang)) for gang in gangs_of(view, set_name).values()
    )
    lacking = [f"no gang {each}" for each in wanted if each not in seen]
    return lacking + [f"gang {each}, which no entry stands for" for each in seen if each not in wanted]


def _spelled(epoch: str, cliques: tuple[str, ...]) -> str:
    return f"of epoch {epoch or '(none)'} with {', '.join(cliques) or 'nothing'}"


def strays(view: View, set_name: str) -> list[str]:
    """Return the pods whose gang does not exist, or does not refer to them."""
    gangs = gangs_of(view, set_name)
    return [reason for pod in pods_of_set(view, set_name) for reason in _astray(pod, gangs)]


def _astray(pod: Mapping[str, object], gangs: Mapping[str, Document]) -> Iterator[str]:
    own = label(pod, labels.GANG)
    gang = gangs.get(own)
    if gang is None:
        yield f"{name(pod)} is of the gang {own or '(none)'}, which does not exist"
    elif name(pod) not in gang_maps.referenced(gang):
        yield f"{name(pod)} is of the gang {own}, which does not refer to it"


def unmet(view: View, set_name: str) -> list[str]:
    """Return the entries that wait for good, because they depend on what is no entry."""
    return [
        f"replica {replica}: {each}"
        for replica, found in maps_of(view, set_name).items()
        for each in gang_maps.unmet(gang_maps.entries(found))
    ]


def everything(view: View, set_name: str) -> list[str]:
    """Return all of that."""
    return [each for wrong in (misplaced, unfollowed, strays, unmet) for each in wrong(view, set_name)]


# -- conditions --------------------------------------------------------------------------------------------------------


@predicate
def followed(view: View, set_name: str) -> bool | Unmet:
    """Maps, gangs and pods of a set say the same."""
    wrong = everything(view, set_name)
    return not wrong or Unmet("; ".join(wrong[:3]))


def settles(env: SceneEnvironment, step: str, set_name: str, sizes: Mapping[str, int]) -> None:
    """Wait until these pods run (the step) and then, judging nothing, until the maps are followed and nothing moves."""
    env.settle(step, pods_are(sizes, ready=True), 60)
    env.settled(f"{step}: maps followed", followed(set_name))
    env.quiet(1)
    env.mark(f"{step}: at rest")


def look(env: SceneEnvironment, set_name: str, why: str) -> None:
    """Make the operator look at a set again."""
    env.patch(SETS, set_name, {"metadata": {"annotations": {labels.TRIGGER: why}}})
