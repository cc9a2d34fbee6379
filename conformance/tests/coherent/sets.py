"""The sets of this profile, and how scenes change them and wait for them.

Sets are written as sizes: `cliques={"f": (5, 2)}` is a standalone clique with five pods, two of which are its minimum;
`groups={"p": (4, 1)}` a scaling group with four replicas. A third number is maxUnavailable. The group p has the cliques
pl and pw, any other one clique.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from conformance.grove import gang_maps, health, labels, pods, updates
from conformance.grove.coherent import shapes
from conformance.grove.coherent.model import Component, Entry, Key, Layout, total
from conformance.grove.fields import Document, label, name, number, uid
from conformance.grove.restricted import restricted
from conformance.history.query import Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.api import Object
from conformance.testing import predicates
from conformance.testing.scene import SceneEnvironment, Span

SETS, CLIQUES, GROUPS, GANGS = "podcliquesets", "podcliques", "podcliquescalinggroups", "podgangs"
MAPS = "podgangmaps"
COHERENT, ROLLING, ON_DELETE = "Coherent", "RollingRecreate", "OnDelete"
HELD = "conformance.grove.io/hold-ready"
HOLD_STATUS = health.HOLD_STATUS
SECONDS = 150
SUB_STEPS = 12
"""At most so many sub-steps are released one by one."""

Sizes = Mapping[str, tuple[int, ...]]


def members(group: str) -> list[str]:
    """The cliques of a scaling group."""
    return ["pl", "pw"] if group == "p" else [f"{group}m"]


def coherent(
    env: SceneEnvironment,
    set_name: str,
    cliques: Sizes | None = None,
    groups: Sizes | None = None,
    *,
    replicas: int = 1,
    strategy: str = COHERENT,
    delay: str = "4h0m0s",
    **template: Any,
) -> Object:
    """A set of these sizes. Not created."""
    listed = [_clique(each, *sizes) for each, sizes in (cliques or {}).items()]
    listed += [_clique(each, 1, 1) for group in groups or {} for each in members(group)]
    wanted = [
        {"name": each, "cliqueNames": members(each), "replicas": size, "minAvailable": least, **_rolling(budget)}
        for each, (size, least, *budget) in (groups or {}).items()
    ]
    whole: Object = {"cliques": listed, "terminationDelay": delay, **template}
    if wanted:
        whole["podCliqueScalingGroups"] = wanted
    spec = {"replicas": replicas, "updateStrategy": {"type": strategy}, "template": whole}
    metadata = {"name": set_name}
    return env.placed({"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": metadata, "spec": spec})


def components(workload: Object, only: Collection[str] | None = None) -> list[Component]:
    """The components of a set as they are planned with; `only` those with these names."""
    template = workload["spec"]["template"]
    groups = template.get("podCliqueScalingGroups", [])
    inside = {each for group in groups for each in group["cliqueNames"]}
    found = [
        Component(Key("clique", each["name"]), each["spec"]["replicas"], each["spec"]["minAvailable"], _budget(each))
        for each in template["cliques"]
        if each["name"] not in inside
    ]
    found += [Component(Key("group", g["name"]), g["replicas"], g["minAvailable"], _budget(g)) for g in groups]
    return [each for each in found if only is None or each.key.name in only]


def _budget(entry: Mapping[str, Any]) -> int:
    least = entry.get("minAvailable") or entry.get("spec", {}).get("minAvailable")
    return int(entry.get("rollingUpdate", {}).get("maxUnavailable", least))


def _rolling(budget: Sequence[int]) -> Object:
    return {"rollingUpdate": {"maxUnavailable": budget[0]}} if budget else {}


def _clique(each: str, size: int, least: int, *budget: int) -> Object:
    container = {"name": "main", "image": f"registry.example/{each}:1", "resources": {"requests": {"cpu": "10m"}}}
    spec = {
        "roleName": each,
        "replicas": size,
        "minAvailable": least,
        "podSpec": restricted({"containers": [container]}),
    }
    return {"name": each, "spec": spec, **_rolling(budget)}


# -- changes -----------------------------------------------------------------------------------------------------------


def change(
    env: SceneEnvironment, workload: Object, *cliques: str, tag: str, hold: bool | Collection[str] = False
) -> str:
    """Gives the pods of these cliques another image, and keeps the new ones from becoming Ready where they are held,
    all or those of some cliques; returns the generation hash that the set had before."""
    before = updates.generation(env.history.view().get(SETS, name(workload)))
    for each in workload["spec"]["template"]["cliques"]:
        if each["name"] in cliques:
            container = each["spec"]["podSpec"]["containers"][0]
            container["image"] = f"{container['image'].rpartition(':')[0]}:{tag}"
            annotations = {key: value for key, value in each.pop("annotations", {}).items() if key != HELD}
            if hold is True or (hold and each["name"] in hold):
                annotations[HELD] = "yes"
            if annotations:
                each["annotations"] = annotations
    template = {"cliques": copy.deepcopy(workload["spec"]["template"]["cliques"])}
    env.patch(SETS, name(workload), {"spec": {"template": template}})
    return before


def switch(env: SceneEnvironment, set_name: str, strategy: str) -> None:
    """Changes the strategy of a set. OnDelete has no use for rollingUpdate, and may be refused with it."""
    changed: Object = {"updateStrategy": {"type": strategy}}
    stored = copy.deepcopy((env.history.view().get(SETS, set_name) or {})["spec"]["template"])
    parts = [*stored["cliques"], *stored.get("podCliqueScalingGroups", [])]
    if strategy == ON_DELETE and [part for part in parts if part.pop("rollingUpdate", None)]:
        changed["template"] = {key: stored[key] for key in ("cliques", "podCliqueScalingGroups") if key in stored}
    env.patch(SETS, set_name, {"spec": changed})


def release(env: SceneEnvironment, set_name: str, chosen: Collection[str] | None = None) -> None:
    """Lets the held pods of a set become Ready, or those of these names."""
    for pod in of_set(env.history.view(), set_name):
        if _is_held(pod) and (chosen is None or name(pod) in chosen):
            env.patch("pods", name(pod), {"metadata": {"annotations": {HELD: None}}})


def _is_held(pod: Mapping[str, Any]) -> bool:
    return HELD in pod["metadata"].get("annotations", {})


@predicate
def waiting(view: View, set_name: str) -> bool | Unmet:
    """A bound pod of a set is held."""
    return any(pods.bound(pod) and _is_held(pod) for pod in of_set(view, set_name)) or Unmet("no pod is held")


def release_all(env: SceneEnvironment, before: Mapping[str, str]) -> None:
    """Lets the held pods of sets become Ready, those of later sub-steps, too, until their updates have ended.
    `before`: the generation that each set had before its update."""

    def running(view: View) -> list[str]:
        return [each for each, generation in before.items() if updated(each, generation)(view) is not True]

    def seen(view: View) -> bool:
        left = running(view)
        return not left or any(waiting(each)(view) is True for each in left)

    for _ in range(SUB_STEPS * len(before)):
        view = env.settled("pods wait to become Ready", seen)
        left = running(view)
        if not any(waiting(each)(view) is True for each in left):
            break  # all have ended, or one does not go on
        for each in left:
            release(env, each)
    for each, generation in before.items():
        env.settle(f"{each}: ended", updated(each, generation), SECONDS)


# -- reading -----------------------------------------------------------------------------------------------------------


def map_of(view: View, set_name: str, replica: int = 0) -> Document | None:
    """The PodGangMap of a replica, whatever its name is."""
    found = (each for each in view.list(MAPS) if gang_maps.set_of(each) == set_name and shapes.replica(each) == replica)
    return next(found, None)


def layout(view: View, set_name: str, replica: int = 0) -> Layout:
    """The gangs that the map of a replica asks for."""
    return shapes.entries(map_of(view, set_name, replica))


def layouts(span: Span, set_name: str, replica: int = 0) -> list[Layout]:
    """What each version of a map asks for, from the beginning of a span on."""
    records = [
        record.object
        for record in span.records(MAPS)
        if gang_maps.set_of(record.object) == set_name and shapes.replica(record.object) == replica
    ]
    return [layout(span.begin(), set_name, replica), *(shapes.entries(each) for each in records)]


def of_set(view: View, set_name: str) -> list[Mapping[str, Any]]:
    """The pods of a set that are not being deleted."""
    every = (predicates.pods_of(view, clique) for clique in view.names(CLIQUES))
    return [pod for found in every for pod in found if label(pod, labels.PART_OF) == set_name]


def of_template(view: View, set_name: str, *cliques: str) -> list[Mapping[str, Any]]:
    """The pods of a set that are made from these templates."""
    return [pod for pod in of_set(view, set_name) if template_of(pod) in cliques]


def template_of(pod: Document) -> str:
    """The template of a pod's clique; templates of this profile have no hyphen in their names."""
    return label(pod, labels.CLIQUE).rpartition("-")[2]


def uids(found: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """uid → clique, of pods."""
    return {uid(pod): label(pod, labels.CLIQUE) for pod in found}


def tags(view: View, set_name: str) -> dict[str, list[str]]:
    """Clique template → tags of the images of its pods, each once."""
    found: dict[str, set[str]] = {}
    for pod in of_set(view, set_name):
        found.setdefault(template_of(pod), set()).add(tag(pod))
    return {each: sorted(own) for each, own in sorted(found.items())}


def tag(pod: Mapping[str, Any]) -> str:
    """The tag of a pod's image."""
    return str(pod["spec"]["containers"][0]["image"]).rpartition(":")[2]


def member_index(view: View) -> dict[str, str]:
    """Member clique → `group/index`, by the labels of cliques."""
    found = {}
    for clique in view.list(CLIQUES):
        if group := label(clique, labels.GROUP):
            prefix = f"{label(clique, labels.PART_OF)}-{label(clique, labels.SET_INDEX)}-"
            found[name(clique)] = f"{group.removeprefix(prefix)}/{label(clique, labels.GROUP_INDEX)}"
    return found


def gangs(view: View, set_name: str) -> dict[str, Document]:
    """The PodGangs of a set by the key of their entry."""
    inside = member_index(view)
    found = [gang for gang in view.list(GANGS) if label(gang, labels.PART_OF) == set_name]
    return {shapes.key_of(gang, inside): gang for gang in found}


# -- conditions --------------------------------------------------------------------------------------------------------


@predicate
def deployed(view: View, set_name: str, replicas: int = 1) -> bool | Unmet:
    """The set is available, all pods of its cliques are Ready, and all gangs of its maps have been Ready."""
    if not (answer := predicates.available(set_name, replicas)(view)):
        return answer
    return complete(view, set_name)


def complete(view: View, set_name: str) -> bool | Unmet:
    """Every clique of the set has its pods, all Ready, and every gang of its maps has been Ready."""
    for clique in view.list(CLIQUES):
        if label(clique, labels.PART_OF) == set_name:
            found = predicates.pods_of(view, name(clique))
            wanted = number(clique, "spec", "replicas")
            if len(found) != wanted or not all(map(pods.ready, found)):
                return Unmet(f"{name(clique)}: {sum(map(pods.ready, found))} of {wanted} pods are Ready")
    of_gangs = gangs(view, set_name)
    for found_map in view.list(MAPS):
        for entry in shapes.entries(found_map) if gang_maps.set_of(found_map) == set_name else ():
            if not shapes.gang_done(of_gangs.get(entry.key)):
                return Unmet(f"the gang of entry {entry.key} has not been Ready")
    return True


@predicate
def updated(view: View, set_name: str, before: str) -> bool | Unmet:
    """The update that followed a generation has ended, and everything is Ready."""
    found = view.get(SETS, set_name)
    if updates.generation(found) in ("", before):
        return Unmet(f"{set_name} still has the generation of before")
    if not updates.ended(found):
        return Unmet(f"the update of {set_name} has not ended: {dict(updates.progress(found))}")
    return complete(view, set_name)


@predicate
def held(view: View, set_name: str, count: int, tag_: str) -> bool | Unmet:
    """So many bound pods of a set are of an image, and are not Ready."""
    found = [pod for pod in of_set(view, set_name) if tag(pod) == tag_ and pods.bound(pod) and not pods.ready(pod)]
    return len(found) == count or Unmet(f"{len(found)} of {count} pods of image {tag_} wait to become Ready")


@predicate
def lost(view: View, first: Collection[str], count: int) -> bool:
    """More of these pods (uids) than that are deleted, or being deleted."""
    present = {uid(pod) for clique in view.names(CLIQUES) for pod in predicates.pods_of(view, clique)}
    return len(set(first) - present) > count


@predicate
def holds(view: View, set_name: str, part: str, size: int) -> bool | Unmet:
    """The map holds so many of a component."""
    found = layout(view, set_name)
    sizes = {total(found, Key("clique", part)), total(found, Key("group", part))}
    return size in sizes or Unmet(f"entries hold {max(sizes)} of {part}, not {size}")


@predicate
def followed(view: View, set_name: str, part: str, size: int) -> bool | Unmet:
    """The map holds so many of a component, and everything is Ready."""
    return holds(set_name, part, size)(view) and complete(view, set_name)


@predicate
def only_gangs_of_entries(view: View, set_name: str) -> bool | Unmet:
    """Every PodGang of the set is that of an entry that holds something."""
    maps = [each for each in view.list(MAPS) if gang_maps.set_of(each) == set_name]
    named = {entry.key for found in maps for entry in shapes.entries(found)}
    others = sorted(gangs(view, set_name).keys() - named)
    return not others or Unmet(f"PodGangs without an entry: {', '.join(others)}")


@predicate
def recreated(view: View, set_name: str, first: Mapping[str, str]) -> bool | Unmet:
    """None of these pods (uids) is left, and everything is Ready."""
    left = uids(of_set(view, set_name)).keys() & first.keys()
    if left:
        return Unmet(f"{len(left)} of {len(first)} pods are left")
    return complete(view, set_name) if view.names(CLIQUES) else Unmet("there are no cliques")


@predicate
def reported_ready(view: View, clique: str, count: int) -> bool | Unmet:
    """A clique reports so many Ready pods."""
    found = number(view.get(CLIQUES, clique), "status", "readyReplicas")
    return found == count or Unmet(f"readyReplicas of {clique} is {found}, not {count}")


def cliques_of(entry: Entry, prefix: str) -> list[str]:
    """The full names of the cliques that an entry holds pods of."""
    alone = [f"{prefix}-{each}" for each, size in entry.cliques.items() if size]
    inside = [
        f"{prefix}-{group}-{index}-{member}"
        for group, own in entry.groups.items()
        for index in own
        for member in members(group)
    ]
    return sorted([*alone, *inside])
