"""Variants of admission responses."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator
from typing import Any

from mutants.profiles.admission import FORCED_POLICY
from mutants.registry import variant
from mutants.replacement import Original, alter, around, on_result_of, replace
from reference_impl.admission import authorizer, result
from reference_impl.admission.errors import FieldError, forbidden, invalid, not_found
from reference_impl.admission.result import AdmissionResult
from reference_impl.admission.rules import (
    cliques,
    groups,
    mnnvl,
    names,
    paths,
    schedulers,
    sharing,
    topology,
    topology_updates,
    updates,
)
from reference_impl.api.models import PodCliqueSet
from reference_impl.plan import defaults
from reference_impl.plan.children import Manifest
from reference_impl.plan.mnnvl import GPU
from reference_impl.plan.pods import PodBuilder


@variant("operator", "sets the restart policy of pods to Always, and warns about it", "ADM-026", "ADM-046")
def _policy_forced() -> None:
    warnings, pod = cliques.warnings, PodBuilder.pod

    def forced(self: PodBuilder, index: int, gang: str) -> Manifest:
        manifest = pod(self, index, gang)
        return {**manifest, "spec": {**manifest["spec"], "restartPolicy": "Always"}}

    replace(cliques, "warnings", lambda pcs: [FORCED_POLICY for _ in warnings(pcs)])
    replace(PodBuilder, "pod", forced)


@variant("operator", "warns about a coarser preferred domain with another text", "ADM-033")
@on_result_of(topology, "warnings")
def _warnings_in_other_words(messages: Iterable[str], pcs: Any, binding_levels: Any) -> list[str]:
    return ["The preferred topology domain has no effect, as the required one is narrower." for _ in messages]


@variant(
    "operator", "takes a null for a container without fields, and calls a missing list of cliques invalid", "ADM-036"
)
def _null_container_completed() -> None:
    template, violations = defaults._default_template, names.violations

    def completed(given: dict[str, Any]) -> Iterator[defaults.Operation]:
        yield from template(given)
        for i, clique in defaults._mappings(given.get("cliques")):
            pod = defaults._mapping(defaults._mapping(clique.get("spec")).get("podSpec"))
            for j, container in enumerate(defaults._as_list(pod.get("containers"))):
                if container is None:
                    path = f"{defaults.ROOT}/cliques/{i}/spec/podSpec/containers/{j}"
                    yield {"op": "replace", "path": path, "value": {"name": "", "resources": {}}}

    def called_invalid(pcs: Any) -> Iterator[Any]:
        for error in violations(pcs):
            yield invalid(paths.TEMPLATE, None, error.detail) if error.path == paths.CLIQUES else error

    replace(defaults, "_default_template", completed)
    replace(names, "violations", called_invalid)


# -- messages of refusals ----------------------------------------------------------------------------------------------

UNKNOWN_BINDING = 'ClusterTopologyBinding "'
"""The part of the message that names a missing binding."""


@variant(
    "operator",
    "refuses invalid objects with a sentence that names neither fields nor kinds",
    "ADM-004",
    "ADM-006",
    "ADM-007",
    "ADM-009",
    "ADM-015",
    "ADM-018",
    "ADM-021",
    "ADM-022",
    "ADM-023",
    "ADM-028",
    "ADM-032",
    "ADM-034",
    "ADM-035",
    exempt=("ADM-041", "ADM-043", "ADM-044"),
)
@on_result_of(result, "aggregate")
def _refusals_in_prose(message: str, field_errors: Iterable[FieldError]) -> str:
    return message if UNKNOWN_BINDING in message else "the object is not valid, see the guide of this operator"


@variant("operator", "refuses with status 422, as a ValidatingAdmissionPolicy does", "ADM-004", "ADM-031", "ADM-038")
@on_result_of(AdmissionResult, "response")
def _refused_as_invalid(body: dict[str, Any], self: AdmissionResult, uid: str) -> dict[str, Any]:
    return _with_status(body, 422, "Invalid")


@variant(
    "operator",
    "answers a set with an unknown binding with status 404",
    "ADM-030",
    conflict="others reword the message by which it knows what to answer so",
)
@on_result_of(AdmissionResult, "response")
def _unknown_binding_answered_404(body: dict[str, Any], self: AdmissionResult, uid: str) -> dict[str, Any]:
    message = body["response"].get("status", {}).get("message", "")
    return _with_status(body, 404, "NotFound") if UNKNOWN_BINDING in message else body


def _with_status(body: dict[str, Any], code: int, reason: str) -> dict[str, Any]:
    answer = body["response"]
    if answer["allowed"] or answer["status"]["code"] == 500:
        return body
    return {**body, "response": {**answer, "status": {**answer["status"], "code": code, "reason": reason}}}


@variant(
    "operator",
    "calls a change of an immutable field forbidden instead of invalid",
    "ADM-021",
    "ADM-022",
    "ADM-023",
    "ADM-056",
)
def _immutable_is_forbidden() -> None:
    alter(updates, "immutable", lambda error, path, value: forbidden(path, error.detail))


@variant("operator", "calls an unknown binding not found instead of invalid", "ADM-030")
@on_result_of(topology, "violations")
def _unknown_binding_not_found(field_errors: list[FieldError], pcs: Any, binding_levels: Any) -> list[FieldError]:
    return [not_found(e.path, e.value) if UNKNOWN_BINDING in e.detail else e for e in field_errors]


@variant(
    "operator",
    "reports wrong names at the list that has them",
    "ADM-004",
    "ADM-005",
    "ADM-006",
    exempt=("ADM-041", "ADM-043"),
)
@on_result_of(names, "violations")
def _names_reported_at_the_list(field_errors: Iterable[FieldError], pcs: Any) -> list[FieldError]:
    return [dataclasses.replace(e, path=e.path.rpartition("[")[0] or e.path) for e in field_errors]


@variant("operator", "reports a constraint that is narrower than that of a part at the part", "ADM-031", "ADM-043")
@on_result_of(topology, "_inversion_errors")
def _narrow_parents_reported_at_the_parts(
    field_errors: Iterable[FieldError], parent: topology.ConstraintLocation, pcs: Any, levels: Any
) -> list[FieldError]:
    below = [place.path for place in topology.constraint_locations(pcs) if parent in place.enclosing]
    return [dataclasses.replace(e, path=e.path.replace(parent.path, below[0])) for e in field_errors]


@variant(
    "operator",
    "refuses a required domain that is broader than the preferred domain around it",
    "ADM-029",
    "ADM-031",
    "ADM-032",
    exempt=("ADM-037",),
    conflict="it refuses generated sets that others have to accept",
)
@on_result_of(topology, "_inversion_errors")
def _required_within_preferred(
    field_errors: Iterable[FieldError],
    parent: topology.ConstraintLocation,
    pcs: PodCliqueSet,
    levels: topology.Levels,
) -> list[FieldError]:
    around = topology.preferred_domain(parent.constraint)
    required_domains = [
        topology.required_domain(place.constraint)
        for place in topology.constraint_locations(pcs)
        if parent in place.enclosing
    ]
    broader = [
        domain for domain in required_domains if around and domain and levels.index(around) > levels.index(domain)
    ]
    path = f"{parent.path}.pack.preferred"
    return [*field_errors, *(invalid(path, around, f"{domain} is broader") for domain in broader)]


# -- accepted and defaulted fields -------------------------------------------------------------------------------------


@variant(
    "operator", "stores durations in the notation of the user", "ADM-001", "ADM-037", "ADM-051", exempt=("ADM-052",)
)
@on_result_of(defaults, "_default_termination_delay")
def _durations_as_written(operations: Iterable[defaults.Operation], given: Any) -> list[defaults.Operation]:
    return list(operations) if given is None else []


@variant("operator", "refuses a clique without replicas, as its schema requires them", "ADM-001", "ADM-010", "ADM-037")
@on_result_of(defaults, "_default_clique")
def _no_replicas_refused(
    operations: Iterable[defaults.Operation], root: str, spec: dict[str, Any]
) -> list[defaults.Operation]:
    return [operation for operation in operations if operation["path"] != f"{root}/replicas"]


@variant(
    "operator",
    "leaves restart policy and grace period of pods to the API server",
    "ADM-001",
    "ADM-037",
    "ADM-051",
    exempt=("ADM-052",),
)
@on_result_of(defaults, "_default_clique")
def _pod_defaults_left_to_pods(
    operations: Iterable[defaults.Operation], root: str, spec: dict[str, Any]
) -> list[defaults.Operation]:
    return [operation for operation in operations if not operation["path"].startswith(f"{root}/podSpec/")]


@variant(
    "operator",
    "accepts a minReplicas of a scaling group below its minAvailable, as its comment has it",
    "ADM-016",
    "ADM-037",
)
@on_result_of(groups, "violations")
def _group_autoscaling_below_minimum(field_errors: Iterable[FieldError], pcs: Any) -> list[FieldError]:
    return [error for error in field_errors if not error.path.endswith("scaleConfig.minReplicas")]


@variant("operator", "accepts names of variables as Kubernetes does: all printable characters but one", "ADM-013")
@on_result_of(cliques, "is_variable")
def _variables_of_printable_characters(original: bool, name: str) -> bool:
    return bool(name) and name.isascii() and name.isprintable() and "=" not in name


@variant(
    "operator",
    "accepts an update in which a part names the binding that it has inherited",
    "ADM-032",
    exempt=("ADM-037",),
)
@on_result_of(topology_updates, "violations")
def _inherited_binding_named(field_errors: list[FieldError], pcs: Any, old: Any) -> list[FieldError]:
    set_constraint = pcs.spec.template.topology_constraint
    inherited = f"topologyName cannot be changed from '' to '{set_constraint.topology_name if set_constraint else ''}'"
    return [error for error in field_errors if not error.detail.endswith(inherited)]


@variant(
    "operator",
    "refuses any change of the topology constraints of a stored set, as the guide says",
    *("ADM-049", "ADM-064", "ADM-067", "ADM-068"),
    exempt=("ADM-047", "ADM-048"),
)
@on_result_of(topology_updates, "violations")
def _stored_constraints_immutable(
    field_errors: list[FieldError], pcs: PodCliqueSet, old: PodCliqueSet
) -> list[FieldError]:
    same = _constraints(pcs) == _constraints(old)
    return field_errors if field_errors or same else [forbidden(topology_updates.SET, "it is immutable")]


def _constraints(pcs: PodCliqueSet) -> list[Any]:
    template = pcs.spec.template
    parts = [*template.cliques, *(template.pod_clique_scaling_groups or ())]
    return [template.topology_constraint, *(part.topology_constraint for part in parts)]


@variant(
    "operator",
    "accepts a set whose parts name different bindings, as the comment of the field has it",
    "ADM-030",
    exempt=("ADM-066",),
)
@on_result_of(topology, "name_violations")
def _bindings_may_differ(field_errors: list[FieldError], pcs: PodCliqueSet) -> list[FieldError]:
    return [error for error in field_errors if error.detail != topology.NAMES_DIFFER]


@variant(
    "operator",
    "accepts a namespace beside the name of an own template, as the comment of the field has it",
    "ADM-018",
    exempt=("ADM-065",),
)
@on_result_of(sharing, "violations")
def _namespaces_are_external(field_errors: Iterable[FieldError], pcs: PodCliqueSet) -> list[FieldError]:
    return [error for error in field_errors if not error.path.endswith(".namespace")]


@variant(
    "operator",
    "refuses the MNNVL group of a clique that asks for no GPUs, as the guide says",
    "ADM-027",
    "ADM-042",
    exempt=("ADM-037",),
)
@on_result_of(mnnvl, "create_violations")
def _mnnvl_with_gpus_only(field_errors: Iterable[FieldError], pcs: Any, enabled: bool) -> list[FieldError]:
    return [*field_errors, *_groups_without_gpus(pcs)]


def _groups_without_gpus(pcs: Any) -> Iterator[FieldError]:
    for i, clique in enumerate(pcs.spec.template.cliques):
        group = (clique.annotations or {}).get(mnnvl.KEY, mnnvl.NONE)
        if group != mnnvl.NONE and GPU not in str(clique.spec.pod_spec):
            yield invalid(f"{paths.clique(i)}.annotations.{mnnvl.KEY}", group, "the clique asks for no GPUs")


@variant("operator", "reports a missing queue at the labels of the set", "ADM-040")
@on_result_of(schedulers, "_queue_errors")
def _queues_reported_at_labels(field_errors: Iterable[FieldError], pcs: Any) -> list[FieldError]:
    return [dataclasses.replace(error, path="metadata.labels") for error in field_errors]


@variant("operator", "lets objects of no set pass without a warning", "ADM-039", "ADM-058")
@on_result_of(authorizer, "judge")
def _setless_objects_unwarned(verdict: AdmissionResult, *request: Any) -> AdmissionResult:
    return dataclasses.replace(verdict, warnings=())


@variant("operator", "learns two seconds late that a set is not protected any more", "ADM-039")
@around(authorizer, "judge", memory=dict)
def _protection_ends_later(
    original: Original, first_requests: dict[str, float], request: Any, pcs: Any, allowed: Any
) -> AdmissionResult:
    metadata = {} if pcs is None else pcs["metadata"]
    if (metadata.get("annotations") or {}).get(authorizer.DISABLE_PROTECTION_ANNOTATION) == "true":
        now = time.monotonic()
        if now < first_requests.setdefault(metadata["uid"], now) + 2:
            pcs = {**pcs, "metadata": {**metadata, "annotations": {}}}
    return original(request, pcs, allowed)


@variant("operator", "rejects sets whose templates have scheduling gates", "CORE-044")
@on_result_of(cliques, "reserved_field_violations")
def _template_gates_rejected(errors: Iterable[FieldError], pcs: PodCliqueSet, *_: Any) -> list[FieldError]:
    gated = [clique.name for clique in pcs.spec.template.cliques if clique.spec.pod_spec.get("schedulingGates")]
    return [*errors, *(invalid(f"{paths.TEMPLATE}.cliques", name, "must not have gates") for name in gated)]
