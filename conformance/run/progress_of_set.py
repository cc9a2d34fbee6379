"""The progress of an implementation with a PodCliqueSet: which objects should exist, and which do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from conformance.grove import pods
from conformance.grove.expected import ExpectedObjects
from conformance.history.query import Unmet
from conformance.history.view import View
from conformance.testing import composition, predicates


@dataclass(frozen=True)
class ProgressLine:
    """One thing that should exist. `unmet` says what exists instead, and is empty if nothing is missing."""

    expected: str
    unmet: str = ""


def progress_lines(view: View, name: str, replicas: int, expected: ExpectedObjects) -> list[ProgressLine]:
    """Compare the state with what should follow from the set `name`, in the order in which the objects normally
    appear."""
    cliques = list(expected.cliques.values())
    pod_count = f"{expected.pods} pods"
    results: list[tuple[str, bool | Unmet]] = [
        *(
            (f"{objects.plural} {', '.join(objects.names)}", objects.answer(view))
            for objects in _expected_names(expected)
        ),
        (
            f"a PodGang with PodGroups for {', '.join(expected.cliques)}",
            composition.all_in_gangs(expected.cliques)(view),
        ),
        (f"{pod_count} of these PodCliques", predicates.all_exist(cliques)(view)),
        (f"{pod_count} without Grove's scheduling gate", predicates.all_ungated(cliques)(view)),
        (f"{pod_count} bound to nodes", predicates.all_bound(cliques)(view)),
        (f"{pod_count} Ready", _all_ready(view, expected)),
        (f"status.availableReplicas: {replicas}", predicates.is_available(name, replicas)(view)),
    ]
    return [ProgressLine(subject, "" if answer else str(answer)) for subject, answer in results]


@dataclass(frozen=True)
class _ExpectedNames:
    """The names of the expected objects of one resource."""

    plural: str
    names: Sequence[str]

    def answer(self, view: View) -> bool | Unmet:
        missing_names = [name for name in self.names if view.get(self.plural, name) is None]
        existing_names = ", ".join(view.names(self.plural)) or "none"
        return not missing_names or Unmet(f"{', '.join(missing_names)} missing; there: {existing_names}")


def _expected_names(expected: ExpectedObjects) -> list[_ExpectedNames]:
    names_by_plural: Mapping[str, Mapping[str, object]] = {
        "services": expected.services,
        "podcliquescalinggroups": expected.groups,
        "podcliques": expected.cliques,
    }
    return [_ExpectedNames(plural, sorted(names)) for plural, names in names_by_plural.items() if names]


def _all_ready(view: View, expected: ExpectedObjects) -> bool | Unmet:
    members = predicates.pods_by_clique(view, expected.cliques.values())
    ready_count = sum(pods.is_ready(pod) for clique_pods in members.values() for pod in clique_pods)
    return ready_count >= expected.pods or Unmet(f"{ready_count} of {expected.pods} are Ready")
