"""The rules about topology constraints of a defaulted set (docs/spec/admission.md, section 9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from conformance.grove.admission.violation import AdmissionFacts, Document, Violation, cliques, groups

LEAF = "topologyConstraint"


def creation_violations(defaulted_set: Document, facts: AdmissionFacts) -> list[Violation]:
    """Return the violations of a new set. The rules are checked in steps, and the first step that finds violations ends
    the check (VTC-01)."""
    scopes = _scopes(defaulted_set)
    if not scopes:
        return []
    if shape_violations := list(shape_errors(defaulted_set)):
        return shape_violations
    if not facts.topology:
        return [Violation("VTC-02", LEAF)]
    return (
        _names(defaulted_set, scopes, facts)
        or _domains(scopes, facts)
        or list(_hierarchy(defaulted_set, scopes, facts))
    )


def update_violations(defaulted_set: Document, stored: Document) -> Iterator[Violation]:
    """Yield a violation for each changed constraint (VTC-20 to VTC-25). Sets with `packDomain` are not modeled."""
    previous_scopes = _scopes(stored)
    current_scopes = _scopes(defaulted_set)
    stored_scopes = {"", *(f"c:{c['name']}" for c in cliques(stored)), *(f"g:{g['name']}" for g in groups(stored))}
    for scope in sorted({*previous_scopes, *current_scopes} & stored_scopes):
        previous, current = _request_of(previous_scopes.get(scope)), _request_of(current_scopes.get(scope))
        if previous.name != current.name and scope == "":
            yield Violation("VTC-20", "topologyName")
        elif previous != current:
            yield Violation("VTC-21" if scope == "" else "VTC-22", LEAF)


def _scopes(defaulted_set: Document) -> dict[str, Document]:
    """Return the constraints by scope: "" is the set, `g:NAME` a group, `c:NAME` a clique."""
    constraints = {"": defaulted_set["spec"]["template"].get("topologyConstraint")}
    constraints |= {f"g:{group['name']}": group.get("topologyConstraint") for group in groups(defaulted_set)}
    constraints |= {f"c:{clique['name']}": clique.get("topologyConstraint") for clique in cliques(defaulted_set)}
    return {scope: constraint for scope, constraint in constraints.items() if constraint is not None}


class _Request(NamedTuple):
    exists: bool
    name: str
    required: str
    preferred: str


def _request_of(constraint: Document | None) -> _Request:
    fields = constraint or {}
    pack = fields.get("pack") or {}
    return _Request(
        constraint is not None, fields.get("topologyName") or "", pack.get("required", ""), pack.get("preferred", "")
    )


def shape_errors(defaulted_set: Document) -> Iterator[Violation]:
    """Yield violations of the schema of constraints, which is checked before all other rules (ADM-04)."""
    for constraint in _scopes(defaulted_set).values():
        if constraint.get("pack") is None and not constraint.get("packDomain"):
            yield Violation("SCH-07", "pack")
        elif constraint.get("pack") == {}:
            yield Violation("SCH-09", "pack")
        if constraint.get("packDomain"):
            yield Violation("SCH-10", "packDomain")


def _enclosing_scopes(defaulted_set: Document, scope: str) -> list[str]:
    """Return the scopes that enclose a scope, innermost first."""
    if scope == "":
        return []
    enclosing = [
        f"g:{g['name']}" for g in groups(defaulted_set) if scope.startswith("c:") and scope[2:] in g["cliqueNames"]
    ]
    return [*enclosing[:1], ""]


def _names(defaulted_set: Document, scopes: dict[str, Document], facts: AdmissionFacts) -> list[Violation]:
    topologies = {scope: str(constraint.get("topologyName") or "") for scope, constraint in scopes.items()}
    used_names = {name for name in topologies.values() if name}
    violations = []
    if len(used_names) > 1:
        violations.append(Violation("VTC-04", "topologyName"))
    if any(
        not name and not any(topologies.get(outer) for outer in _enclosing_scopes(defaulted_set, scope))
        for scope, name in topologies.items()
    ):
        violations.append(Violation("VTC-03", "topologyName"))
    if not violations and not used_names <= facts.bindings.keys():
        violations.append(Violation("VTC-06", "topologyName"))
    return violations


def _domains(scopes: dict[str, Document], facts: AdmissionFacts) -> list[Violation]:
    levels = _levels(scopes, facts)
    return [
        Violation("VTC-07", f"pack.{field}")
        for constraint in scopes.values()
        for field, domain in constraint["pack"].items()
        if domain not in levels
    ]


def _hierarchy(defaulted_set: Document, scopes: dict[str, Document], facts: AdmissionFacts) -> Iterator[Violation]:
    levels = _levels(scopes, facts)
    for inner, constraint in scopes.items():
        for outer in _enclosing_scopes(defaulted_set, inner):
            for field in ("required", "preferred"):
                inner_domain, outer_domain = (
                    constraint["pack"].get(field),
                    scopes.get(outer, {"pack": {}})["pack"].get(field),
                )
                if inner_domain and outer_domain and levels.index(outer_domain) > levels.index(inner_domain):
                    rule, leaf = ("VTC-08", LEAF) if field == "required" else ("VTC-09", f"{LEAF}.pack.preferred")
                    yield Violation(rule, leaf)


def _levels(scopes: dict[str, Document], facts: AdmissionFacts) -> list[str]:
    [name] = {constraint["topologyName"] for constraint in scopes.values() if constraint.get("topologyName")}
    return list(facts.bindings[name])
