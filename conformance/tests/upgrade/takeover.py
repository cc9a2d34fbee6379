"""Sets, hashes and comparisons that the tests of upgrades share."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from conformance.grove import labels, template_hashes
from conformance.grove.fields import at, items, label, name, number, terminating, text
from conformance.grove.restricted import restricted
from conformance.grove.template_hashes import HashScheme
from conformance.grove.template_pairs import Spec, template
from conformance.history.query import Unmet, predicate
from conformance.history.record import ADDED, DELETED
from conformance.history.view import View
from conformance.testing import predicates, sets
from conformance.testing.scene import SceneEnvironment, Span
from conformance.testing.sets import CLIQUES, GROUPS, SETS, Object

SOLO, FRONT, MEMBERS = "z-solo", "front", ("y-first", "b-second")


def pod_spec(image: str = "engine:1") -> Spec:
    """Return a pod spec with lists that are not sorted by their keys, so that each scheme computes a different hash."""

    def container(container_name: str) -> Spec:
        mounts = [{"name": "shared", "mountPath": "/shared"}, {"name": "cache", "mountPath": "/cache"}]
        return {"name": container_name, "image": f"registry.example/{image}", "volumeMounts": mounts}

    return restricted(
        {
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 1,
            "containers": [container("sidecar"), container("main")],
            "volumes": [{"name": "shared", "emptyDir": {}}, {"name": "cache", "emptyDir": {}}],
        }
    )


def workload(env: SceneEnvironment, set_name: str, replicas: int = 1, startup: str = "", **images: str) -> Object:
    """Return a set of two standalone cliques and a scaling group of two cliques. `images` are keyed by clique, with _
    for -."""
    image = {clique: images.get(clique.replace("-", "_"), "engine:1") for clique in (SOLO, FRONT, *MEMBERS)}
    cliques = [template(clique, pod_spec(image[clique])) for clique in image]
    return sets.manifest(env, set_name, cliques, startup=startup, groups={"g": list(MEMBERS)}, replicas=replicas)


def small_workload(
    env: SceneEnvironment, set_name: str, startup: str = "", replicas: int = 1, solo: str = "engine:1"
) -> Object:
    """Return a set of two cliques with one pod each."""
    cliques = [template(SOLO, pod_spec(solo)), template(FRONT, pod_spec())]
    return sets.manifest(env, set_name, cliques, startup=startup, replicas=replicas)


def all_hashes(view: View, set_name: str) -> dict[str, str]:
    """Return location → hash for all hashes of a set, including the hashes of its groups, cliques and pods."""
    hashes = sets.stored_hashes(view, set_name, number(view.get(SETS, set_name), "spec", "replicas") or 0)
    for pod in sets.pods(view):
        if label(pod, labels.PART_OF) == set_name:
            hashes[f"pods/{name(pod)} label"] = label(pod, labels.TEMPLATE_HASH)
    return hashes


def expected_hashes(view: View, set_name: str, model: str) -> dict[str, str]:
    """Return location → hash for a set, with the hashes of `model`, a set with equal templates."""
    generation = sets.generation_hash(view, model)
    hashes = {}
    for location in all_hashes(view, set_name):
        resource, _, object_and_field = location.partition("/")
        if resource == SETS or "Generation" in object_and_field:
            hashes[location] = generation
        else:
            hashes[location] = sets.clique_template_hash(
                view, f"{model}-0-{_template_of(view, resource, object_and_field.split()[0], model)}"
            )
    return hashes


def _template_of(view: View, resource: str, object_name: str, model: str) -> str:
    """Return the suffix of the name of the model's clique that has the same template as an object."""
    item = view.get(resource, object_name) or {}
    clique = view.get(CLIQUES, label(item, labels.CLIQUE)) or {} if resource == "pods" else item
    role = text(clique, "spec", "roleName")
    return f"g-0-{role}" if role in MEMBERS else role


@predicate
def has_hashes_of(view: View, set_name: str, model: str) -> bool | Unmet:
    """All stored hashes of a set equal those of `model`, which the current operator has created."""
    expected, now = expected_hashes(view, set_name, model), all_hashes(view, set_name)
    differing = [
        f"{location} is {now[location]!r}, not {hash!r}" for location, hash in expected.items() if now[location] != hash
    ]
    if not expected or not all(expected.values()):
        return Unmet(f"{model} has no hashes yet")
    return not differing or Unmet(f"{len(differing)} of {len(expected)} hashes of {set_name} differ: {differing[0]}")


@predicate
def has_hashes(view: View, set_name: str, expected: Mapping[str, str]) -> bool | Unmet:
    """All stored hashes of a set equal the expected hashes."""
    now = all_hashes(view, set_name)
    differing = [
        f"{location} is {now.get(location)!r}" for location, hash in expected.items() if now.get(location) != hash
    ]
    return not differing or Unmet(f"{len(differing)} of {len(expected)} hashes of {set_name} differ: {differing[0]}")


@predicate
def has_all_hashes(view: View, set_name: str, pods: int) -> bool | Unmet:
    """A set has this number of pods, and all its hashes exist."""
    hashes = all_hashes(view, set_name)
    missing = [location for location, hash in hashes.items() if not hash]
    count = sum(location.startswith("pods/") for location in hashes)
    if count != pods:
        return Unmet(f"{set_name} has {count} of {pods} pods")
    return not missing or Unmet(f"there is no hash at {', '.join(missing)}")


@predicate
def is_rolled_out(view: View, set_name: str, cliques: Iterable[str], before: Mapping[str, str]) -> bool | Unmet:
    """The update of a set has ended, and these cliques have only new pods."""
    for clique in cliques:
        pods = predicates.pods_of(view, clique)
        old = [text(pod, "metadata", "name") for pod in pods if text(pod, "metadata", "uid") in before.values()]
        if old or not pods:
            return Unmet(f"{clique} has {', '.join(old) or 'no pod'}")
    end_time = text(view.get(SETS, set_name), "status", "updateProgress", "updateEndedAt")
    return end_time != "" or Unmet(f"the update of {set_name} has not ended")


def restart_records(span: Span, set_name: str) -> list[str]:
    """Return the records in which pods of a set were created, deleted or marked for deletion."""
    records = []
    for record in span.records("pods"):
        changed = record.kind in (ADDED, DELETED) or terminating(record.object)
        if changed and label(record.object, labels.PART_OF) == set_name:
            records.append(str(record))
    return records


def update_records(span: Span, set_name: str) -> list[str]:
    """Return the records in which a set reports an update."""
    records = span.records(SETS, set_name)
    return [str(record) for record in records if at(record.object, "status", "updateProgress") is not None]


def write_hashes(env: SceneEnvironment, set_name: str, way: HashScheme | None, **earlier: Object) -> None:
    """Replace all stored hashes of a set with the hashes of another operator, while no operator is running. Without a
    `way`, the hashes do not match any template. `earlier` has the fields of pod specs that differed when that operator
    ran, as if the template had been changed since. It is keyed by clique, with _ for -."""
    view = env.history.view()
    set_template: Any = copy.deepcopy(at(view.get(SETS, set_name), "spec", "template") or {})
    for entry in set_template.get("cliques", ()):
        entry["spec"]["podSpec"].update(earlier.get(entry["name"].replace("-", "_"), {}))
    by_name = {text(entry, "name"): entry for entry in items(set_template, "cliques")}

    def of_clique(role: str) -> str:
        return (
            template_hashes.of_clique(by_name[role], set_template.get("priorityClassName") or "", way)
            if way
            else "4444"
        )

    generation = template_hashes.of_set(set_template, way) if way else "5555"
    env.patch(SETS, set_name, {"status": {"currentGenerationHash": generation}}, subresource="status")
    for resource in (GROUPS, CLIQUES):
        for item in view.list(resource):
            if label(item, labels.PART_OF) != set_name:
                continue
            status: Object = {"currentPodCliqueSetGenerationHash": generation}
            progress = {"podCliqueSetGenerationHash": generation}
            if resource == CLIQUES:
                template_hash = of_clique(text(item, "spec", "roleName"))
                status["currentPodTemplateHash"] = progress["podTemplateHash"] = template_hash
                env.patch(resource, name(item), {"metadata": {"labels": {labels.TEMPLATE_HASH: template_hash}}})
            if at(item, "status", "updateProgress") is not None:  # the update had ended under that operator
                status["updateProgress"] = progress
            env.patch(resource, name(item), {"status": status}, subresource="status")
    for pod in sets.pods(view):
        if label(pod, labels.PART_OF) == set_name:
            clique = view.get(CLIQUES, label(pod, labels.CLIQUE)) or {}
            role = text(clique, "spec", "roleName")
            if way is None or role.replace("-", "_") in earlier:
                env.outdate(name(pod))
            env.patch("pods", name(pod), {"metadata": {"labels": {labels.TEMPLATE_HASH: of_clique(role)}}})
