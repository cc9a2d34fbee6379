"""Rules about startup order and termination delay (VAL-18 to VAL-23, VAL-45)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reference_impl.admission.errors import FieldError, duplicate, invalid, required
from reference_impl.admission.rules import paths
from reference_impl.admission.rules.syntax import repeated
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
        if rings := cycles(parents):
            yield invalid(paths.CLIQUES, rings, "clique must not have circular dependencies")
    yield from _termination_delay(template.termination_delay)


def _parent_errors(path: str, clique: str, parents: list[str]) -> Iterator[FieldError]:
    for parent in parents:
        if not parent:
            yield required(path, "clique dependency must not be empty")
        elif parent == clique:
            yield invalid(path, parent, "clique dependency cannot refer to itself")
    if twice := repeated(parents):
        yield duplicate(path, twice)


def cycles(parents: Mapping[str, list[str]]) -> list[list[str]]:
    """Return the cycles of two or more cliques that wait for each other at startup, sorted."""

    def above(clique: str) -> set[str]:
        visited: set[str] = set()
        open_ends = [clique]
        while open_ends:
            for parent in parents.get(open_ends.pop(), ()):
                if parent not in visited:
                    visited.add(parent)
                    open_ends.append(parent)
        return visited

    ancestors = {clique: above(clique) for clique in parents}
    rings = {
        tuple(sorted({clique, *(other for other in reachable if clique in ancestors.get(other, ()))}))
        for clique, reachable in ancestors.items()
        if clique in reachable
    }
    return [list(ring) for ring in sorted(rings) if len(ring) > 1]


def _termination_delay(delay: str | None) -> Iterator[FieldError]:
    path = f"{paths.TEMPLATE}.terminationDelay"
    if delay is None:
        yield required(path, "terminationDelay is required")
        return
    try:
        if durations.parse(delay) <= 0:
            yield invalid(path, delay, "terminationDelay must be greater than 0")
    except ValueError as error:
        yield invalid(path, delay, str(error))
