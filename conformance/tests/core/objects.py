"""What is expected of the objects of a set but its pods: names, labels, owners, finalizers, specs."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.grove import expected_pods, labels
from conformance.grove.expected import Expected, Owner
from conformance.grove.fields import (
    Document,
    at,
    controller,
    finalizers,
    name,
    number,
    text,
    texts,
)
from conformance.grove.fields import labels as labels_of
from conformance.history.record import ADDED, Record
from conformance.history.view import View
from conformance.suite.case import Case
from conformance.testing import predicates
from conformance.testing.comparison import of, same, same_labels
from conformance.testing.services import headless_services

PLURALS = {
    "PodCliqueSet": "podcliquesets",
    "PodCliqueScalingGroup": "podcliquescalinggroups",
    "PodClique": "podcliques",
}


def check_names_and_labels(case: Case, wanted: Expected, view: View) -> None:
    """CORE-001, CORE-002, CORE-003."""
    managed: dict[str, dict[str, Mapping[str, str]]] = {
        "podcliques": {clique.name: clique.labels for clique in wanted.cliques.values()},
        "podcliquescalinggroups": {group.name: group.labels for group in wanted.groups.values()},
        "podgangs": {gang.name: gang.labels for gang in wanted.gangs.values()},
        "services": {service.name: service.labels for service in wanted.services.values()},
    }
    for resource, objects in managed.items():
        case.expect("CORE-001", f"{resource} by name", sorted(objects), view.names(resource))
        seen = {found: of(one := view.get(resource, found), labels_of(one)) for found in objects}
        same_labels(case, f"labels of {resource}", objects, seen)
    of_base = [clique.name for clique in wanted.cliques.values() if not clique.base_gang]
    marked = [found for found in of_base if labels.BASE_GANG in labels_of(view.get("podcliques", found))]
    case.expect("CORE-003", "cliques of the base gang that name a base gang", [], marked)


def check_owners(case: Case, wanted: Expected, view: View) -> None:
    """CORE-004."""
    owned: dict[str, dict[str, Owner]] = {
        "podcliques": {clique.name: clique.owner for clique in wanted.cliques.values()},
        "podcliquescalinggroups": {group.name: group.owner for group in wanted.groups.values()},
        "podgangs": {gang.name: gang.owner for gang in wanted.gangs.values()},
        "services": {service.name: service.owner for service in wanted.services.values()},
        "pods": {
            name(pod): ("PodClique", clique)
            for clique, found in predicates.by_clique(view, wanted.cliques.values()).items()
            for pod in found
        },
    }
    for resource, owners in owned.items():
        right = {found: _reference(owner, view) for found, owner in owners.items()}
        seen = {
            found: of(_owner(owner, view), of(one := view.get(resource, found), _shown(one)))
            for found, owner in owners.items()
        }
        same(case, "CORE-004", f"controllers of {resource}", right, seen)


def _reference(owner: Owner, view: View) -> dict[str, object]:
    kind, owner_name = owner
    uid = text(_owner(owner, view), "metadata", "uid")
    return {"kind": kind, "name": owner_name, "uid": uid, "blockOwnerDeletion": True}


def _owner(owner: Owner, view: View) -> Document | None:
    kind, owner_name = owner
    return view.get(PLURALS[kind], owner_name)


def _shown(seen: Document | None) -> dict[str, object]:
    reference = controller(seen)
    return {key: reference.get(key) for key in ("kind", "name", "uid", "blockOwnerDeletion")}


def check_finalizers(case: Case, wanted: Expected, view: View, set_name: str) -> None:
    """CORE-005."""
    parts = (
        (labels.SET_FINALIZER, "podcliquesets", [set_name]),
        (labels.CLIQUE_FINALIZER, "podcliques", list(wanted.cliques)),
        (labels.GROUP_FINALIZER, "podcliquescalinggroups", list(wanted.groups)),
    )
    for finalizer, resource, found in parts:
        held = {one: of(it := view.get(resource, one), finalizer in finalizers(it)) for one in found}
        same(case, "CORE-005", f"{resource} with the finalizer {finalizer}", dict.fromkeys(found, True), held)
        if resource != "podcliquesets":  # users make those
            late = sorted({r.name for r in _made(case, resource) if finalizer not in finalizers(r.object)})
            case.expect("CORE-005", f"{resource} made without the finalizer {finalizer}", [], late)


def _made(case: Case, resource: str) -> list[Record]:
    """The first record of each object that was made during the test."""
    return [r for r in case.history.records(resource) if r.kind == ADDED and not r.listed]


def check_services(case: Case, wanted: Expected, view: View) -> None:
    """CORE-006."""
    same(case, "CORE-006", "headless Services", *headless_services(wanted, view))


def check_specs(case: Case, wanted: Expected, view: View) -> None:
    """CORE-015."""
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for clique in wanted.cliques.values():
        found = view.get("podcliques", clique.name)
        spec = at(found, "spec")
        right[clique.name] = {
            "replicas": clique.template.replicas,
            "minAvailable": clique.template.floor,
            "roleName": clique.template.role,
            "podSpec": clique.template.pod_spec,
        }
        seen[clique.name] = of(
            found,
            {
                "replicas": number(spec, "replicas"),
                "minAvailable": number(spec, "minAvailable"),
                "roleName": text(spec, "roleName"),
                "podSpec": expected_pods.kept(clique.template.pod_spec, at(spec, "podSpec")),
            },
        )
    for group in wanted.groups.values():
        found = view.get("podcliquescalinggroups", group.name)
        spec = at(found, "spec")
        right[group.name] = {
            "replicas": group.replicas,
            "minAvailable": group.floor,
            "cliqueNames": sorted(group.cliques),
        }
        seen[group.name] = of(
            found,
            {
                "replicas": number(spec, "replicas"),
                "minAvailable": number(spec, "minAvailable"),
                "cliqueNames": sorted(texts(spec, "cliqueNames")),
            },
        )
    same(case, "CORE-015", "specs of cliques and scaling groups", right, seen)
