"""Mutants of the operator's webhooks for sets that an earlier version of the operator has stored."""

from __future__ import annotations

from typing import Any

from mutants.registry import mutant
from mutants.replacement import Original, around, replace
from reference_impl.admission import podcliqueset
from reference_impl.admission.errors import FieldError
from reference_impl.admission.rules import topology, topology_updates


@mutant("operator", "rejects a binding name for a stored set that has none", "ADM-047")
def _repair_refused() -> None:
    replace(topology_updates, "needs_repair", lambda old: False)


@mutant("operator", "accepts pack.required together with a missing binding name", "ADM-060")
def _repair_migrates() -> None:
    replace(topology_updates, "_has_same_fields", topology_updates._has_same_domains)


@mutant("operator", "rejects the change from packDomain to pack.required", "ADM-048")
def _migration_refused() -> None:
    original = topology_updates._has_same_domains
    same = topology_updates._has_same_fields
    replace(topology_updates, "_has_same_domains", lambda now, before: original(now, before) and same(now, before))


@mutant("operator", "does not warn about packDomain", "ADM-068")
def _pack_domain_unwarned() -> None:
    replace(topology, "deprecations", lambda pcs: [])


@mutant("operator", "accepts another domain in place of a stored packDomain", "ADM-067")
def _stored_domain_changes() -> None:
    replace(topology_updates, "_has_same_domains", lambda now, before: True)


@mutant("operator", "accepts the name of no binding for a stored set", "ADM-067")
@around(topology, "violations")
def _repair_names_no_binding(original: Original, pcs: Any, binding_levels: Any) -> list[FieldError]:
    return [error for error in original(pcs, binding_levels) if "not found" not in error.detail]


@mutant("operator", "rejects every update of a set without a binding name", "ADM-049", "ADM-064")
@around(podcliqueset, "_metadata_update_errors")
def _stored_set_stuck(original: Original, pcs: Any, old: Any, settings: Any) -> list[FieldError]:
    return [*original(pcs, old, settings), *topology.name_violations(pcs)]


@mutant("operator", "accepts a preferred domain together with a missing binding name", "ADM-050")
def _repair_adds_preferred() -> None:
    original = topology_updates._has_same_domains
    name = topology_updates._name

    def same(now: Any, before: Any) -> bool:
        named = now and before and name(now) and not name(before)
        return original(now, before) or bool(named and now.pack_domain == before.pack_domain)

    replace(topology_updates, "_has_same_domains", same)
