"""The sets of this profile, and helpers to change them and to wait for them.

Sets are defined by sizes. `cliques={"f": (5, 2)}` is a standalone clique with five pods and minAvailable 2;
`groups={"p": (4, 1)}` is a scaling group with four replicas and minAvailable 1. A third number is maxUnavailable. The
group p has the cliques pl and pw, and any other group has one clique.
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
HOLD_READY = "conformance.grove.io/hold-ready"
HOLD_STATUS = health.HOLD_STATUS
TIMEOUT_SECONDS = 150
MAX_SUB_STEPS = 12
"""The maximum number of sub-steps that are released one by one."""

Sizes = Mapping[str, tuple[int, ...]]


def members(group: str) -> list[str]:
    """Return the cliques of a scaling group."""
    return ["pl", "pw"] if group == "p" else [f"{group}m"]


def set_manifest(
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
    """Return the manifest of a set with these sizes."""
    clique_templates = [_clique(clique, *sizes) for clique, sizes in (cliques or {}).items()]
    clique_templates += [_clique(clique, 1, 1) for group in groups or {} for clique in members(group)]
    group_configs = [
        {
            "name": group,
            "cliqueNames": members(group),
            "replicas": size,
            "minAvailable": min_available,
            **_rolling(budget),
        }
        for group, (size, min_available, *budget) in (groups or {}).items()
    ]
    set_template: Object = {"cliques": clique_templates, "terminationDelay": delay, **template}
    if group_configs:
        set_template["podCliqueScalingGroups"] = group_configs
    spec = {"replicas": replicas, "updateStrategy": {"type": strategy}, "template": set_template}
    metadata = {"name": set_name}
    return env.placed({"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": metadata, "spec": spec})


def components(workload: Object, only: Collection[str] | None = None) -> list[Component]:
    """Return the components of a set for the planner. With `only`, return only the components with these names."""
    template = workload["spec"]["template"]
    groups = template.get("podCliqueScalingGroups", [])
    grouped = {clique for group in groups for clique in group["cliqueNames"]}
    parts = [
        (Key("clique", clique["name"]), clique["spec"], _budget(clique))
        for clique in template["cliques"]
        if clique["name"] not in grouped
    ]
    parts += [(Key("group", group["name"]), group, _budget(group)) for group in groups]
    return [
        Component(key, sizes["replicas"], sizes["minAvailable"], budget)
        for key, sizes, budget in parts
        if only is None or key.name in only
    ]


def _budget(entry: Mapping[str, Any]) -> int:
    min_available = entry.get("minAvailable") or entry.get("spec", {}).get("minAvailable")
    return int(entry.get("rollingUpdate", {}).get("maxUnavailable", min_available))


def _rolling(budget: Sequence[int]) -> Object:
    return {"rollingUpdate": {"maxUnavailable": budget[0]}} if budget else {}


def _clique(clique_name: str, size: int, min_available: int, *budget: int) -> Object:
    container = {
        "name": "main",
        "image": f"registry.example/{clique_name}:1",
        "resources": {"requests": {"cpu": "10m"}},
    }
    spec = {
        "roleName": clique_name,
        "replicas": size,
        "minAvailable": min_available,
        "podSpec": restricted({"containers": [container]}),
    }
    return {"name": clique_name, "spec": spec, **_rolling(budget)}


# -- changes -----------------------------------------------------------------------------------------------------------


def change_images(
    env: SceneEnvironment, workload: Object, *cliques: str, tag: str, hold: bool | Collection[str] = False
) -> str:
    """Give the pods of these cliques another image. With `hold`, the new pods of all these cliques, or of the cliques
    in `hold`, do not become Ready until they are released. Return the generation hash of the set before the change."""
    before = updates.generation_hash(env.history.view().get(SETS, name(workload)))
    for clique in workload["spec"]["template"]["cliques"]:
        if clique["name"] in cliques:
            container = clique["spec"]["podSpec"]["containers"][0]
            container["image"] = f"{container['image'].rpartition(':')[0]}:{tag}"
            annotations = {key: value for key, value in clique.pop("annotations", {}).items() if key != HOLD_READY}
            if hold is True or (hold and clique["name"] in hold):
                annotations[HOLD_READY] = "yes"
            if annotations:
                clique["annotations"] = annotations
    template = {"cliques": copy.deepcopy(workload["spec"]["template"]["cliques"])}
    env.patch(SETS, name(workload), {"spec": {"template": template}})
    return before


def switch_strategy(env: SceneEnvironment, set_name: str, strategy: str) -> None:
    """Change the strategy of a set. rollingUpdate is removed for OnDelete, which does not use it and may reject it."""
    patch: Object = {"updateStrategy": {"type": strategy}}
    template = copy.deepcopy((env.history.view().get(SETS, set_name) or {})["spec"]["template"])
    entries = [*template["cliques"], *template.get("podCliqueScalingGroups", [])]
    if strategy == ON_DELETE and [entry for entry in entries if entry.pop("rollingUpdate", None)]:
        patch["template"] = {key: template[key] for key in ("cliques", "podCliqueScalingGroups") if key in template}
    env.patch(SETS, set_name, {"spec": patch})


def release(env: SceneEnvironment, set_name: str, chosen: Collection[str] | None = None) -> None:
    """Let all held pods of a set, or only the pods with the `chosen` names, become Ready."""
    for pod in pods_of_set(env.history.view(), set_name):
        if _is_held(pod) and (chosen is None or name(pod) in chosen):
            env.patch("pods", name(pod), {"metadata": {"annotations": {HOLD_READY: None}}}, missing_ok=True)


def _is_held(pod: Mapping[str, Any]) -> bool:
    return HOLD_READY in pod["metadata"].get("annotations", {})


@predicate
def has_held_pod(view: View, set_name: str) -> bool | Unmet:
    """A set has a bound pod that is held."""
    return any(pods.is_bound(pod) and _is_held(pod) for pod in pods_of_set(view, set_name)) or Unmet("no pod is held")


def release_all(env: SceneEnvironment, before: Mapping[str, str]) -> None:
    """Let the held pods of sets become Ready, including the pods of later sub-steps, until the updates have ended.
    `before` has the generation hash of each set before its update."""

    def running(view: View) -> list[str]:
        return [
            set_name for set_name, generation in before.items() if is_updated(set_name, generation)(view) is not True
        ]

    def can_continue(view: View) -> bool:
        unfinished = running(view)
        return not unfinished or any(has_held_pod(set_name)(view) is True for set_name in unfinished)

    for _ in range(MAX_SUB_STEPS * len(before)):
        view = env.settled("pods wait to become Ready", can_continue)
        unfinished = running(view)
        if not any(has_held_pod(set_name)(view) is True for set_name in unfinished):
            break  # all updates have ended, or an update is stuck
        for set_name in unfinished:
            release(env, set_name)
    for set_name, generation in before.items():
        env.settle(f"{set_name}: ended", is_updated(set_name, generation), TIMEOUT_SECONDS)


# -- reading -----------------------------------------------------------------------------------------------------------


def map_of(view: View, set_name: str, replica: int = 0) -> Document | None:
    """Return the PodGangMap of a replica, identified by its contents and not by its name."""
    for gang_map in view.list(MAPS):
        if gang_maps.set_of(gang_map) == set_name and shapes.replica(gang_map) == replica:
            return gang_map
    return None


def layout(view: View, set_name: str, replica: int = 0) -> Layout:
    """Return the layout that the map of a replica declares."""
    return shapes.entries(map_of(view, set_name, replica))


def layouts(span: Span, set_name: str, replica: int = 0) -> list[Layout]:
    """Return the layout at the start of a span, and the layout that each later version of the map declares."""
    versions = [
        record.object
        for record in span.records(MAPS)
        if gang_maps.set_of(record.object) == set_name and shapes.replica(record.object) == replica
    ]
    return [layout(span.start_view(), set_name, replica), *map(shapes.entries, versions)]


def pods_of_set(view: View, set_name: str) -> list[Mapping[str, Any]]:
    """Return the pods of a set that are not being deleted."""
    return [
        pod
        for clique in view.names(CLIQUES)
        for pod in predicates.pods_of(view, clique)
        if label(pod, labels.PART_OF) == set_name
    ]


def pods_of_templates(view: View, set_name: str, *cliques: str) -> list[Mapping[str, Any]]:
    """Return the pods of a set that were created from these templates."""
    return [pod for pod in pods_of_set(view, set_name) if template_of(pod) in cliques]


def template_of(pod: Document) -> str:
    """Return the name of the template of a pod's clique. Template names of this profile contain no hyphen."""
    return label(pod, labels.CLIQUE).rpartition("-")[2]


def clique_by_uid(pod_objects: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return UID → PodClique for these pods."""
    return {uid(pod): label(pod, labels.CLIQUE) for pod in pod_objects}


def image_tags(view: View, set_name: str) -> dict[str, list[str]]:
    """Return clique template → distinct image tags of its pods."""
    tags_by_template: dict[str, set[str]] = {}
    for pod in pods_of_set(view, set_name):
        tags_by_template.setdefault(template_of(pod), set()).add(image_tag(pod))
    return {template: sorted(image_tags) for template, image_tags in sorted(tags_by_template.items())}


def image_tag(pod: Mapping[str, Any]) -> str:
    """Return the tag of a pod's image."""
    return str(pod["spec"]["containers"][0]["image"]).rpartition(":")[2]


def member_index(view: View) -> dict[str, str]:
    """Return member clique → `group/index`, read from the labels of the cliques."""
    index_by_clique = {}
    for clique in view.list(CLIQUES):
        if group := label(clique, labels.GROUP):
            prefix = f"{label(clique, labels.PART_OF)}-{label(clique, labels.SET_INDEX)}-"
            index_by_clique[name(clique)] = f"{group.removeprefix(prefix)}/{label(clique, labels.GROUP_INDEX)}"
    return index_by_clique


def gangs_by_key(view: View, set_name: str) -> dict[str, Document]:
    """Return entry key → PodGang, for the PodGangs of a set."""
    index_by_clique = member_index(view)
    own_gangs = [gang for gang in view.list(GANGS) if label(gang, labels.PART_OF) == set_name]
    return {shapes.key_of(gang, index_by_clique): gang for gang in own_gangs}


# -- conditions --------------------------------------------------------------------------------------------------------


@predicate
def is_deployed(view: View, set_name: str, replicas: int = 1) -> bool | Unmet:
    """The set is available, all pods of its cliques are Ready, and all gangs of its maps have been Ready."""
    if not (answer := predicates.is_available(set_name, replicas)(view)):
        return answer
    return is_complete(view, set_name)


def is_complete(view: View, set_name: str) -> bool | Unmet:
    """Every clique of the set has all its pods, all of them Ready, and every gang of its maps has been Ready."""
    for clique in view.list(CLIQUES):
        if label(clique, labels.PART_OF) == set_name:
            clique_pods = predicates.pods_of(view, name(clique))
            replicas = number(clique, "spec", "replicas")
            if len(clique_pods) != replicas or not all(map(pods.is_ready, clique_pods)):
                return Unmet(f"{name(clique)}: {sum(map(pods.is_ready, clique_pods))} of {replicas} pods are Ready")
    gangs = gangs_by_key(view, set_name)
    for gang_map in view.list(MAPS):
        for entry in shapes.entries(gang_map) if gang_maps.set_of(gang_map) == set_name else ():
            if not shapes.gang_was_ready(gangs.get(entry.key)):
                return Unmet(f"the gang of entry {entry.key} has not been Ready")
    return True


@predicate
def is_updated(view: View, set_name: str, before: str) -> bool | Unmet:
    """The set has another generation hash than `before`, its update has ended, and everything is Ready."""
    pcs = view.get(SETS, set_name)
    if updates.generation_hash(pcs) in ("", before):
        return Unmet(f"{set_name} still has the generation of before")
    if not updates.has_ended(pcs):
        return Unmet(f"the update of {set_name} has not ended: {dict(updates.progress(pcs))}")
    return is_complete(view, set_name)


@predicate
def has_unready_pods(view: View, set_name: str, count: int, tag: str) -> bool | Unmet:
    """Exactly `count` bound pods of a set have an image with this tag and are not Ready."""
    tagged_pods = [pod for pod in pods_of_set(view, set_name) if image_tag(pod) == tag]
    not_ready = sum(pods.is_bound(pod) and not pods.is_ready(pod) for pod in tagged_pods)
    return not_ready == count or Unmet(f"{not_ready} of {count} pods of image {tag} wait to become Ready")


@predicate
def has_lost_pods(view: View, initial_uids: Collection[str], count: int) -> bool:
    """More than `count` of the initial pods are deleted or being deleted."""
    present = {uid(pod) for clique in view.names(CLIQUES) for pod in predicates.pods_of(view, clique)}
    return len(set(initial_uids) - present) > count


@predicate
def map_holds(view: View, set_name: str, component: str, size: int) -> bool | Unmet:
    """The map holds `size` pods or replicas of a component."""
    entries = layout(view, set_name)
    sizes = {total(entries, Key("clique", component)), total(entries, Key("group", component))}
    return size in sizes or Unmet(f"entries hold {max(sizes)} of {component}, not {size}")


@predicate
def is_followed(view: View, set_name: str, component: str, size: int) -> bool | Unmet:
    """The map holds `size` pods or replicas of a component, and everything is Ready."""
    return map_holds(set_name, component, size)(view) and is_complete(view, set_name)


@predicate
def has_only_gangs_of_entries(view: View, set_name: str) -> bool | Unmet:
    """Every PodGang of the set belongs to an entry that is not empty."""
    stored = [gang_map for gang_map in view.list(MAPS) if gang_maps.set_of(gang_map) == set_name]
    keys = {entry.key for gang_map in stored for entry in shapes.entries(gang_map)}
    unexpected = sorted(gangs_by_key(view, set_name).keys() - keys)
    return not unexpected or Unmet(f"PodGangs without an entry: {', '.join(unexpected)}")


@predicate
def is_recreated(view: View, set_name: str, initial_uids: Mapping[str, str]) -> bool | Unmet:
    """No initial pod exists any more, and everything is Ready."""
    remaining = clique_by_uid(pods_of_set(view, set_name)).keys() & initial_uids.keys()
    if remaining:
        return Unmet(f"{len(remaining)} of {len(initial_uids)} pods are left")
    return is_complete(view, set_name) if view.names(CLIQUES) else Unmet("there are no cliques")


@predicate
def reports_ready_pods(view: View, clique: str, count: int) -> bool | Unmet:
    """A clique reports `count` Ready pods."""
    ready = number(view.get(CLIQUES, clique), "status", "readyReplicas")
    return ready == count or Unmet(f"readyReplicas of {clique} is {ready}, not {count}")


def cliques_of(entry: Entry, prefix: str) -> list[str]:
    """Return the full names of the PodCliques whose pods an entry holds."""
    standalone = [f"{prefix}-{clique}" for clique, size in entry.cliques.items() if size]
    grouped = [
        f"{prefix}-{group}-{index}-{member}"
        for group, indices in entry.groups.items()
        for index in indices
        for member in members(group)
    ]
    return sorted([*standalone, *grouped])
