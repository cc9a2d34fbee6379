"""Rules about resource claim templates and their sharing (VAL-04 to VAL-05b, VAL-60 to VAL-67)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from reference_impl.admission.errors import FieldError, duplicate, invalid, not_found, required
from reference_impl.admission.rules import paths
from reference_impl.admission.rules.syntax import duplicates
from reference_impl.api.models import ClaimTemplate, CliqueSharing, PodCliqueSet

TEMPLATES = f"{paths.TEMPLATE}.resourceClaimTemplates"
SHARING = f"{paths.TEMPLATE}.resourceSharing"


def violations(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Apply the rules for creates and updates."""
    template = pcs.spec.template
    claims = template.resource_claim_templates or []
    for i, claim in enumerate(claims):
        yield from _claim_errors(f"{TEMPLATES}[{i}]", claim)
    template_names = [claim.name for claim in claims]
    if repeated_names := duplicates([name for name in template_names if name]):
        yield duplicate(f"{TEMPLATES}.name", repeated_names)

    cliques = {clique.name for clique in template.cliques}
    groups = template.pod_clique_scaling_groups or []
    set_sharing = template.resource_sharing or []
    yield from _reference_errors(SHARING, set_sharing, template_names)
    for i, entry in enumerate(set_sharing):
        if entry.filter is not None:
            path = f"{SHARING}[{i}].filter"
            child_cliques, child_groups = (
                entry.filter.child_clique_names or [],
                entry.filter.child_scaling_group_names or [],
            )
            if not child_cliques and not child_groups:
                fields = "childCliqueNames or childScalingGroupNames"
                yield required(path, f"filter must specify at least one {fields} entry")
            yield from _unknown_name_errors(f"{path}.childCliqueNames", child_cliques, cliques)
            yield from _unknown_name_errors(
                f"{path}.childScalingGroupNames", child_groups, {group.name for group in groups}
            )
    for i, group in enumerate(groups):
        path = f"{paths.group(i)}.resourceSharing"
        group_sharing = group.resource_sharing or []
        yield from _reference_errors(path, group_sharing, template_names)
        for k, item in enumerate(group_sharing):
            if item.filter is not None:
                child_names = item.filter.child_clique_names or []
                if not child_names:
                    detail = "filter must specify at least one childCliqueNames entry"
                    yield required(f"{path}[{k}].filter", detail)
                yield from _unknown_name_errors(f"{path}[{k}].filter.childCliqueNames", child_names, group.clique_names)
    for i, clique in enumerate(template.cliques):
        yield from _reference_errors(
            f"{paths.clique(i)}.resourceSharing", clique.resource_sharing or [], template_names
        )


def _claim_errors(path: str, claim: ClaimTemplate) -> Iterator[FieldError]:
    if not claim.name:
        yield required(f"{path}.name", "template name is required")
    # Absent devices and an empty list of requests produce the same error (DFT-26).
    if not _nested_value(claim.template_spec, "spec", "devices", "requests"):
        yield required(f"{path}.templateSpec.spec.devices.requests", "at least one device request is required")


def _nested_value(value: Any, *fields: str) -> Any:
    for field in fields:
        value = value.get(field) if isinstance(value, dict) else None
    return value


def _reference_errors(
    path: str, entries: Sequence[CliqueSharing], template_names: Collection[str]
) -> Iterator[FieldError]:
    earlier_names: set[str] = set()
    for i, entry in enumerate(entries):
        if not entry.name:
            yield required(f"{path}[{i}].name", "reference name is required")
        elif entry.name in earlier_names:
            yield duplicate(f"{path}[{i}].name", entry.name)
        earlier_names.add(entry.name)
        if entry.namespace and entry.name in template_names:
            detail = "namespace must be empty when name matches an internal resourceClaimTemplate"
            yield invalid(f"{path}[{i}].namespace", entry.namespace, detail)


def _unknown_name_errors(path: str, names: Sequence[str], existing_names: Collection[str]) -> Iterator[FieldError]:
    for j, name in enumerate(names):
        if name not in existing_names:
            yield not_found(f"{path}[{j}]", name)
