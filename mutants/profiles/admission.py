"""Mutants of the operator's webhooks. In each mutant, one rule is missing or wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from mutants.registry import mutant
from mutants.replacement import Original, around, instead_of, replace, replace_data
from reference_impl.admission import authorizer, errors, podcliqueset, topologybinding
from reference_impl.admission.errors import ErrorType, FieldError
from reference_impl.admission.result import AdmissionResult
from reference_impl.admission.rules import (
    cliques,
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
from reference_impl.plan import defaults


def _ignore_errors(capacity: Any, ignored: Callable[[FieldError], bool], name: str = "violations") -> None:
    """Drop the errors for which `ignored` returns True."""
    original = getattr(capacity, name)
    replace(capacity, name, lambda *arguments: [error for error in original(*arguments) if not ignored(error)])


def _is_error_at(leaf: str, *words: str) -> Callable[[FieldError], bool]:
    """Return a predicate for errors whose path ends in `leaf` and, if words are given, whose detail contains one of the
    words."""
    return lambda error: error.path.endswith(leaf) and (not words or any(word in error.detail for word in words))


def _return_no_errors(capacity: Any, name: str) -> None:
    replace(capacity, name, lambda *arguments: [])


# -- defaults ----------------------------------------------------------------------------------------------------------


@mutant("operator", "defaults the termination delay to one hour", "ADM-001")
def _delay_default_short() -> None:
    replace_data(defaults, "DEFAULT_DELAY", "1h0m0s", read_by=(defaults, "_default_termination_delay"))


@mutant("operator", "stores durations as written by the user", "ADM-052")
def _delay_not_rewritten() -> None:
    original = defaults._default_termination_delay
    replace(defaults, "_default_termination_delay", lambda given: [] if given else original(given))


@mutant("operator", "stores at most one hour as the termination delay", "ADM-051", "ADM-037")
@around(defaults, "_default_termination_delay")
def _long_delay_shortened(original: Original, given: Any) -> list[defaults.Operation]:
    hour = [{"op": "add", "path": f"{defaults.ROOT}/terminationDelay", "value": "1h0m0s"}]
    return hour if given == "90m" else list(original(given))


@mutant("operator", "defaults the minimum of a clique to one", "ADM-001", "ADM-037")
@around(defaults, "_default_clique")
def _minimum_of_one(original: Original, root: str, spec: dict[str, Any]) -> list[defaults.Operation]:
    return [{**op, "value": 1} if op["path"].endswith("Available") else op for op in original(root, spec)]


@mutant("operator", "defaults the update strategy", "ADM-003")
@around(defaults, "patch")
def _strategy_filled_in(original: Original, pcs: dict[str, Any], stored: Any = None) -> list[defaults.Operation]:
    spec = pcs.get("spec")
    missing = isinstance(spec, dict) and "updateStrategy" not in spec
    add = [{"op": "add", "path": "/spec/updateStrategy", "value": {"type": "OnDelete"}}] if missing else []
    return original(pcs, stored) + add


@mutant("operator", "converts packDomain to pack.required on new sets", "ADM-025")
@around(defaults, "_default_template")
def _pack_domain_rewritten(original: Original, given: dict[str, Any]) -> list[defaults.Operation]:
    operations = list(original(given))
    constraint = given.get("topologyConstraint")
    if isinstance(constraint, dict) and constraint.pop("packDomain", None) is not None:
        path = f"{defaults.ROOT}/topologyConstraint"
        operations.append({"op": "add", "path": path, "value": {**constraint, "pack": {"required": "rack"}}})
    return operations


# -- new sets ----------------------------------------------------------------------------------------------------------


@mutant("operator", "crashes on a set without cliques", "ADM-063")
@around(schedulers, "violations")
def _empty_cliques_crash(original: Original, pcs: Any, settings: Any) -> Any:
    assert pcs.spec.template.cliques[0]
    return original(pcs, settings)


@mutant("operator", "does not check the syntax of names", "ADM-004")
def _names_unchecked() -> None:
    _ignore_errors(names, _is_error_at("name", "DNS", "empty"))


@mutant("operator", "accepts names of 46 characters together", "ADM-053")
def _long_names() -> None:
    replace_data(names, "MAX_COMBINED_LENGTH", 46, read_by=(names, "_standalone_length_errors"))


@mutant("operator", "leaves no room for the names of pods", "ADM-005")
def _names_of_any_length() -> None:
    replace_data(names, "MAX_COMBINED_LENGTH", 500, read_by=(names, "_standalone_length_errors"))


@mutant("operator", "accepts two scaling groups of one name", "ADM-006")
def _group_names_repeat() -> None:
    _ignore_errors(names, _is_error_at("podCliqueScalingGroups.name"))


@mutant("operator", "accepts two cliques with one role", "ADM-053")
def _roles_repeat() -> None:
    _ignore_errors(names, _is_error_at("roleName"))


@mutant("operator", "does not check labels", "ADM-007")
def _labels_unchecked() -> None:
    _return_no_errors(cliques, "label_errors")


@mutant("operator", "accepts schedulers that are not enabled", "ADM-008")
def _schedulers_unchecked() -> None:
    _ignore_errors(schedulers, _is_error_at("schedulerName", "enabled"))
    _return_no_errors(schedulers, "backend_violations")


@mutant("operator", "accepts cliques that wait for each other", "ADM-009")
def _cycles_accepted() -> None:
    replace(startup, "cycles", lambda parents: [])


@mutant("operator", "accepts a negative number of replicas of a clique", "ADM-010")
def _fewer_than_none() -> None:
    _ignore_errors(cliques, lambda error: error.path.endswith((".spec.replicas", "minAvailable")))


@mutant("operator", "accepts minimums above replicas", "ADM-057")
def _minimum_above_replicas() -> None:
    _ignore_errors(cliques, _is_error_at("minAvailable", cliques.MINIMUM_ABOVE_REPLICAS))


@mutant("operator", "accepts an autoscaling maximum below the minimum", "ADM-011")
def _autoscaling_upside_down() -> None:
    _ignore_errors(cliques, _is_error_at("autoScalingConfig.maxReplicas", "minReplicas"))


@mutant("operator", "accepts an autoscaling maximum below the replicas", "ADM-053")
def _autoscaling_below_replicas() -> None:
    _ignore_errors(cliques, _is_error_at("autoScalingConfig.maxReplicas", "equal to replicas"))


@mutant("operator", "accepts pods that set nodeName", "ADM-012")
def _node_name_accepted() -> None:
    _ignore_errors(cliques, _is_error_at("nodeName"), "reserved_field_violations")


@mutant("operator", "accepts any name of an environment variable", "ADM-013")
def _variables_unchecked() -> None:
    replace(cliques, "is_variable", lambda name: True)


@mutant("operator", "accepts a termination delay of zero", "ADM-014")
def _zero_delay_accepted() -> None:
    _ignore_errors(startup, _is_error_at("terminationDelay", "greater"))


@mutant("operator", "accepts members of scaling groups that do not exist", "ADM-015")
def _members_unknown() -> None:
    _ignore_errors(groups, _is_error_at("cliqueNames", "unidentified"))


@mutant("operator", "accepts a clique in two scaling groups", "ADM-054")
def _member_of_two() -> None:
    _ignore_errors(groups, lambda error: error.type is ErrorType.DUPLICATE)


@mutant("operator", "accepts minimums of scaling groups above replicas", "ADM-016")
def _group_minimum_unchecked() -> None:
    _ignore_errors(groups, _is_error_at(".minAvailable"))


@mutant("operator", "does not check the maximum of a scaling group", "ADM-017", "ADM-057")
def _group_maximum_unchecked() -> None:
    _ignore_errors(groups, _is_error_at("scaleConfig.maxReplicas"))


@mutant("operator", "accepts two claim templates of one name", "ADM-018")
def _claim_names_repeat() -> None:
    _ignore_errors(sharing, _is_error_at("resourceClaimTemplates.name"))


@mutant("operator", "accepts a namespace beside the name of an own template", "ADM-065")
def _namespace_unchecked() -> None:
    _ignore_errors(sharing, _is_error_at(".namespace"))


@mutant("operator", "accepts sharing filters that name unknown children", "ADM-055")
def _filter_unchecked() -> None:
    _return_no_errors(sharing, "_unknown_name_errors")


FORCED_POLICY = "restartPolicy will be ignored, it will be set to Always"
"""A warning that upstream issues for every set (VAL-44)."""


@mutant("operator", "warns about a restart policy that it has defaulted itself", "ADM-026")
def _policy_always_warned() -> None:
    replace(cliques, "warnings", lambda pcs: [FORCED_POLICY])


@mutant("operator", "warns that it sets restart policies to Always, but keeps them", "ADM-046")
def _policy_warning_untrue() -> None:
    original = cliques.warnings
    replace(cliques, "warnings", lambda pcs: [FORCED_POLICY for _ in original(pcs)])


@mutant("operator", "reports only the first error", "ADM-041")
def _first_error_only() -> None:
    from reference_impl.admission import result

    replace(result, "aggregate", lambda field_errors: errors.aggregate(list(field_errors)[:1]))


# -- updates -----------------------------------------------------------------------------------------------------------


@mutant("operator", "rejects changes of a clique's replicas", "ADM-062")
@around(updates, "violations")
def _replicas_fixed(original: Original, pcs: Any, old: Any) -> list[FieldError]:
    sizes = [[clique.spec.replicas for clique in item.spec.template.cliques] for item in (pcs, old)]
    further_errors = [errors.immutable("spec.template.cliques.spec.replicas", sizes[0])] if sizes[0] != sizes[1] else []
    return [*original(pcs, old), *further_errors]


@mutant("operator", "rejects changes of a clique's images", "ADM-019")
@around(updates, "violations")
def _images_fixed(original: Original, pcs: Any, old: Any) -> list[FieldError]:
    images = [[_images(clique) for clique in item.spec.template.cliques] for item in (pcs, old)]
    further_errors = (
        [errors.immutable("spec.template.cliques.spec.podSpec", images[0])] if images[0] != images[1] else []
    )
    return [*original(pcs, old), *further_errors]


def _images(clique: Any) -> list[Any]:
    return [container.get("image") for container in clique.spec.pod_spec.get("containers", ())]


@mutant("operator", "rejects changes of a clique's labels", "ADM-062")
@around(updates, "violations")
def _labels_fixed(original: Original, pcs: Any, old: Any) -> list[FieldError]:
    names = [[clique.labels for clique in item.spec.template.cliques] for item in (pcs, old)]
    further_errors = [errors.immutable("spec.template.cliques.labels", names[0])] if names[0] != names[1] else []
    return [*original(pcs, old), *further_errors]


@mutant("operator", "accepts other names of cliques", "ADM-020")
def _cliques_renamed() -> None:
    _ignore_errors(updates, _is_error_at("cliques.name"))


@mutant("operator", "accepts another order of cliques where it matters", "ADM-056")
def _order_changes() -> None:
    _ignore_errors(updates, _is_error_at("cliques", "order"))


@mutant("operator", "accepts changes of the sharing of cliques and groups", "ADM-021", "ADM-022")
def _sharing_changes() -> None:
    _ignore_errors(updates, lambda error: error.path.endswith("].resourceSharing"))


@mutant("operator", "accepts changes of a clique's minimum", "ADM-056")
def _minimum_changes() -> None:
    _ignore_errors(
        updates, lambda error: error.path.startswith("spec.template.cliques") and _is_error_at("minAvailable")(error)
    )


@mutant("operator", "accepts changes of a scaling group's members", "ADM-056")
def _members_change() -> None:
    _ignore_errors(updates, _is_error_at("cliqueNames"))


@mutant("operator", "accepts changes of claim templates", "ADM-023")
def _claims_change() -> None:
    _ignore_errors(updates, _is_error_at("resourceClaimTemplates"))


@mutant("operator", "rejects reserved fields of pods on create but not on update", "ADM-024")
def _reserved_fields_on_update() -> None:
    original = cliques.reserved_field_violations
    replace(cliques, "reserved_field_violations", lambda pcs, old: original(pcs, old) if old is None else [])


# -- annotations, queues -----------------------------------------------------------------------------------------------


@mutant("operator", "accepts any text as an MNNVL group", "ADM-027")
def _mnnvl_any_text() -> None:
    _return_no_errors(mnnvl, "create_violations")


@mutant("operator", "refuses every MNNVL annotation", "ADM-042", "ADM-059")
@instead_of(mnnvl, "create_violations")
def _mnnvl_always_off(pcs: Any, enabled: bool) -> list[FieldError]:
    return [
        errors.invalid(path, value, mnnvl.NOT_ENABLED)
        for path, value in mnnvl._annotations_by_owner(pcs).values()
        if value
    ]


@mutant("operator", "accepts changes of the MNNVL annotation", "ADM-028")
def _mnnvl_changes() -> None:
    _return_no_errors(mnnvl, "update_violations")


@mutant("operator", "accepts sets for the KAI scheduler without a queue", "ADM-040")
def _queue_unchecked() -> None:
    _return_no_errors(schedulers, "_queue_errors")


# -- topology ----------------------------------------------------------------------------------------------------------


@mutant("operator", "rejects topology constraints although they are enabled", "ADM-029")
def _topology_refused() -> None:
    replace(topology, "violations", lambda pcs, binding_levels: list(topology.disabled_violations(pcs)))


@mutant("operator", "accepts constraints with an unknown binding", "ADM-030")
@around(topology, "violations")
def _binding_unchecked(original: Original, pcs: Any, binding_levels: Any) -> list[FieldError]:
    return [error for error in original(pcs, binding_levels) if "not found" not in error.detail]


@mutant("operator", "accepts constraints with different bindings", "ADM-066")
def _bindings_mixed() -> None:
    _ignore_errors(topology, lambda error: error.detail == topology.NAMES_DIFFER, "name_violations")


@mutant("operator", "accepts a set with a narrower domain than its cliques", "ADM-031")
def _hierarchy_unchecked() -> None:
    _return_no_errors(topology, "_inversion_errors")


@mutant("operator", "accepts changes of topology constraints", "ADM-032")
def _domains_change() -> None:
    _return_no_errors(topology_updates, "violations")


@mutant("operator", "does not warn about a preferred domain without effect", "ADM-033")
def _coarser_unwarned() -> None:
    _return_no_errors(topology, "warnings")


@mutant("operator", "accepts a binding with one label key on two levels", "ADM-034")
def _levels_repeat() -> None:
    _return_no_errors(topologybinding, "level_errors")


@mutant("operator", "accepts any scheduler in a binding", "ADM-035")
def _binding_schedulers_unchecked() -> None:
    _return_no_errors(topologybinding, "scheduler_errors")


@mutant("operator", "reports every unknown binding at the set's own constraint", "ADM-043")
@around(topology, "violations")
def _unknown_binding_at_the_set(original: Original, pcs: Any, binding_levels: Any) -> list[FieldError]:
    set_path = "spec.template.topologyConstraint.topologyName"
    return [
        dataclasses.replace(e, path=set_path) if "not found" in e.detail else e for e in original(pcs, binding_levels)
    ]


@mutant("operator", "names a field of bindings that the API does not have any more", "ADM-043")
@around(topologybinding, "scheduler_errors")
def _removed_field_named(original: Original, *given: Any) -> Iterator[FieldError]:
    for error in original(*given):
        path = error.path.replace("schedulerTopologyBindings", "schedulerTopologyReferences")
        yield dataclasses.replace(error, path=path)


@mutant("operator", "treats missing device requests as an explicit null", "ADM-044")
@around(sharing, "violations")
def _requests_null(original: Original, *given: Any) -> Iterator[FieldError]:
    for error in original(*given):
        yield dataclasses.replace(error, type=ErrorType.INVALID) if error.path.endswith("requests") else error


@mutant("operator", "accepts names with dots, which cannot be part of hostnames", "ADM-045")
def _dots_accepted() -> None:
    _return_no_errors(names, "dot_violations")


# -- authorizer --------------------------------------------------------------------------------------------------------


@mutant("operator", "lets every user change managed objects", "ADM-038")
def _authorizer_disabled() -> None:
    replace(authorizer, "judge", lambda *arguments: AdmissionResult())


@mutant("operator", "protects objects even if the set disables that", "ADM-039")
def _protection_not_removable() -> None:
    replace_data(
        authorizer, "DISABLE_PROTECTION_ANNOTATION", "grove.io/no-such-annotation", read_by=(authorizer, "judge")
    )


@mutant("operator", "protects objects whose set does not exist", "ADM-058")
@around(authorizer, "judge")
def _setless_objects_protected(original: Original, request: Any, pcs: Any, allowed: Any) -> AdmissionResult:
    result = original(request, pcs, allowed)
    return AdmissionResult(refusal=result.warnings[0]) if result.allowed and result.warnings else result


@mutant("operator", "answers each validation with an internal error", "ADM-036", "ADM-037")
@instead_of(podcliqueset, "judge")
def _hook_answers_500(*arguments: Any) -> AdmissionResult:
    raise RuntimeError("out of order")
