"""Rules about names: presence, syntax, uniqueness, and their length within pod names (VAL-06 to VAL-12, VAL-50,
VAL-58)."""

from __future__ import annotations

from collections.abc import Iterator

from reference_impl.admission.errors import FieldError, duplicate, invalid, required
from reference_impl.admission.rules import paths
from reference_impl.admission.rules.syntax import duplicates, is_subdomain
from reference_impl.api.models import PodCliqueSet

MAX_COMBINED_LENGTH = 45
"""Maximum combined length, in characters, of the names of a set, its scaling group and its clique."""
CLIQUE_NAME = "invalid PodCliqueTemplateSpec name, must be a valid DNS subdomain"
GROUP_NAME = "invalid PodCliqueScalingGroupConfig name, must be a valid DNS subdomain"


def violations(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Apply the rules for creates and updates."""
    template = pcs.spec.template
    if not template.cliques:
        yield required(paths.CLIQUES, "at least one PodClique must be defined")
    groups = template.pod_clique_scaling_groups or []
    members = {name for group in groups for name in group.clique_names}
    for i, clique in enumerate(template.cliques):
        path = f"{paths.clique(i)}.name"
        if not clique.name:
            yield required(path, "field cannot be empty")
            continue
        if not is_subdomain(clique.name):
            yield invalid(path, clique.name, CLIQUE_NAME)
        if clique.name not in members:
            yield from _standalone_length_errors(pcs.metadata.name, clique.name, path)
    if names := duplicates([clique.name for clique in template.cliques if clique.name]):
        yield duplicate(f"{paths.CLIQUES}.name", names)
    if roles := duplicates([clique.spec.role_name for clique in template.cliques]):
        yield duplicate(f"{paths.CLIQUES}.roleName", roles)
    for i, group in enumerate(groups):
        if not is_subdomain(group.name):
            yield invalid(f"{paths.group(i)}.name", group.name, GROUP_NAME)
        yield from _member_length_errors(pcs, i)
    if names := duplicates([group.name for group in groups]):
        yield duplicate(f"{paths.GROUPS}.name", names)


def dot_violations(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Reject dots in names, because the names become parts of Service names and pod hostnames (DFT-14). The check runs
    only on create, since names cannot be changed afterwards."""
    detail = "must not have dots: it becomes part of the names of Services and of pods' host names"
    paths_and_names = [("metadata.name", pcs.metadata.name)]
    paths_and_names += [(f"{paths.clique(i)}.name", c.name) for i, c in enumerate(pcs.spec.template.cliques)]
    groups = pcs.spec.template.pod_clique_scaling_groups or []
    paths_and_names += [(f"{paths.group(i)}.name", g.name) for i, g in enumerate(groups)]
    for path, name in paths_and_names:
        if "." in name and is_subdomain(name):
            yield invalid(path, name, detail)


def _length_message(length: int, owners: str) -> str:
    limit = f"exceeds {MAX_COMBINED_LENGTH}-character limit required for pod naming"
    return f"combined resource name length {length} {limit}. Consider shortening: {owners}"


def _standalone_length_errors(pcs: str, clique: str, path: str) -> Iterator[FieldError]:
    """Limit the combined length of the names of set and standalone clique (VAL-09)."""
    if (length := len(pcs) + len(clique)) > MAX_COMBINED_LENGTH:
        detail = _length_message(length, f"PodCliqueSet '{pcs}' or PodClique '{clique}'")
        yield invalid(path, clique, detail)
        yield invalid("metadata.name", pcs, detail)


def _member_length_errors(pcs: PodCliqueSet, index: int) -> Iterator[FieldError]:
    """Limit the combined length of the names of set, scaling group and clique (VAL-10)."""
    group = (pcs.spec.template.pod_clique_scaling_groups or [])[index]
    for j, clique in enumerate(group.clique_names):
        if (length := len(pcs.metadata.name) + len(group.name) + len(clique)) > MAX_COMBINED_LENGTH:
            names = f"PodCliqueSet '{pcs.metadata.name}', PodCliqueScalingGroup '{group.name}', or PodClique '{clique}'"
            detail = _length_message(length, names)
            yield invalid(f"{paths.group(index)}.cliqueNames[{j}]", clique, detail)
            yield invalid(f"{paths.group(index)}.name", group.name, detail)
            yield invalid("metadata.name", pcs.metadata.name, detail)
