"""The expected and observed names, labels, owners, finalizers and specs of a set's PodCliques, scaling groups,
PodGangs, Services and pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from conformance.grove import labels, pod_specs
from conformance.grove.expected import ExpectedObjects, Owner
from conformance.grove.fields import Document, at, controller, name, number, text, texts
from conformance.grove.fields import labels as labels_of
from conformance.grove.template import CliqueTemplate
from conformance.history.view import View
from conformance.testing import predicates
from conformance.testing.accepted_pods import AcceptedPods
from conformance.testing.comparison import Comparison, value_or_absent, values_of_expected_keys
from conformance.testing.owners import PLURALS

Labels = Mapping[str, str]

COMMON_LABELS = (labels.MANAGED_BY, labels.PART_OF, labels.COMPONENT, labels.NAME)
"""The keys of the app.kubernetes.io labels."""


def is_of_set(key: str) -> bool:
    """Return whether a label with this key names an object's manager or its set."""
    return key in (labels.MANAGED_BY, labels.PART_OF)


def is_of_gangs(key: str) -> bool:
    """Return whether a label with this key names a gang. Which gang it names differs between the release lines."""
    return key in (labels.GANG, labels.BASE_GANG)


def labels_by_resource(expected_set: ExpectedObjects) -> dict[str, dict[str, Labels]]:
    """Return resource → object name → labels for the set's objects. Pods are left out because they have random
    names."""
    return {
        "podcliques": {clique.name: clique.labels for clique in expected_set.cliques.values()},
        "podcliquescalinggroups": {group.name: group.labels for group in expected_set.groups.values()},
        "podgangs": {gang.name: gang.labels for gang in expected_set.gangs.values()},
        "services": {service.name: service.labels for service in expected_set.services.values()},
    }


def compare_labels(
    labels_by_name: Mapping[str, Labels], resource: str, view: View, is_chosen: Callable[[str], bool]
) -> Comparison:
    """Return the expected and observed labels of objects, limited to the keys for which `is_chosen` returns True.
    Additional labels are allowed."""
    expected = {
        object_name: {key: value for key, value in observed_labels.items() if is_chosen(key)}
        for object_name, observed_labels in labels_by_name.items()
    }
    observed = {
        object_name: value_or_absent(obj := view.get(resource, object_name), labels_of(obj)) for object_name in expected
    }
    return dict(expected), dict(values_of_expected_keys(expected, observed))


def owners_by_resource(expected_set: ExpectedObjects, view: View) -> dict[str, dict[str, Owner]]:
    """Return resource → object name → kind and name of the controller that the object must have."""
    return {
        "podcliques": {clique.name: clique.owner for clique in expected_set.cliques.values()},
        "podcliquescalinggroups": {group.name: group.owner for group in expected_set.groups.values()},
        "podgangs": {gang.name: gang.owner for gang in expected_set.gangs.values()},
        "services": {service.name: service.owner for service in expected_set.services.values()},
        "pods": {
            name(pod): ("PodClique", clique)
            for clique, pods in predicates.pods_by_clique(view, expected_set.cliques.values()).items()
            for pod in pods
        },
    }


def compare_controllers(owner_by_name: Mapping[str, Owner], resource: str, view: View) -> Comparison:
    """Return the expected and observed controllers of objects. The controllers must be the current objects with these
    names."""
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for object_name, (kind, owner_name) in owner_by_name.items():
        owner, obj = view.get(PLURALS[kind], owner_name), view.get(resource, object_name)
        expected[object_name] = {"kind": kind, "name": owner_name, "uid": text(owner, "metadata", "uid")}
        reference = controller(obj)
        observed[object_name] = value_or_absent(
            owner, value_or_absent(obj, {key: reference.get(key) for key in ("kind", "name", "uid")})
        )
    return expected, observed


def compare_blocking_owners(owner_by_name: Mapping[str, Owner], resource: str, view: View) -> Comparison:
    """Return whether each object's reference to its controller must block, and does block, foreground deletion."""
    observed = {
        object_name: value_or_absent(obj := view.get(resource, object_name), controller(obj).get("blockOwnerDeletion"))
        for object_name in owner_by_name
    }
    return dict.fromkeys(owner_by_name, True), dict(observed)


def expected_finalizers(expected_set: ExpectedObjects, set_name: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each finalizer with its resource and the names of the objects that must have it."""
    yield labels.SET_FINALIZER, "podcliquesets", [set_name]
    yield labels.CLIQUE_FINALIZER, "podcliques", list(expected_set.cliques)
    yield labels.GROUP_FINALIZER, "podcliquescalinggroups", list(expected_set.groups)


def compare_specs(expected_set: ExpectedObjects, accepted: AcceptedPods, view: View) -> Comparison:
    """Return the expected and observed specs of cliques and scaling groups, which must repeat their templates."""
    expected: dict[str, object] = {}
    observed: dict[str, object] = {}
    for clique in expected_set.cliques.values():
        obj = view.get("podcliques", clique.name)
        expected[clique.name] = {
            "replicas": clique.template.replicas,
            "minAvailable": clique.template.min_available,
            "roleName": clique.template.role,
            "podSpec": _pod_spec(clique.template.pod_spec, clique.template, accepted),
        }
        observed[clique.name] = value_or_absent(obj, _clique_spec(obj, clique.template, accepted))
    for group in expected_set.groups.values():
        obj = view.get("podcliquescalinggroups", group.name)
        expected[group.name] = {
            "replicas": group.replicas,
            "minAvailable": group.min_available,
            "cliqueNames": sorted(group.cliques),
        }
        observed[group.name] = value_or_absent(
            obj, {**_sizes(obj), "cliqueNames": sorted(texts(obj, "spec", "cliqueNames"))}
        )
    return expected, observed


def _clique_spec(podclique: Document | None, template: CliqueTemplate, accepted: AcceptedPods) -> dict[str, object]:
    spec = at(podclique, "spec", "podSpec")
    pod_spec = spec if isinstance(spec, Mapping) else {}
    return {
        **_sizes(podclique),
        "roleName": text(podclique, "spec", "roleName"),
        "podSpec": _pod_spec(pod_spec, template, accepted),
    }


def _pod_spec(pod_spec: Document, template: CliqueTemplate, accepted: AcceptedPods) -> dict[str, object]:
    return pod_specs.of_clique(pod_spec, template.pod_spec, accepted.spec(template.name))


def _sizes(obj: Document | None) -> dict[str, object]:
    return {key: number(obj, "spec", key) for key in ("replicas", "minAvailable")}
