"""Rules about startup order and termination delay (VAL-18 to VAL-23, VAL-45)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reference_impl.admission.errors import FieldError, duplicate, invalid, required
from reference_impl.admission.rules import paths
from reference_impl.admission.rules.syntax import duplicates
from reference_impl.api.models import PodCliqueSet, StartupType
from reference_impl.plan import durations


def violations(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Validate the startup order and the termination delay. `startsAfter` matters only with the explicit order
    (VAL-23)."""
    template = pcs.spec.template
    if template.clique_startup_type is StartupType.EXPLICIT:
        for i, clique in enumerate(template.cliques):
            yield from _parent_errors(
                f"{paths.clique(i)}.spec.startsAfter", clique.name, clique.spec.starts_after or []
            )
        parents = {clique.name: clique.spec.starts_after or [] for clique in template.cliques}
        if unknown := dict.fromkeys(name for names in parents.values() for name in names if name not in parents):
            detail = "unknown clique names found, all clique dependencies must be defined as cliques"
            yield invalid(f"{paths.CLIQUES}.startsAfter", ",".join(unknown), detail)
        if clique_cycles := cycles(parents):
            yield invalid(paths.CLIQUES, clique_cycles, "clique must not have circular dependencies")
    yield from _termination_delay_errors(template.termination_delay)


def _parent_errors(path: str, clique: str, parents: list[str]) -> Iterator[FieldError]:
    for parent in parents:
        if not parent:
            yield required(path, "clique dependency must not be empty")
        elif parent == clique:
            yield invalid(path, parent, "clique dependency cannot refer to itself")
    if repeated_parents := duplicates(parents):
        yield duplicate(path, repeated_parents)


def cycles(parents: Mapping[str, list[str]]) -> list[list[str]]:
    """Return the cycles of two or more cliques that wait for each other at startup, sorted."""

    def ancestors_of(clique: str) -> set[str]:
        visited: set[str] = set()
        pending_cliques = [clique]
        while pending_cliques:
            for parent in parents.get(pending_cliques.pop(), ()):
                if parent not in visited:
                    visited.add(parent)
                    pending_cliques.append(parent)
        return visited

    ancestors = {clique: ancestors_of(clique) for clique in parents}
    cycle_members = {
        tuple(sorted({clique, *(other for other in reachable if clique in ancestors.get(other, ()))}))
        for clique, reachable in ancestors.items()
        if clique in reachable
    }
    return [list(cycle) for cycle in sorted(cycle_members) if len(cycle) > 1]


def _termination_delay_errors(delay: str | None) -> Iterator[FieldError]:
    path = f"{paths.TEMPLATE}.terminationDelay"
    if delay is None:
        yield required(path, "terminationDelay is required")
        return
    try:
        if durations.parse(delay) <= 0:
            yield invalid(path, delay, "terminationDelay must be greater than 0")
    except ValueError as error:
        yield invalid(path, delay, str(error))
