"""The expected ComputeDomains of a set with linked GPUs, and the cliques that use them (docs/spec/statuses.md, section
9.2). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformance.grove import labels, names, template
from conformance.grove.expected import ExpectedClique
from conformance.grove.expected_pods import containers
from conformance.grove.fields import Document, at, mapping, text
from conformance.grove.template import CliqueTemplate, SetTemplate

GPU = "nvidia.com/gpu"
FINALIZER = "grove.io/computedomain-finalizer"
NO_GROUP = "none"
NODE_LABEL = "resource.nvidia.com/computeDomain"
"""The label with the uid of the domain that a node serves (DRA-24)."""


@dataclass(frozen=True)
class Domain:
    """A ComputeDomain (OBJ-114, OBJ-220, OBJ-843). It requests a ResourceClaimTemplate of the same name from its
    driver."""

    name: str
    labels: Mapping[str, str]


def domains(workload: Document) -> dict[str, Domain]:
    """Return the domains by name: one in each set replica for each MNNVL group that has cliques."""
    set_template = template.read(workload)
    groups = {group for clique in set_template.cliques if (group := _group(set_template, clique))}
    domain_list = [_domain(set_template, i, group) for i in range(set_template.replicas) for group in sorted(groups)]
    return {domain.name: domain for domain in domain_list}


def clique_domain(workload: Document, clique: ExpectedClique) -> str:
    """Return the name of the domain of a clique's pods; empty if they are not in a domain (OBJ-841, OBJ-842)."""
    set_template = template.read(workload)
    group = _group(set_template, clique.template)
    return names.compute_domain(set_template.name, clique.set_index, group) if group else ""


def template_of(domain: Document | None) -> str:
    """Return the template that the channel of a domain names. GREP-417 and the driver's CRD have it at different
    paths."""
    channel = at(domain, "spec", "channel")
    return text(channel, "resourceClaimTemplate", "name") or text(channel, "resourceClaimTemplateName")


def has_gpu(container: Document) -> bool:
    """Return whether a container requests GPUs."""
    amounts = [at(container, "resources", field, GPU) for field in ("limits", "requests")]
    return any(amount not in (None, "", "0", 0) for amount in amounts)


def _group(set_template: SetTemplate, clique: CliqueTemplate) -> str:
    group_template = next((g for g in set_template.groups if clique.name in g.cliques), None)
    levels = (
        clique.annotations,
        mapping(group_template.entry, "annotations") if group_template else {},
        mapping(set_template.document, "metadata", "annotations"),
    )
    nearest_group = next((level[labels.MNNVL] for level in levels if labels.MNNVL in level), NO_GROUP)
    is_linked = nearest_group != NO_GROUP and any(map(has_gpu, containers(clique.pod_spec)))
    return nearest_group if is_linked else ""


def _domain(set_template: SetTemplate, i: int, group: str) -> Domain:
    name = names.compute_domain(set_template.name, i, group)
    domain_labels = {
        labels.MANAGED_BY: labels.OPERATOR,
        labels.PART_OF: set_template.name,
        labels.COMPONENT: labels.ComponentLabel.COMPUTE_DOMAIN,
        labels.NAME: name,
        labels.SET_INDEX: str(i),
        labels.MNNVL: group,
    }
    return Domain(name, domain_labels)
