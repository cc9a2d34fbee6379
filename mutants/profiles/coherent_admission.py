"""Mutants of the admission of coherent sets, of their defaults, and of the served CRDs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mutants.profiles.admission_served_kinds import spoil
from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace
from reference_impl.admission import scaling
from reference_impl.admission.errors import FieldError, forbidden
from reference_impl.admission.result import AdmissionResult
from reference_impl.admission.rules import coherent as rules
from reference_impl.api.models import PodCliqueSet, UpdateStrategyType
from reference_impl.plan import defaults
from reference_impl.plan.coherent import update
from reference_impl.plan.defaults import Operation

CRD = "podgangmaps.grove.io"


@mutant("operator", "leaves maxUnavailable of coherent sets open", "COHR-006")
def _budget_undefaulted() -> None:
    replace(defaults, "_default_max_unavailable", lambda root, part, value: iter(()))


@mutant("operator", "accepts any maxUnavailable", "COHR-004", "COHR-009", "COHR-103")
@instead_of(rules, "_budget_errors")
def _low_budget_accepted(path: str, given: Any, minimum: int) -> Iterator[FieldError]:
    return iter(())


@mutant("operator", "refuses a low maxUnavailable with any strategy", "COHR-008")
@around(rules, "_budget_errors")
def _low_budget_refused(original: Original, path: str, given: Any, minimum: int) -> Iterator[FieldError]:
    yield from original(path, given, minimum or 2)


@mutant("operator", "accepts scaling during an update", "COHR-050", "COHR-051", "COHR-052", "COHR-113")
def _scaling_not_blocked() -> None:
    replace(scaling, "is_updating", lambda pcs: False)


@mutant("operator", "accepts changes of replicas through the scale subresource", "COHR-052")
@around(scaling, "judge")
def _scale_door_open(original: Original, request: Mapping[str, Any], pcs: Mapping[str, Any] | None) -> AdmissionResult:
    return AdmissionResult() if request.get("subResource") == scaling.SCALE else original(request, pcs)


@mutant("operator", "refuses changes of replicas without a word why", "COHR-054")
def _refusal_without_reason() -> None:
    replace(scaling, "rejection_reason", lambda namespace, pcs: "no")


@mutant("operator", "serves PodGangMaps whose entries have no key", "COHR-001", "COHR-002")
def _maps_without_a_key() -> None:
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/entries"
    spoil(
        CRD,
        {"op": "remove", "path": f"{path}/x-kubernetes-list-map-keys"},
        {"op": "replace", "path": f"{path}/x-kubernetes-list-type", "value": "atomic"},
    )


@mutant("operator", "serves PodGangMaps without their short name", "COHR-001")
def _maps_without_short_name() -> None:
    spoil(CRD, {"op": "replace", "path": "/spec/names/shortNames", "value": []})


@mutant("operator", "serves scaling groups without maxUnavailable", "COHR-003")
def _sets_without_budget() -> None:
    path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/template/properties"
    groups = f"{path}/podCliqueScalingGroups/items/properties/rollingUpdate/properties/maxUnavailable"
    spoil("podcliquesets.grove.io", {"op": "remove", "path": groups})


@mutant("operator", "accepts maxUnavailable of cliques in scaling groups", "COHR-005")
def _member_budget_accepted() -> None:
    _accept_budgets_of_members()


def _accept_budgets_of_members() -> None:
    original = rules.violations

    def violations(pcs: PodCliqueSet) -> Iterator[FieldError]:
        return (error for error in original(pcs) if error.detail != rules.NOT_ON_MEMBERS)

    replace(rules, "violations", violations)


@mutant("operator", "defaults maxUnavailable of cliques in scaling groups", "COHR-006")
def _members_get_a_budget() -> None:
    original = defaults._default_rolling_updates

    def rolling_updates(template: dict[str, Any], strategy: Any, *, created: bool) -> Iterator[Operation]:
        operations = list(original(template, strategy, created=created))
        paths = {operation["path"] for operation in operations}
        for number, clique in enumerate(template["cliques"]):
            path = f"{defaults.ROOT}/cliques/{number}/rollingUpdate"
            if operations and path not in paths and "rollingUpdate" not in clique:
                operations.append({"op": "add", "path": path, "value": {"maxUnavailable": 1}})
        return iter(operations)

    replace(defaults, "_default_rolling_updates", rolling_updates)
    _accept_budgets_of_members()


@mutant("operator", "defaults maxUnavailable whatever the strategy", "COHR-007")
@around(defaults, "_default_rolling_updates")
def _budget_always_defaulted(
    original: Original, template: dict[str, Any], strategy: Any, *, created: bool
) -> Iterator[Operation]:
    return original(template, UpdateStrategyType.COHERENT, created=created)


@mutant("operator", "refuses changes of replicas of all coherent sets", "COHR-055")
def _scaling_blocked_for_good() -> None:
    replace(scaling, "is_updating", lambda pcs: update.is_coherent(pcs))


@mutant("operator", "refuses changes of terminationDelay during an update", "COHR-053")
@around(rules, "change_violations")
def _other_changes_blocked(original: Original, pcs: PodCliqueSet, old: PodCliqueSet) -> Iterator[FieldError]:
    yield from original(pcs, old)
    if scaling.is_updating(old) and pcs.spec.template.termination_delay != old.spec.template.termination_delay:
        yield forbidden("spec.template.terminationDelay", "must not change during an update")
