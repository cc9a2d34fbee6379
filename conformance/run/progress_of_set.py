"""How far an implementation has come with a PodCliqueSet: what should be there, and what is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conformance.grove import pods
from conformance.grove.expected import Expected
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import composition, predicates


@dataclass(frozen=True)
class Line:
    """One thing that should be there. `unmet` says what is there instead; it is empty if nothing is missing."""

    wanted: str
    unmet: str = ""


def lines(view: View, name: str, replicas: int, wanted: Expected) -> list[Line]:
    """Compare a state with what follows from the set of that name, in the order in which it comes about."""
    cliques = list(wanted.cliques.values())
    count = f"{wanted.pods} pods"
    answers: list[tuple[str, bool | Unmet]] = [
        *((f"{each.plural} {', '.join(each.names)}", each.answer(view)) for each in _objects(wanted)),
        (f"a PodGang with PodGroups for {', '.join(wanted.cliques)}", composition.all_held(wanted.cliques)(view)),
        (f"{count} of these PodCliques", predicates.all_exist(cliques)(view)),
        (f"{count} without Grove's scheduling gate", predicates.all_ungated(cliques)(view)),
        (f"{count} bound to nodes", predicates.all_bound(cliques)(view)),
        (f"{count} Ready", _all_ready(view, wanted)),
        (f"status.availableReplicas: {replicas}", predicates.available(name, replicas)(view)),
    ]
    return [Line(what, "" if answer else str(answer)) for what, answer in answers]


@dataclass(frozen=True)
class _Named:
    """Objects of a kind that are known by their names."""

    plural: str
    names: Sequence[str]

    def answer(self, view: View) -> bool | Unmet:
        missing = [name for name in self.names if view.get(self.plural, name) is None]
        there = ", ".join(view.names(self.plural)) or "none"
        return not missing or Unmet(f"{', '.join(missing)} missing; there: {there}")


def _objects(wanted: Expected) -> list[_Named]:
    kinds: Mapping[str, Mapping[str, object]] = {
        "services": wanted.services,
        "podcliquescalinggroups": wanted.groups,
        "podcliques": wanted.cliques,
    }
    return [_Named(plural, sorted(named)) for plural, named in kinds.items() if named]


def _all_ready(view: View, wanted: Expected) -> bool | Unmet:
    found = predicates.by_clique(view, wanted.cliques.values())
    ready = sum(pods.ready(pod) for of_clique in found.values() for pod in of_clique)
    return ready >= wanted.pods or Unmet(f"{ready} of {wanted.pods} are Ready")
