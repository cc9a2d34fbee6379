"""Find the changes to a set that break a rule (docs/spec/admission.md, section 8, MNV-04)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.grove.admission import model, topology
from conformance.grove.admission.defaults import with_defaults
from conformance.grove.admission.violation import AdmissionFacts, Document, Violation, cliques, groups

_CLIQUE_FIELDS = {
    "UPD-05": ("spec", "roleName"),
    "UPD-06": ("spec", "minAvailable"),
    "UPD-07": ("spec", "startsAfter"),
    "UPD-08": ("spec", "podSpec", "schedulerName"),
    "UPD-09": ("resourceSharing",),
}
_GROUP_FIELDS = {
    "UPD-17": ("minAvailable",),
    "UPD-18": ("cliqueNames",),
    "UPD-19": ("resourceSharing",),
}
_SET_FIELDS = {
    "UPD-12": ("cliqueStartupType",),
    "UPD-13": ("resourceClaimTemplates",),
    "UPD-14": ("resourceSharing",),
}


def update_violations(pcs: Document, stored: Document, facts: AdmissionFacts) -> list[Violation]:
    """Return the violations of replacing `stored` with `pcs`. Changes are judged only if the new set itself is valid
    (ADM-10)."""
    defaulted_set, previous_set = with_defaults(pcs), with_defaults(stored)
    violations = [
        *model.common_violations(defaulted_set, facts),
        *topology.shape_errors(defaulted_set),
        *_pod_field_violations(defaulted_set, previous_set),
    ]
    violations += _mnnvl(defaulted_set, previous_set)
    return violations or [
        *_changes(defaulted_set, previous_set),
        *topology.update_violations(defaulted_set, previous_set),
    ]


def _changes(defaulted_set: Document, previous_set: Document) -> Iterator[Violation]:
    template, previous_template = defaulted_set["spec"]["template"], previous_set["spec"]["template"]
    for rule, path in _SET_FIELDS.items():
        if _at(template, path) != _at(previous_template, path):
            yield Violation(rule, path[-1])
    names, old_names = [c["name"] for c in cliques(defaulted_set)], [c["name"] for c in cliques(previous_set)]
    if len(names) != len(old_names):
        yield Violation("UPD-02", "cliques")
    if set(names) - set(old_names):
        yield Violation("UPD-03", "name")
    is_ordered = template["cliqueStartupType"] != "CliqueStartupTypeAnyOrder"
    if is_ordered and any(name in old_names and old_names.index(name) != i for i, name in enumerate(names)):
        yield Violation("UPD-04", "cliques")
    yield from _changed_fields(cliques(defaulted_set), cliques(previous_set), _CLIQUE_FIELDS)
    if len(groups(defaulted_set)) != len(groups(previous_set)):
        yield Violation("UPD-15", "podCliqueScalingGroups")
        return
    if {g["name"] for g in groups(defaulted_set)} - {g["name"] for g in groups(previous_set)}:
        yield Violation("UPD-16", "name")
    yield from _changed_fields(groups(defaulted_set), groups(previous_set), _GROUP_FIELDS)


def _changed_fields(
    current_entries: list[Document], previous_entries: list[Document], rules: Mapping[str, tuple[str, ...]]
) -> Iterator[Violation]:
    previous_by_name = {entry["name"]: entry for entry in previous_entries}
    for entry in current_entries:
        for rule, path in rules.items():
            if entry["name"] in previous_by_name and _at(entry, path) != _at(previous_by_name[entry["name"]], path):
                yield Violation(rule, path[-1])


def _pod_field_violations(defaulted_set: Document, previous_set: Document) -> Iterator[Violation]:
    """Yield violations of the rule that upstream fails to enforce on updates (DFT-06)."""
    previous_pods = {clique["name"]: clique["spec"]["podSpec"] for clique in cliques(previous_set)}
    for clique in cliques(defaulted_set):
        pod, previous_pod = clique["spec"]["podSpec"], previous_pods.get(clique["name"], {})
        for rule, field in (("VAL-40", "topologySpreadConstraints"), ("VAL-41", "nodeName")):
            if pod.get(field) and not previous_pod.get(field):
                yield Violation(rule, field)


def _mnnvl(defaulted_set: Document, previous_set: Document) -> Iterator[Violation]:
    previous_values = dict(_holders(previous_set))
    for key, value in _holders(defaulted_set):
        if key in previous_values and previous_values[key] != value:
            yield Violation("MNV-04", model.MNNVL)


def _holders(defaulted_set: Document) -> Iterator[tuple[str, str | None]]:
    for prefix, entries in (
        ("", [{**defaulted_set["metadata"], "name": ""}]),
        ("c", cliques(defaulted_set)),
        ("g", groups(defaulted_set)),
    ):
        for entry in entries:
            yield f"{prefix}:{entry['name']}", (entry.get("annotations") or {}).get(model.MNNVL)


def _at(value: Any, path: tuple[str, ...]) -> Any:
    """Return the value of a field; None if it is absent, null or empty."""
    for step in path:
        value = value.get(step) if value else None
    return value or None
