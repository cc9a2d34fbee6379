"""Rules about the annotation for multi-node NVLink (MNV-01 to MNV-05)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reference_impl.admission.errors import FieldError, forbidden, invalid
from reference_impl.admission.rules import paths
from reference_impl.admission.rules.syntax import is_label_name
from reference_impl.api.models import PodCliqueSet

KEY = "grove.io/mnnvl-group"
NONE = "none"
NOT_ENABLED = (
    f"MNNVL is not enabled in the operator configuration. Either enable MNNVL globally or remove the {KEY} annotation"
)


def _annotations_by_owner(pcs: PodCliqueSet) -> dict[str, tuple[str, str | None]]:
    """Return the path and value of the annotation by owner. Cliques and groups are identified by name (MNV-04)."""

    def value(annotations: Mapping[str, str] | None) -> str | None:
        return (annotations or {}).get(KEY)

    template = pcs.spec.template
    values_by_owner = {"": (f"metadata.annotations.{KEY}", value(pcs.metadata.annotations))}
    for i, clique in enumerate(template.cliques):
        values_by_owner[f"clique {clique.name}"] = (f"{paths.clique(i)}.annotations.{KEY}", value(clique.annotations))
    for i, group in enumerate(template.pod_clique_scaling_groups or []):
        values_by_owner[f"group {group.name}"] = (f"{paths.group(i)}.annotations.{KEY}", value(group.annotations))
    return values_by_owner


def create_violations(pcs: PodCliqueSet, enabled: bool) -> Iterator[FieldError]:
    """Validate the values of the annotation (MNV-01 to MNV-03)."""
    for path, value in _annotations_by_owner(pcs).values():
        if value is None or value == NONE:
            continue
        if not value:
            yield invalid(path, value, "mnnvl-group value must not be empty")
        elif not is_label_name(value):
            yield invalid(path, value, f'mnnvl-group value "{value}" is not a valid DNS-1123 label')
        if not enabled:
            yield invalid(path, value, NOT_ENABLED)


def update_violations(pcs: PodCliqueSet, old: PodCliqueSet) -> Iterator[FieldError]:
    """Reject changes to the annotation (MNV-04)."""
    old_annotations = _annotations_by_owner(old)
    for owner, (path, value) in _annotations_by_owner(pcs).items():
        if owner not in old_annotations or (old_value := old_annotations[owner][1]) == value:
            continue
        if old_value is None:
            yield forbidden(path, f"annotation {KEY} cannot be added after creation")
        elif value is None:
            yield forbidden(path, f"annotation {KEY} cannot be removed after creation")
        else:
            detail = f'annotation {KEY} is immutable and cannot be changed from "{old_value}" to "{value}"'
            yield invalid(path, value, detail)
