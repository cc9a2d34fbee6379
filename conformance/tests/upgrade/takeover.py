"""What the tests of upgrades make, look at and compare."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from conformance.grove import labels, template_hashes
from conformance.grove.fields import at, items, label, name, number, terminating, text
from conformance.grove.template_hashes import Way
from conformance.grove.template_pairs import Spec, template
from conformance.history.query import Unmet
from conformance.history.record import ADDED, DELETED
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.testing import predicates, sets
from conformance.testing.sets import CLIQUES, GROUPS, SETS, Object

SOLO, FRONT, MEMBERS = "z-solo", "front", ("y-first", "b-second")


def pod_spec(image: str = "engine:1") -> Spec:
    """A pod spec whose lists are not in the order of their keys, so that no two forms of its hash are equal."""

    def container(each: str) -> Spec:
        mounts = [{"name": "shared", "mountPath": "/shared"}, {"name": "cache", "mountPath": "/cache"}]
        return {"name": each, "image": f"registry.example/{image}", "volumeMounts": mounts}

    return {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 1,
        "containers": [container("sidecar"), container("main")],
        "volumes": [{"name": "shared", "emptyDir": {}}, {"name": "cache", "emptyDir": {}}],
    }


def workload(case: Case, set_name: str, replicas: int = 1, startup: str = "", **images: str) -> Object:
    """A set of two standalone cliques and a scaling group of two; `images` by clique, with _ for -."""
    cliques = [template(each, pod_spec(images.get(each.replace("-", "_"), "engine:1")))
               for each in (SOLO, FRONT, *MEMBERS)]  # fmt: skip
    return sets.made(case, set_name, cliques, startup=startup, groups={"g": list(MEMBERS)}, replicas=replicas)


def small(case: Case, set_name: str, startup: str = "", replicas: int = 1, solo: str = "engine:1") -> Object:
    """A set of two cliques with a pod each."""
    cliques = [template(SOLO, pod_spec(solo)), template(FRONT, pod_spec())]
    return sets.made(case, set_name, cliques, startup=startup, replicas=replicas)


def everything(view: View, set_name: str) -> dict[str, str]:
    """All hashes of a set by where they stand: its own, those of its groups, cliques and pods."""
    found = sets.stored(view, set_name, number(view.get(SETS, set_name), "spec", "replicas") or 0)
    for pod in sets.pods(view):
        if label(pod, labels.PART_OF) == set_name:
            found[f"pods/{name(pod)} label"] = label(pod, labels.TEMPLATE_HASH)
    return found


def as_of(view: View, set_name: str, model: str) -> dict[str, str]:
    """What `everything` of a set is to be, if it is to have the hashes of another set with equal templates."""
    generation = sets.generation(view, model)
    found = {}
    for where in everything(view, set_name):
        kind, _, rest = where.partition("/")
        if kind == SETS or "Generation" in rest:
            found[where] = generation
        else:
            found[where] = sets.of_clique(view, f"{model}-0-{_template_of(view, kind, rest.split()[0], model)}")
    return found


def _template_of(view: View, kind: str, which: str, model: str) -> str:
    """The rest of the name of the model's clique of the same template."""
    item = view.get(kind, which) or {}
    clique = view.get(CLIQUES, label(item, labels.CLIQUE)) or {} if kind == "pods" else item
    role = text(clique, "spec", "roleName")
    return f"g-0-{role}" if role in MEMBERS else role


def complete(found: Mapping[str, str]) -> bool:
    return bool(found) and all(found.values())


def has_hashes_of(set_name: str, model: str) -> predicates.Predicate:
    """All stored hashes of a set are those of another one that the present operator has made."""

    def seen(view: View) -> bool | Unmet:
        wanted, now = as_of(view, set_name, model), everything(view, set_name)
        late = [f"{where} is {now[where]!r}, not {hash!r}" for where, hash in wanted.items() if now[where] != hash]
        if not complete(wanted):
            return Unmet(f"{model} has no hashes yet")
        return not late or Unmet(f"{len(late)} of {len(wanted)} hashes of {set_name} are others: {late[0]}")

    return seen


def has_hashes(set_name: str, wanted: Mapping[str, str]) -> predicates.Predicate:
    """All stored hashes of a set are these."""

    def seen(view: View) -> bool | Unmet:
        now = everything(view, set_name)
        late = [f"{where} is {now.get(where)!r}" for where, hash in wanted.items() if now.get(where) != hash]
        return not late or Unmet(f"{len(late)} of {len(wanted)} hashes of {set_name} are others: {late[0]}")

    return seen


def has_all_hashes(set_name: str, pods: int) -> predicates.Predicate:
    """Every hash of a set is there, and so many pods are."""

    def seen(view: View) -> bool | Unmet:
        found = everything(view, set_name)
        lacking = [where for where, hash in found.items() if not hash]
        count = sum(where.startswith("pods/") for where in found)
        if count != pods:
            return Unmet(f"{set_name} has {count} of {pods} pods")
        return not lacking or Unmet(f"there is no hash at {', '.join(lacking)}")

    return seen


def restarts(case: Case, set_name: str, since: int) -> list[str]:
    """Pods of a set that were made, deleted or marked for it since a mark."""
    found = []
    for record in case.history.records("pods", since=since):
        came_or_went = record.kind in (ADDED, DELETED) or terminating(record.object)
        if came_or_went and label(record.object, labels.PART_OF) == set_name:
            found.append(str(record))
    return found


def updates(case: Case, set_name: str, since: int) -> list[str]:
    """States of a set since a mark in which it tells of an update."""
    records = case.history.records(SETS, set_name, since=since)
    return [str(record) for record in records if at(record.object, "status", "updateProgress") is not None]


def write_hashes(case: Case, set_name: str, way: Way | None, **earlier: Object) -> None:
    """Puts the hashes of another operator in the place of all that are stored of a set, while no operator runs. Without
    a way they are hashes of nothing. `earlier` are pod specs that cliques had when that operator ran, by clique, with _
    for -: the template has been changed since."""
    view = case.history.view()
    whole: Any = copy.deepcopy(at(view.get(SETS, set_name), "spec", "template") or {})
    for each in whole.get("cliques", ()):
        each["spec"]["podSpec"].update(earlier.get(each["name"].replace("-", "_"), {}))
    by_name = {text(each, "name"): each for each in items(whole, "cliques")}

    def of_clique(role: str) -> str:
        return template_hashes.of_clique(by_name[role], whole.get("priorityClassName") or "", way) if way else "4444"

    generation = template_hashes.of_set(whole, way) if way else "5555"
    case.patch(SETS, set_name, {"status": {"currentGenerationHash": generation}}, subresource="status")
    for kind in (GROUPS, CLIQUES):
        for item in view.list(kind):
            if label(item, labels.PART_OF) != set_name:
                continue
            status: Object = {"currentPodCliqueSetGenerationHash": generation}
            progress = {"podCliqueSetGenerationHash": generation}
            if kind == CLIQUES:
                own = of_clique(text(item, "spec", "roleName"))
                status["currentPodTemplateHash"] = progress["podTemplateHash"] = own
                case.patch(kind, name(item), {"metadata": {"labels": {labels.TEMPLATE_HASH: own}}})
            if at(item, "status", "updateProgress") is not None:  # of an update that had ended under that operator
                status["updateProgress"] = progress
            case.patch(kind, name(item), {"status": status}, subresource="status")
    for pod in sets.pods(view):
        if label(pod, labels.PART_OF) == set_name:
            clique = view.get(CLIQUES, label(pod, labels.CLIQUE)) or {}
            role = text(clique, "spec", "roleName")
            if way is None or role.replace("-", "_") in earlier:
                case.outdate(name(pod))
            case.patch("pods", name(pod), {"metadata": {"labels": {labels.TEMPLATE_HASH: of_clique(role)}}})
