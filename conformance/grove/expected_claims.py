"""The expected ResourceClaims that the pods of a set share, and the claims of each pod (docs/spec/statuses.md, section
9.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from conformance.grove import labels, names, template
from conformance.grove.expected import ExpectedClique, ExpectedObjects, Owner
from conformance.grove.fields import Document, at, items, text, texts
from conformance.grove.labels import ComponentLabel
from conformance.grove.template import SetTemplate


@dataclass(frozen=True)
class ExpectedClaim:
    """A ResourceClaim (OBJ-112, OBJ-113, OBJ-219)."""

    name: str
    labels: Mapping[str, str]
    owner: Owner
    template: str
    """Name of its template."""
    namespace: str
    """Namespace of the template as given in the set; empty if none is given."""


def claims(workload: Document, objects: ExpectedObjects) -> dict[str, ExpectedClaim]:
    """Return all ResourceClaims of a set, by name (OBJ-822). `objects` are the objects of the set."""
    return {claim.name: claim for claim in _claims(template.read(workload), objects)}


def _claims(set_template: SetTemplate, objects: ExpectedObjects) -> Iterator[ExpectedClaim]:
    set_sharing = _sharing(at(set_template.document, "spec", "template"))
    yield from _claims_for(
        set_template,
        ("PodCliqueSet", set_template.name),
        set_sharing,
        range(set_template.replicas),
        {},
        labels.SET_INDEX,
    )
    for group in objects.groups.values():
        [group_template] = [
            g for g in set_template.groups if group.name.endswith(f"-{g.name}") and g.cliques == group.cliques
        ]
        owner, extra_labels = ("PodCliqueScalingGroup", group.name), {labels.GROUP: group.name}
        yield from _claims_for(
            set_template, owner, _sharing(group_template.entry), range(group.replicas), extra_labels, labels.GROUP_INDEX
        )
    for clique in objects.cliques.values():
        owner, extra_labels = ("PodClique", clique.name), {labels.CLIQUE: clique.name}
        indices = range(clique.template.replicas)
        yield from _claims_for(
            set_template, owner, _sharing(clique.template.entry), indices, extra_labels, labels.POD_INDEX
        )


def _claims_for(
    set_template: SetTemplate,
    owner: Owner,
    sharing: Iterable[Document],
    indices: Iterable[int],
    extra_labels: Mapping[str, str],
    index_label: str,
) -> Iterator[ExpectedClaim]:
    common = {
        labels.MANAGED_BY: labels.OPERATOR,
        labels.PART_OF: set_template.name,
        labels.COMPONENT: ComponentLabel.CLAIM,
        **extra_labels,
    }
    for entry in sharing:
        name, namespace = text(entry, "name"), text(entry, "namespace")
        if text(entry, "scope") == "AllReplicas":
            yield ExpectedClaim(names.shared_claim(owner[1], name), common, owner, name, namespace)
        else:
            for index in indices:
                claim_labels = {**common, index_label: str(index)}
                yield ExpectedClaim(names.replica_claim(owner[1], index, name), claim_labels, owner, name, namespace)


def pod_claim_names(workload: Document, clique: ExpectedClique, index: int) -> list[str]:
    """Return the names of the claims that the pod of a clique with a given index uses (OBJ-824, OBJ-825)."""
    set_template = template.read(workload)
    group_template = next((group for group in set_template.groups if clique.template.name in group.cliques), None)
    set_entries = [
        entry
        for entry in _sharing(at(set_template.document, "spec", "template"))
        if at(entry, "filter") is None
        or clique.template.name in texts(entry, "filter", "childCliqueNames")
        or (group_template is not None and group_template.name in texts(entry, "filter", "childScalingGroupNames"))
    ]
    claim_names = _claim_names(set_template.name, set_entries, clique.set_index)
    if group_template is not None:
        group_entries = [
            entry
            for entry in _sharing(group_template.entry)
            if at(entry, "filter") is None or clique.template.name in texts(entry, "filter", "childCliqueNames")
        ]
        claim_names += _claim_names(clique.group, group_entries, int(clique.labels[labels.GROUP_INDEX]))
    return claim_names + _claim_names(clique.name, _sharing(clique.template.entry), index)


def _claim_names(owner: str, sharing: list[Document], index: int) -> list[str]:
    return [
        names.shared_claim(owner, text(entry, "name"))
        if text(entry, "scope") == "AllReplicas"
        else names.replica_claim(owner, index, text(entry, "name"))
        for entry in sharing
    ]


def embedded_spec(workload: Document, claim: ExpectedClaim) -> object:
    """Return the spec of a claim whose template is defined in the set; None if the template is a separate object
    (OBJ-820, OBJ-821)."""
    if claim.namespace:
        return None
    for entry in items(workload, "spec", "template", "resourceClaimTemplates"):
        if text(entry, "name") == claim.template:
            return at(entry, "templateSpec", "spec")
    return None


def _sharing(holder: object) -> list[Document]:
    return items(holder, "resourceSharing")
