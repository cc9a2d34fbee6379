"""The rules about topology constraints of a defaulted set (docs/spec/admission.md, section 9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from conformance.grove.admission.violation import AdmissionFacts, Document, Violation, cliques, groups

LEAF = "topologyConstraint"


def create(whole: Document, facts: AdmissionFacts) -> list[Violation]:
    """Return the violations of a new set. The rules are checked in steps, and the first step that finds violations ends
    the check (VTC-01)."""
    scopes = _scopes(whole)
    if not scopes:
        return []
    if wrong := list(shape(whole)):
        return wrong
    if not facts.topology:
        return [Violation("VTC-02", LEAF)]
    return _names(whole, scopes, facts) or _domains(scopes, facts) or list(_hierarchy(whole, scopes, facts))


def update(whole: Document, stored: Document) -> Iterator[Violation]:
    """Yield a violation for each changed constraint (VTC-20 to VTC-25). Sets with `packDomain` are not modelled."""
    before = _scopes(stored)
    now = _scopes(whole)
    stored_scopes = {"", *(f"c:{c['name']}" for c in cliques(stored)), *(f"g:{g['name']}" for g in groups(stored))}
    for scope in sorted({*before, *now} & stored_scopes):
        previous, current = _asks(before.get(scope)), _asks(now.get(scope))
        if previous.name != current.name and scope == "":
            yield Violation("VTC-20", "topologyName")
        elif previous != current:
            yield Violation("VTC-21" if scope == "" else "VTC-22", LEAF)


def _scopes(whole: Document) -> dict[str, Document]:
    """Return the constraints by scope: "" is the set, `g:NAME` a group, `c:NAME` a clique."""
    constraints = {"": whole["spec"]["template"].get("topologyConstraint")}
    constraints |= {f"g:{group['name']}": group.get("topologyConstraint") for group in groups(whole)}
    constraints |= {f"c:{clique['name']}": clique.get("topologyConstraint") for clique in cliques(whole)}
    return {scope: constraint for scope, constraint in constraints.items() if constraint is not None}


class _Request(NamedTuple):
    exists: bool
    name: str
    required: str
    preferred: str


def _asks(constraint: Document | None) -> _Request:
    given = constraint or {}
    pack = given.get("pack") or {}
    return _Request(
        constraint is not None, given.get("topologyName") or "", pack.get("required", ""), pack.get("preferred", "")
    )


def shape(whole: Document) -> Iterator[Violation]:
    """Yield violations of the schema of constraints, which is checked before all other rules (ADM-04)."""
    for constraint in _scopes(whole).values():
        if constraint.get("pack") is None and not constraint.get("packDomain"):
            yield Violation("SCH-07", "pack")
        elif constraint.get("pack") == {}:
            yield Violation("SCH-09", "pack")
        if constraint.get("packDomain"):
            yield Violation("SCH-10", "packDomain")


def _above(whole: Document, scope: str) -> list[str]:
    """Return the scopes that enclose a scope, innermost first."""
    if scope == "":
        return []
    around = [f"g:{g['name']}" for g in groups(whole) if scope.startswith("c:") and scope[2:] in g["cliqueNames"]]
    return [*around[:1], ""]


def _names(whole: Document, scopes: dict[str, Document], facts: AdmissionFacts) -> list[Violation]:
    topologies = {scope: str(constraint.get("topologyName") or "") for scope, constraint in scopes.items()}
    named = {name for name in topologies.values() if name}
    violations = []
    if len(named) > 1:
        violations.append(Violation("VTC-04", "topologyName"))
    if any(
        not name and not any(topologies.get(outer) for outer in _above(whole, scope))
        for scope, name in topologies.items()
    ):
        violations.append(Violation("VTC-03", "topologyName"))
    if not violations and not named <= facts.bindings.keys():
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


def _hierarchy(whole: Document, scopes: dict[str, Document], facts: AdmissionFacts) -> Iterator[Violation]:
    levels = _levels(scopes, facts)
    for inner, constraint in scopes.items():
        for outer in _above(whole, inner):
            for field in ("required", "preferred"):
                narrow, wide = constraint["pack"].get(field), scopes.get(outer, {"pack": {}})["pack"].get(field)
                if narrow and wide and levels.index(wide) > levels.index(narrow):
                    rule, leaf = ("VTC-08", LEAF) if field == "required" else ("VTC-09", f"{LEAF}.pack.preferred")
                    yield Violation(rule, leaf)


def _levels(scopes: dict[str, Document], facts: AdmissionFacts) -> list[str]:
    [name] = {constraint["topologyName"] for constraint in scopes.values() if constraint.get("topologyName")}
    return list(facts.bindings[name])
