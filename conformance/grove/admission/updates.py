"""Find the changes of a set that break a rule (docs/spec/admission.md, section 8, MNV-04)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformance.grove.admission import model, topology
from conformance.grove.admission.defaults import defaulted
from conformance.grove.admission.violation import AdmissionFacts, Document, Violation, cliques, groups

_OF_CLIQUES = {
    "UPD-05": ("spec", "roleName"),
    "UPD-06": ("spec", "minAvailable"),
    "UPD-07": ("spec", "startsAfter"),
    "UPD-08": ("spec", "podSpec", "schedulerName"),
    "UPD-09": ("resourceSharing",),
}
_OF_GROUPS = {
    "UPD-17": ("minAvailable",),
    "UPD-18": ("cliqueNames",),
    "UPD-19": ("resourceSharing",),
}
_OF_SETS = {
    "UPD-12": ("cliqueStartupType",),
    "UPD-13": ("resourceClaimTemplates",),
    "UPD-14": ("resourceSharing",),
}


def update(pcs: Document, stored: Document, facts: AdmissionFacts) -> list[Violation]:
    """Return the violations of replacing `stored` with `pcs`. Changes are judged only if the new set itself is valid
    (ADM-10)."""
    whole, before = defaulted(pcs), defaulted(stored)
    wrong = [*model.always(whole, facts), *topology.shape(whole), *_added_to_pods(whole, before)]
    wrong += _mnnvl(whole, before)
    return wrong or [*_changes(whole, before), *topology.update(whole, before)]


def _changes(whole: Document, before: Document) -> Iterator[Violation]:
    template, old = whole["spec"]["template"], before["spec"]["template"]
    for rule, way in _OF_SETS.items():
        if _at(template, way) != _at(old, way):
            yield Violation(rule, way[-1])
    names, old_names = [c["name"] for c in cliques(whole)], [c["name"] for c in cliques(before)]
    if len(names) != len(old_names):
        yield Violation("UPD-02", "cliques")
    if set(names) - set(old_names):
        yield Violation("UPD-03", "name")
    ordered = template["cliqueStartupType"] != "CliqueStartupTypeAnyOrder"
    if ordered and any(name in old_names and old_names.index(name) != i for i, name in enumerate(names)):
        yield Violation("UPD-04", "cliques")
    yield from _same(cliques(whole), cliques(before), _OF_CLIQUES)
    if len(groups(whole)) != len(groups(before)):
        yield Violation("UPD-15", "podCliqueScalingGroups")
        return
    if {g["name"] for g in groups(whole)} - {g["name"] for g in groups(before)}:
        yield Violation("UPD-16", "name")
    yield from _same(groups(whole), groups(before), _OF_GROUPS)


def _same(now: list[Document], before: list[Document], rules: Mapping[str, tuple[str, ...]]) -> Iterator[Violation]:
    had = {entry["name"]: entry for entry in before}
    for entry in now:
        for rule, way in rules.items():
            if entry["name"] in had and _at(entry, way) != _at(had[entry["name"]], way):
                yield Violation(rule, way[-1])


def _added_to_pods(whole: Document, before: Document) -> Iterator[Violation]:
    """Yield violations of the rule that upstream fails to enforce on updates (DFT-06)."""
    had = {clique["name"]: clique["spec"]["podSpec"] for clique in cliques(before)}
    for clique in cliques(whole):
        pod, old = clique["spec"]["podSpec"], had.get(clique["name"], {})
        for rule, field in (("VAL-40", "topologySpreadConstraints"), ("VAL-41", "nodeName")):
            if pod.get(field) and not old.get(field):
                yield Violation(rule, field)


def _mnnvl(whole: Document, before: Document) -> Iterator[Violation]:
    had = dict(_holders(before))
    for key, value in _holders(whole):
        if key in had and had[key] != value:
            yield Violation("MNV-04", model.MNNVL)


def _holders(whole: Document) -> Iterator[tuple[str, str | None]]:
    for kind, entries in (("", [{**whole["metadata"], "name": ""}]), ("c", cliques(whole)), ("g", groups(whole))):
        for entry in entries:
            yield f"{kind}:{entry['name']}", (entry.get("annotations") or {}).get(model.MNNVL)


def _at(value: Any, way: tuple[str, ...]) -> Any:
    """Return the value of a field; None if it is absent, null or empty."""
    for step in way:
        value = value.get(step) if value else None
    return value or None
