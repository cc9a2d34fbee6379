"""PodGangs identified by the PodCliques that they hold. Where a PodGangMap defines the gangs, their names say nothing
about their contents (docs/decisions/019-coherent-updates.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from conformance.grove import labels
from conformance.grove.expected import ExpectedClique, ExpectedObjects
from conformance.grove.fields import Document, condition_is, items, name, text
from conformance.history.query import Unmet, predicate
from conformance.history.view import View

GANGS = "podgangs"


def cliques_of(gang: Document | None) -> list[str]:
    """Return the names of the PodCliques for which a gang has PodGroups, sorted."""
    return sorted(text(group, "name") for group in items(gang, "spec", "podgroups"))


def gang_of(view: View, clique: str) -> Document | None:
    """Return the PodGang that has a PodGroup for a PodClique, or None."""
    return next((gang for gang in view.list(GANGS) if clique in cliques_of(gang)), None)


@predicate
def all_in_gangs(view: View, cliques: Collection[str]) -> bool | Unmet:
    """Each of these PodCliques is in a PodGang."""
    missing = sorted(set(cliques) - _cliques_in_gangs(view))
    return not missing or Unmet(f"no gang has a PodGroup for {', '.join(missing)}")


@predicate
def none_in_gangs(view: View, cliques: Collection[str]) -> bool | Unmet:
    """None of these PodCliques is in a PodGang."""
    remaining = sorted(set(cliques) & _cliques_in_gangs(view))
    return not remaining or Unmet(f"gangs still have PodGroups for {', '.join(remaining)}")


@predicate
def is_initialized(view: View, clique: str, status: str = "True") -> bool | Unmet:
    """The PodGang of a PodClique has this status of the condition Initialized."""
    reported = condition_is(gang_of(view, clique), "Initialized")
    return reported == status or Unmet(f"gang of {clique}: Initialized is {reported or 'absent'}")


def with_actual_gang_names(expected: ExpectedObjects, view: View) -> ExpectedObjects:
    """Return the same objects, but give each gang the name of the existing gang that holds all or most of its cliques.
    A gang that does not exist keeps its name."""
    actual_names = _actual_names(expected, view)
    gangs = [replace(gang, name=actual_names.get(gang.name, gang.name)) for gang in expected.gangs.values()]
    cliques = {clique.name: _renamed(clique, actual_names) for clique in expected.cliques.values()}
    return replace(expected, gangs={gang.name: gang for gang in gangs}, cliques=cliques)


def _actual_names(objects: ExpectedObjects, view: View) -> dict[str, str]:
    """Return expected name → actual name for the gangs that exist. The most similar gangs are paired first."""
    actual_by_expected: dict[str, str] = {}
    for _, _, expected, actual in sorted(_pairs(objects, view), reverse=True):
        if expected not in actual_by_expected and actual not in actual_by_expected.values():
            actual_by_expected[expected] = actual
    return actual_by_expected


def _pairs(expected: ExpectedObjects, view: View) -> list[tuple[float, bool, str, str]]:
    members = {name(gang): set(cliques_of(gang)) for gang in view.list(GANGS)}
    return [
        (len(shared) / len(cliques | gang.minimums.keys()), gang.name == actual, gang.name, actual)
        for gang in expected.gangs.values()
        for actual, cliques in members.items()
        if (shared := cliques & gang.minimums.keys())
    ]


def _renamed(clique: ExpectedClique, actual_names: Mapping[str, str]) -> ExpectedClique:
    renamed_labels = {key: actual_names.get(value, value) if key in (labels.GANG, labels.BASE_GANG) else value
            for key, value in clique.labels.items()}  # fmt: skip
    gang, base_gang = (actual_names.get(gang, gang) for gang in (clique.gang, clique.base_gang))
    return replace(clique, labels=renamed_labels, gang=gang, base_gang=base_gang)


def _cliques_in_gangs(view: View) -> set[str]:
    return {clique for gang in view.list(GANGS) for clique in cliques_of(gang)}
