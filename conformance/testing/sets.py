"""PodCliqueSets that tests create, and the hashes that operators store for them."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.grove import labels, template_hashes
from conformance.grove.fields import at, items, label, name, text, uid
from conformance.grove.template_hashes import CANONICAL, HashScheme, NotReadable
from conformance.history.query import Predicate, Unmet, predicate
from conformance.history.view import View
from conformance.suite.scenes.scene_environment import SceneEnvironment
from conformance.testing import predicates

SETS, CLIQUES, GROUPS = "podcliquesets", "podcliques", "podcliquescalinggroups"
Object = dict[str, Any]


def manifest(
    env: SceneEnvironment,
    set_name: str,
    cliques: Iterable[Mapping[str, Any]],
    *,
    startup: str = "",
    groups: Mapping[str, list[str]] | None = None,
    replicas: int = 1,
    **spec: Any,
) -> Object:
    """Return the manifest of a set with these cliques."""
    template: Object = {"cliques": copy.deepcopy(list(cliques))}
    if startup:
        template["cliqueStartupType"] = startup
    if groups:
        template["podCliqueScalingGroups"] = [
            {"name": group, "cliqueNames": members, "replicas": 2, "minAvailable": 1}
            for group, members in groups.items()
        ]
    return env.placed(
        {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueSet",
            "metadata": {"name": set_name},
            "spec": {"replicas": replicas, "updateStrategy": {"type": "RollingRecreate"}, "template": template, **spec},
        }
    )


def update_spec(env: SceneEnvironment, manifest: Object) -> None:
    """Replace the spec of an existing set with the spec of another manifest that has the same name."""
    env.patch(SETS, name(manifest), {"spec": manifest["spec"]})


def pods_per_replica(workload: Object) -> int:
    """Return the number of pods in one replica of a set that `manifest` returned and whose cliques have one pod
    each."""
    template = workload["spec"]["template"]
    grouped = {name for group in template.get("podCliqueScalingGroups", ()) for name in group["cliqueNames"]}
    return sum(2 if clique["name"] in grouped else 1 for clique in template["cliques"])


def generation_hash(view: View, set_name: str) -> str:
    """Return the generation hash in a set's status."""
    return text(view.get(SETS, set_name), "status", "currentGenerationHash")


def clique_template_hash(view: View, clique: str) -> str:
    """Return the template hash of a PodClique; empty if the PodClique does not exist."""
    return label(view.get(CLIQUES, clique) or {}, labels.TEMPLATE_HASH)


def template_hashes_by_pod(view: View) -> dict[str, str]:
    """Return the template hash of each pod that is not being deleted, keyed by name and UID so that a recreated pod has
    another key."""
    return {f"{name(pod)} {uid(pod)}": label(pod, labels.TEMPLATE_HASH) for pod in pods(view)}


def pods(view: View) -> list[Mapping[str, Any]]:
    """Return all pods that are not being deleted."""
    pods_of_cliques = (predicates.pods_of(view, clique) for clique in view.names(CLIQUES))
    return [pod for members in pods_of_cliques for pod in members]


def stored_hashes(view: View, set_name: str, replicas: int = 1) -> dict[str, str]:
    """Return location → hash for the hashes in the status of a set and in the labels and statuses of its cliques and
    groups. Only the first `replicas` replicas are included."""
    prefixes = tuple(f"{set_name}-{index}-" for index in range(replicas))
    hashes = {f"{SETS}/{set_name}": generation_hash(view, set_name)}
    for resource, fields in (
        (CLIQUES, ("currentPodTemplateHash", "currentPodCliqueSetGenerationHash")),
        (GROUPS, ("currentPodCliqueSetGenerationHash",)),
    ):
        for item in view.list(resource):
            if name(item).startswith(prefixes):
                hashes |= {f"{resource}/{name(item)} {field}": text(item, "status", field) for field in fields}
                if resource == CLIQUES:
                    hashes[f"{resource}/{name(item)} label"] = label(item, labels.TEMPLATE_HASH)
    return hashes


def update_progress(view: View, set_name: str) -> object:
    """Return the update progress that a set reports, or None."""
    return at(view.get(SETS, set_name), "status", "updateProgress")


@predicate
def have_pods(view: View, counts: Mapping[str, int]) -> bool | Unmet:
    """Each set has this number of pods and a generation hash, and each of its cliques has a template hash."""
    pods_by_set = Counter(label(pod, labels.PART_OF) for pod in pods(view))
    for set_name, count in counts.items():
        if pods_by_set[set_name] != count:
            return Unmet(f"{set_name} has {pods_by_set[set_name]} of {count} pods")
        missing = [
            location for location, hash in stored_hashes(view, set_name).items() if not hash and "label" in location
        ]
        if missing or not generation_hash(view, set_name):
            return Unmet(f"there is no hash at {', '.join(missing) or set_name}")
    return True


def have_second_replica(names: Iterable[str]) -> Predicate:
    """Each of these sets has a clique that belongs to its second replica."""
    expected = list(names)

    def check(view: View) -> bool | Unmet:
        missing = [
            name for name in expected if not any(clique.startswith(f"{name}-1-") for clique in view.names(CLIQUES))
        ]
        return not missing or Unmet(f"no clique of a second replica: {', '.join(missing)}")

    return check


def non_canonical_hashes(view: View, sets: Iterable[str]) -> list[str]:
    """Return the stored hashes that differ from the hashes of Grove's canonical form. They are computed for each
    library version, and the version with the fewest differences counts. The template is read back from the API server,
    because webhooks may have rewritten its quantities."""
    set_names = list(sets)
    differences = [
        [difference for set_name in set_names for difference in _hash_differences(view, set_name, way)]
        for way in CANONICAL
    ]
    return min(differences, key=len)


def _hash_differences(view: View, set_name: str, way: HashScheme) -> list[str]:
    template: Any = at(view.get(SETS, set_name), "spec", "template") or {}
    try:
        expected_hash = template_hashes.of_set(template, way)
        stored_hash = generation_hash(view, set_name)
        differences = (
            [f"{set_name}: {stored_hash}, not {expected_hash} ({way})"] if stored_hash != expected_hash else []
        )
        for clique in items(template, "cliques"):
            expected_hash = template_hashes.of_clique(clique, template.get("priorityClassName") or "", way)
            clique_name = f"{set_name}-0-{text(clique, 'name')}"
            if view.get(CLIQUES, clique_name) is not None and clique_template_hash(view, clique_name) != expected_hash:
                differences.append(
                    f"{clique_name}: {clique_template_hash(view, clique_name)}, not {expected_hash} ({way})"
                )
    except (NotReadable, KeyError, TypeError) as error:
        return [f"{set_name}: {error}"]
    return differences
