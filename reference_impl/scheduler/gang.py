"""The scheduler's model of a gang: groups with pods, topology constraints, priority."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from reference_impl.scheduler.model import Pod


@dataclass
class Group:
    """A PodGroup: its minimum, its bound pods with their nodes, and the pods that could be placed now."""

    name: str
    minimum: int
    waiting: list[Pod]
    members: list[tuple[Pod, str]] = field(default_factory=list)

    @property
    def bound_count(self) -> int:
        """The number of bound pods."""
        return len(self.members)

    @property
    def missing_count(self) -> int:
        """How many more bound pods the group needs to reach its minimum."""
        return max(0, self.minimum - self.bound_count)


@dataclass(frozen=True)
class ConstraintScope:
    """A topology constraint on some groups of a gang. Its keys are node label keys; an empty key means no constraint
    (GS-34 to GS-38)."""

    groups: tuple[int, ...]
    """Indices of the groups whose pods are counted as a whole."""
    required: str = ""
    preferred: str = ""


@dataclass
class Gang:
    """A gang with its groups, its constraints and its priority."""

    name: str
    groups: list[Group]
    scopes: tuple[ConstraintScope, ...] = ()
    """From the broadest to the narrowest: the gang's own constraint, the constraints of group configs, and the
    constraints of single groups."""
    priority: int = 0
    base: str = ""
    """The base gang of a scaled gang, whose minimum must be placed first (GS-03)."""
    levels: tuple[str, ...] = ()
    """Label keys of the topology levels, broadest first. A preference that cannot be met is widened along these
    levels."""
    preempts: bool = True

    @property
    def minimum_reached(self) -> bool:
        """Whether every group has its minimum of bound pods."""
        return all(group.missing_count == 0 for group in self.groups)

    @property
    def incomplete(self) -> bool:
        """Whether pods of the minimum are missing or gated, so that there is nothing to decide yet."""
        return any(len(group.waiting) < group.missing_count for group in self.groups)

    @property
    def pending_pods(self) -> list[tuple[int, list[Pod]]]:
        """The pods to be placed for the minimum, by the index of their group."""
        return [(i, group.waiting[: group.missing_count]) for i, group in enumerate(self.groups) if group.missing_count]

    @property
    def members(self) -> list[tuple[Pod, str]]:
        """The bound pods of all groups, each with its node."""
        return [member for group in self.groups for member in group.members]


def score(gang: Gang, domain: Callable[[str, str], str]) -> float | None:
    """Return the placement score of a gang (OR-9): the mean of 1 / (number of domains in use) over the scopes with a
    preference. The score is 1.0 if there are no preferences, and None if no pods are bound. `domain` is called with a
    label key and a node."""
    if not gang.members:
        return None
    parts = []
    for scope in gang.scopes:
        used = {domain(scope.preferred, node) for i in scope.groups for _, node in gang.groups[i].members}
        if scope.preferred and used:
            parts.append(1 / len(used))
    return sum(parts) / len(parts) if parts else 1.0


def scopes(groups: Sequence[str], *levels: tuple[Sequence[str], str, str]) -> tuple[ConstraintScope, ...]:
    """Build scopes from (group names, required key, preferred key). Scopes without keys or without groups are
    omitted."""
    index = {name: i for i, name in enumerate(groups)}
    candidates = (
        ConstraintScope(tuple(index[name] for name in names if name in index), required, preferred)
        for names, required, preferred in levels
    )
    return tuple(scope for scope in candidates if scope.groups and (scope.required or scope.preferred))
