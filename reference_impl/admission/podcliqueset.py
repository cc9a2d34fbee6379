"""The validating webhook of PodCliqueSets: which rules apply to a request, and in which order (spec ADM-09, ADM-10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from reference_impl.admission.errors import FieldError, decode_error
from reference_impl.admission.result import AdmissionResult
from reference_impl.admission.rules import (
    cliques,
    coherent,
    collisions,
    groups,
    mnnvl,
    names,
    schedulers,
    sharing,
    startup,
    topology,
    topology_updates,
    updates,
)
from reference_impl.api.models import PodCliqueSet
from reference_impl.runtime.configuration import Configuration

Document = Mapping[str, Any]
GENERATED_SUFFIX = "-----"
"""A placeholder for the five characters that the API server appends to a generated name after admission."""


def read(document: Any) -> PodCliqueSet | FieldError:
    """Return the set, or the error if the object is not a PodCliqueSet."""
    try:
        pcs = msgspec.convert(document, PodCliqueSet)
    except msgspec.ValidationError as error:
        return decode_error(error)
    prefix = (document.get("metadata") or {}).get("generateName")
    if not pcs.metadata.name and isinstance(prefix, str) and prefix:
        pcs.metadata.name = prefix + GENERATED_SUFFIX
    return pcs


def binding_names(new: Any, old: Any) -> list[str]:
    """Return the names of the ClusterTopologyBindings that `judge` needs."""
    if isinstance(new, dict) and isinstance(old, dict) and new.get("spec") == old.get("spec"):
        return []
    pcs = read(new)
    return [] if isinstance(pcs, FieldError) else topology.binding_names(pcs)


def judge(
    new: Any, old: Any, settings: Configuration, binding_levels: Mapping[str, topology.Levels]
) -> AdmissionResult:
    """Validate a new set or, if `old` is given, an update. `binding_levels` holds the domains of the existing
    bindings."""
    pcs = read(new)
    if isinstance(pcs, FieldError):
        return AdmissionResult([pcs])
    if old is None:
        return AdmissionResult(_create_errors(pcs, settings, binding_levels), list(_warnings(pcs, binding_levels)))
    old_set = read(old)
    if isinstance(old_set, FieldError):
        return AdmissionResult([old_set])
    if new.get("spec") == old.get("spec"):
        return AdmissionResult(_metadata_update_errors(pcs, old_set, settings), list(topology.deprecations(pcs)))
    warnings = [*_warnings(pcs, binding_levels), *topology.deprecations(pcs)]
    return AdmissionResult(_update_errors(pcs, old_set, settings, binding_levels), warnings)


def _warnings(pcs: PodCliqueSet, binding_levels: Mapping[str, topology.Levels]) -> Iterator[str]:
    yield from cliques.warnings(pcs)
    yield from topology.warnings(pcs, binding_levels)


def _common_errors(pcs: PodCliqueSet, settings: Configuration) -> Iterator[FieldError]:
    yield from names.violations(pcs)
    yield from cliques.violations(pcs)
    yield from groups.violations(pcs)
    yield from startup.violations(pcs)
    yield from sharing.violations(pcs)
    yield from schedulers.violations(pcs, settings.scheduler)
    yield from coherent.violations(pcs)


def _create_errors(
    pcs: PodCliqueSet, settings: Configuration, binding_levels: Mapping[str, topology.Levels]
) -> list[FieldError]:
    topology_enabled = settings.topology_aware_scheduling.enabled
    return [
        *(topology.violations(pcs, binding_levels) if topology_enabled else topology.disabled_violations(pcs)),
        *_common_errors(pcs, settings),
        *names.dot_violations(pcs),
        *collisions.violations(pcs, None),
        *cliques.reserved_field_violations(pcs, None),
        *mnnvl.create_violations(pcs, settings.network.auto_mnnvl_enabled),
        *schedulers.backend_violations(pcs, settings.scheduler),
    ]


def _update_errors(
    pcs: PodCliqueSet, old: PodCliqueSet, settings: Configuration, binding_levels: Mapping[str, topology.Levels]
) -> list[FieldError]:
    """Apply the rules about the set itself and, if they pass, the rules about the change (ADM-10)."""
    errors = [
        *_common_errors(pcs, settings),
        *collisions.violations(pcs, old),
        *cliques.reserved_field_violations(pcs, old),
        *mnnvl.update_violations(pcs, old),
        *schedulers.backend_violations(pcs, settings.scheduler),
    ]
    if errors:
        return errors
    errors = [
        *updates.violations(pcs, old),
        *topology_updates.violations(pcs, old),
        *coherent.change_violations(pcs, old),
        *schedulers.change_violations(pcs, old, settings.scheduler),
    ]
    if not errors and topology_updates.needs_repair(old) and settings.topology_aware_scheduling.enabled:
        errors += topology.violations(pcs, binding_levels)
    return errors


def _metadata_update_errors(pcs: PodCliqueSet, old: PodCliqueSet, settings: Configuration) -> list[FieldError]:
    """Validate an update that does not change the spec, such as the removal of a finalizer. Such an update is never
    rejected because of the spec (DFT-05), and never while the set is being deleted."""
    if pcs.metadata.deletion_timestamp is not None:
        return []
    errors = list(mnnvl.update_violations(pcs, old))
    if old.metadata.labels != pcs.metadata.labels or old.metadata.annotations != pcs.metadata.annotations:
        old_errors = list(schedulers.backend_violations(old, settings.scheduler))
        errors += [error for error in schedulers.backend_violations(pcs, settings.scheduler) if error not in old_errors]
        errors += [
            error
            for error in coherent.gang_layout_violations(pcs)
            if error not in list(coherent.gang_layout_violations(old))
        ]
    return errors
