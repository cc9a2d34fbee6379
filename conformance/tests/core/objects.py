"""PodCliques, scaling groups, PodGangs, Services and Pods of a set: names, labels, owners, finalizers and specs, as
expected and as seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from conformance.grove import labels, pod_specs
from conformance.grove.expected import Expected, Owner
from conformance.grove.fields import Document, at, controller, name, number, text, texts
from conformance.grove.fields import labels as labels_of
from conformance.grove.template import CliqueTemplate
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.accepted_pods import AcceptedPods
from conformance.testing.comparison import Comparison, carried, of
from conformance.testing.owners import PLURALS

Labels = Mapping[str, str]

COMMON = (labels.MANAGED_BY, labels.PART_OF, labels.COMPONENT, labels.NAME)
"""The labels of app.kubernetes.io."""


def is_of_set(key: str) -> bool:
    """Whether a label of this key says by whom and for which set an object is managed."""
    return key in (labels.MANAGED_BY, labels.PART_OF)


def is_of_gangs(key: str) -> bool:
    """Whether a label of this key names a gang: which gang that is differs between the lines of the contract."""
    return key in (labels.GANG, labels.BASE_GANG)


def managed(wanted: Expected) -> dict[str, dict[str, Labels]]:
    """By resource: the names that the objects of the set have, and their labels. Pods have random names."""
    return {
        "podcliques": {clique.name: clique.labels for clique in wanted.cliques.values()},
        "podcliquescalinggroups": {group.name: group.labels for group in wanted.groups.values()},
        "podgangs": {gang.name: gang.labels for gang in wanted.gangs.values()},
        "services": {service.name: service.labels for service in wanted.services.values()},
    }


def labels_carried(
    wanted: Mapping[str, Labels], resource: str, view: View, chosen: Callable[[str], bool]
) -> Comparison:
    """By object: the labels that it has to have, of the chosen keys. Further labels are allowed beside them."""
    right = {found: {key: value for key, value in tags.items() if chosen(key)} for found, tags in wanted.items()}
    have = {found: of(one := view.get(resource, found), labels_of(one)) for found in wanted}
    return dict(right), dict(carried(right, have))


def owners(wanted: Expected, view: View) -> dict[str, dict[str, Owner]]:
    """By resource: kind and name of the controller that each object has to have."""
    return {
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


def controllers(wanted: Mapping[str, Owner], resource: str, view: View) -> Comparison:
    """By object: its controller, which is the present object of that name."""
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for found, (kind, owner_name) in wanted.items():
        owner, one = view.get(PLURALS[kind], owner_name), view.get(resource, found)
        right[found] = {"kind": kind, "name": owner_name, "uid": text(owner, "metadata", "uid")}
        reference = controller(one)
        seen[found] = of(owner, of(one, {key: reference.get(key) for key in ("kind", "name", "uid")}))
    return right, seen


def blocking(wanted: Mapping[str, Owner], resource: str, view: View) -> Comparison:
    """By object: whether the reference to its controller blocks the controller's deletion in the foreground."""
    seen = {found: of(one := view.get(resource, found), controller(one).get("blockOwnerDeletion")) for found in wanted}
    return dict.fromkeys(wanted, True), dict(seen)


def finalizers_of(wanted: Expected, set_name: str) -> Iterator[tuple[str, str, list[str]]]:
    """Finalizer, resource, and the names of the objects that have to carry it."""
    yield labels.SET_FINALIZER, "podcliquesets", [set_name]
    yield labels.CLIQUE_FINALIZER, "podcliques", list(wanted.cliques)
    yield labels.GROUP_FINALIZER, "podcliquescalinggroups", list(wanted.groups)


def specs(wanted: Expected, accepted: AcceptedPods, view: View) -> Comparison:
    """The specs of cliques and scaling groups, which repeat their templates."""
    right: dict[str, object] = {}
    seen: dict[str, object] = {}
    for clique in wanted.cliques.values():
        found = view.get("podcliques", clique.name)
        right[clique.name] = {
            "replicas": clique.template.replicas,
            "minAvailable": clique.template.min_available,
            "roleName": clique.template.role,
            "podSpec": _pod_spec(clique.template.pod_spec, clique.template, accepted),
        }
        seen[clique.name] = of(found, _clique_spec(found, clique.template, accepted))
    for group in wanted.groups.values():
        found = view.get("podcliquescalinggroups", group.name)
        right[group.name] = {
            "replicas": group.replicas,
            "minAvailable": group.min_available,
            "cliqueNames": sorted(group.cliques),
        }
        seen[group.name] = of(found, {**_sizes(found), "cliqueNames": sorted(texts(found, "spec", "cliqueNames"))})
    return right, seen


def _clique_spec(found: Document | None, template: CliqueTemplate, accepted: AcceptedPods) -> dict[str, object]:
    seen = at(found, "spec", "podSpec")
    pod_spec = seen if isinstance(seen, Mapping) else {}
    return {
        **_sizes(found),
        "roleName": text(found, "spec", "roleName"),
        "podSpec": _pod_spec(pod_spec, template, accepted),
    }


def _pod_spec(pod_spec: Document, template: CliqueTemplate, accepted: AcceptedPods) -> dict[str, object]:
    return pod_specs.of_clique(pod_spec, template.pod_spec, accepted.spec(template.name))


def _sizes(found: Document | None) -> dict[str, object]:
    return {key: number(found, "spec", key) for key in ("replicas", "minAvailable")}
