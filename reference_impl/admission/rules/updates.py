"""Immutable fields of a set (UPD-02 to UPD-19)."""

from __future__ import annotations

from collections.abc import Iterator

from reference_impl.admission.errors import FieldError, forbidden, immutable, invalid
from reference_impl.admission.rules import paths
from reference_impl.api.models import PodCliqueSet, SetTemplate, StartupType

COMPOSITION_CHANGED = "not allowed to change clique composition"


def violations(pcs: PodCliqueSet, old: PodCliqueSet) -> Iterator[FieldError]:
    """Yield an error for each immutable field that has changed."""
    new_template, old_template = pcs.spec.template, old.spec.template
    if new_template.clique_startup_type != old_template.clique_startup_type:
        yield immutable(f"{paths.TEMPLATE}.cliqueStartupType", new_template.clique_startup_type)
    claims = new_template.resource_claim_templates
    if (claims or []) != (old_template.resource_claim_templates or []):
        yield immutable(f"{paths.TEMPLATE}.resourceClaimTemplates", claims)
    if (new_template.resource_sharing or []) != (old_template.resource_sharing or []):
        yield immutable(f"{paths.TEMPLATE}.resourceSharing", new_template.resource_sharing)
    yield from _clique_errors(new_template, old_template)
    yield from _group_errors(new_template, old_template)


def _clique_errors(template: SetTemplate, old: SetTemplate) -> Iterator[FieldError]:
    if len(template.cliques) != len(old.cliques):
        yield forbidden(paths.CLIQUES, COMPOSITION_CHANGED)
    old_by_name = {clique.name: (i, clique) for i, clique in enumerate(old.cliques)}
    ordered = template.clique_startup_type is not StartupType.ANY_ORDER
    for i, clique in enumerate(template.cliques):
        if clique.name not in old_by_name:
            detail = f"{COMPOSITION_CHANGED}, new clique name '{clique.name}' is not allowed"
            yield forbidden(f"{paths.CLIQUES}.name", detail)
            continue
        old_index, old_clique = old_by_name[clique.name]
        if ordered and old_index != i:
            detail = "clique order cannot be changed when StartupType is InOrder or Explicit"
            expected = old.cliques[i].name if i < len(old.cliques) else "nothing"
            yield invalid(
                paths.CLIQUES, clique.name, f"{detail}. Expected '{expected}' at position {i}, got '{clique.name}'"
            )
        path = f"{paths.clique(i)}.spec"
        if clique.spec.role_name != old_clique.spec.role_name:
            yield immutable(f"{path}.roleName", clique.spec.role_name)
        if clique.spec.min_available != old_clique.spec.min_available:
            yield immutable(f"{path}.minAvailable", clique.spec.min_available)
        if (clique.spec.starts_after or []) != (old_clique.spec.starts_after or []):
            yield immutable(f"{path}.startsAfter", clique.spec.starts_after)
        scheduler = clique.spec.pod_spec.get("schedulerName") or ""
        if scheduler != (old_clique.spec.pod_spec.get("schedulerName") or ""):
            yield immutable(f"{path}.podSpec.schedulerName", scheduler)
        if (clique.resource_sharing or []) != (old_clique.resource_sharing or []):
            yield immutable(f"{paths.clique(i)}.resourceSharing", clique.resource_sharing)


def _group_errors(template: SetTemplate, old: SetTemplate) -> Iterator[FieldError]:
    groups, old_groups = template.pod_clique_scaling_groups or [], old.pod_clique_scaling_groups or []
    if len(groups) != len(old_groups):
        yield forbidden(paths.GROUPS, "not allowed to add or remove PodCliqueScalingGroupConfigs")
        return
    old_by_name = {group.name: group for group in old_groups}
    for i, group in enumerate(groups):
        if group.name not in old_by_name:
            detail = f"new scaling group name '{group.name}' is not allowed"
            yield forbidden(f"{paths.GROUPS}.name", f"not allowed to change scaling group composition, {detail}")
            continue
        old_group = old_by_name[group.name]
        if group.clique_names != old_group.clique_names:
            yield immutable(f"{paths.group(i)}.cliqueNames", group.clique_names)
        if group.min_available != old_group.min_available:
            yield immutable(f"{paths.group(i)}.minAvailable", group.min_available)
        if (group.resource_sharing or []) != (old_group.resource_sharing or []):
            yield immutable(f"{paths.group(i)}.resourceSharing", group.resource_sharing)
