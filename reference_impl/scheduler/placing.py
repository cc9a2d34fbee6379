"""Placement of the pods of one gang, always in the required domains and, if possible, in the preferred domains.

A preference that cannot be met is widened level by level up to the required domain. On each level, as few preferred
domains as possible are used (GS-37).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.gang import ConstraintScope, Gang
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.search import Budget, Need, Restriction, Search

MAX_EXTRA_DOMAINS = 4
"""Maximum number of additional preferred domains that are combined before a level is given up."""

Pending = Sequence[tuple[int, list[Pod]]]
"""Pairs of a group's index and its pods to be placed."""
Placement = list[tuple[Pod, int]]
"""Pairs of a pod and the index of its node."""


def place(gang: Gang, pending: Pending, capacity: Capacity, budget: Budget) -> Placement | None:
    """Place all pending pods and take their capacity, or place none."""
    needs = needs_of(gang, pending, capacity)
    required = restrictions(gang, needs, capacity)
    if required is None:
        return None
    preferring_scopes = [scope for scope in gang.scopes if scope.preferred and _needs_in(scope, needs)]
    if not preferring_scopes:
        return _run(capacity, needs, required, budget)
    strict_restrictions = [r for scope in preferring_scopes for r in next(_preferences(gang, scope, needs, capacity))]
    if (placement := _run(capacity, needs, required + strict_restrictions, budget)) is not None:
        return placement
    accepted_restrictions, mark = required, capacity.mark()
    budget.start_search()  # a gang must not wait because its preferences used up the budget
    if _run(capacity, needs, required, budget) is None:
        return None
    capacity.undo(mark)
    for scope in preferring_scopes:
        for preference_restrictions in _preferences(gang, scope, needs, capacity):
            if _run(capacity, needs, accepted_restrictions + preference_restrictions, budget) is not None:
                capacity.undo(mark)
                accepted_restrictions = accepted_restrictions + preference_restrictions
                break
    budget.start_search()
    if (
        placement := _run(capacity, needs, accepted_restrictions, budget)
    ) is not None or accepted_restrictions == required:
        return placement
    return _run(capacity, needs, required, budget)


def needs_of(gang: Gang, pending: Pending, capacity: Capacity) -> list[Need]:
    """Return the pending pods by group and shape, large pods first."""
    needs: list[Need] = []
    for group, pods in pending:
        needs_by_shape: dict[int, Need] = {}
        for pod in pods:
            shape = capacity.shape(pod)
            needs_by_shape.setdefault(id(shape), Need(group, shape, [])).pods.append(pod)
        waiting_count = len(gang.groups[group].waiting)
        for need in needs_by_shape.values():
            need.desired_count = max(need.count, waiting_count if len(needs_by_shape) == 1 else 0)
        needs += needs_by_shape.values()
    return sorted(needs, key=lambda need: (need.shape.size, need.count), reverse=True)


def restrictions(gang: Gang, needs: Sequence[Need], capacity: Capacity) -> list[Restriction] | None:
    """Return the restrictions of the needs to required domains, or None if the bound pods violate a constraint because
    they are in several domains or in none."""
    required = []
    for scope in gang.scopes:
        if scope.required and (indices := _needs_in(scope, needs)):
            settled = settled_domains(gang, scope, scope.required, capacity)
            if len(settled) > 1 or "" in settled:
                return None
            required.append(Restriction(scope.required, indices, settled, 0 if settled else 1))
    return required


def settled_domains(gang: Gang, scope: ConstraintScope, key: str, capacity: Capacity) -> frozenset[str]:
    """Return the domains in which a scope already has pods. Pods on deleted nodes do not count."""
    nodes = (capacity.index.get(node) for group in scope.groups for _, node in gang.groups[group].members)
    return frozenset(capacity.domain(key, node) for node in nodes if node is not None)


def _preferences(
    gang: Gang, scope: ConstraintScope, needs: Sequence[Need], capacity: Capacity
) -> Iterator[list[Restriction]]:
    """Yield ways to meet a preference, best first: one domain, few domains within one domain of the next level, few
    domains."""
    indices = _needs_in(scope, needs)
    settled = settled_domains(gang, scope, scope.preferred, capacity) - {""}
    initial_width = 0 if settled else 1
    yield [Restriction(scope.preferred, indices, settled, initial_width)]
    wider_keys = _wider_keys(gang, scope)
    pods = sum(needs[n].count for n in indices)
    for width in range(initial_width + 1, min(MAX_EXTRA_DOMAINS, pods, len(capacity.domains(scope.preferred))) + 1):
        restriction = Restriction(scope.preferred, indices, settled, width)
        yield from (
            [*_single_domain_restriction(gang, scope, key, indices, capacity), restriction] for key in wider_keys
        )
        yield [restriction]
    yield from (_single_domain_restriction(gang, scope, key, indices, capacity) for key in wider_keys)


def _single_domain_restriction(
    gang: Gang, scope: ConstraintScope, key: str, indices: tuple[int, ...], capacity: Capacity
) -> list[Restriction]:
    settled = settled_domains(gang, scope, key, capacity) - {""}
    return [Restriction(key, indices, settled, 0 if settled else 1)]


def _wider_keys(gang: Gang, scope: ConstraintScope) -> list[str]:
    """Return the label keys between the required and the preferred key, narrowest first."""
    levels = gang.levels
    if scope.preferred not in levels:
        return []
    first_level = levels.index(scope.required) + 1 if scope.required in levels else 0
    return list(reversed(levels[first_level : levels.index(scope.preferred)]))


def _needs_in(scope: ConstraintScope, needs: Sequence[Need]) -> tuple[int, ...]:
    return tuple(n for n, need in enumerate(needs) if need.group in scope.groups)


def _run(capacity: Capacity, needs: list[Need], required: list[Restriction], budget: Budget) -> Placement | None:
    search = Search(capacity, needs, list(required), budget)
    return search.placement() if search.run() else None
