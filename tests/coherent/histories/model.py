"""Generated histories of coherent sets. A history has a set and the actions on it. Hypothesis draws and shrinks
histories.

A history is data. It can run on the reference's planner (`simulated`), on its operator (`in_memory`) and on a real
control plane (`live`), and can be written as a manifest with kubectl commands (`reproduction`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

from hypothesis import strategies as st

FIRST_VERSION, LAST_VERSION = 1, 9
"""The version with which a set is created, and the version that replaces broken versions at the end."""
COHERENT, ROLLING, ON_DELETE = STRATEGIES = "Coherent", "RollingRecreate", "OnDelete"
INVARIANTS = tuple(f"INV-{index:03}" for index in (*range(11, 23), 24))
"""The ids of the rules of coherent updates, which judge every history."""


@dataclass(frozen=True)
class Part:
    """A standalone clique, or a scaling group with one clique of one pod."""

    name: str
    is_group: bool
    replicas: int
    minimum: int
    budget: int

    def __str__(self) -> str:
        return f"{self.name}{self.replicas}/{self.minimum}/{self.budget}"


@dataclass(frozen=True)
class Change:
    """Change the version of the templates of some parts. Pods of a version that does not work never become Ready."""

    parts: tuple[str, ...]
    version: int
    works: bool = True


@dataclass(frozen=True)
class Revert:
    """Undo the last change."""


@dataclass(frozen=True)
class Scale:
    """Scale a part of the first replica. The request is rejected while an update is running."""

    part: str
    replicas: int


@dataclass(frozen=True)
class LosePod:
    """Delete the pod whose index is `number` modulo the number of pods."""

    number: int


@dataclass(frozen=True)
class FailNode:
    """Remove a node with all its pods, and add the node again without pods."""


@dataclass(frozen=True)
class Restart:
    """Kill the operator and start it again."""


@dataclass(frozen=True)
class PauseCollector:
    """Suspend the garbage collector for a while."""


@dataclass(frozen=True)
class SwitchStrategy:
    """Change the update strategy."""

    strategy: str


@dataclass(frozen=True)
class Proceed:
    """Wait for at most `steps` sub-steps of an update."""

    steps: int


@dataclass(frozen=True)
class Replace:
    """Wait until `pods` more pods have been created, or the set is at rest."""

    pods: int


@dataclass(frozen=True)
class Settle:
    """Wait until the update has ended. If a version does not work, the update need not end."""


Action = (
    Change
    | Revert
    | Scale
    | LosePod
    | FailNode
    | Restart
    | PauseCollector
    | SwitchStrategy
    | Proceed
    | Replace
    | Settle
)


@dataclass(frozen=True)
class GeneratedHistory:
    """A set and the actions on it, in order. At the end, all broken versions are replaced, and the set must come to
    rest."""

    parts: tuple[Part, ...]
    replicas: int
    actions: tuple[Action, ...]
    strategy: str = COHERENT
    """The update strategy with which the set is created."""

    def __str__(self) -> str:
        parts = " ".join(map(str, self.parts))
        description = f"set of {self.replicas} × {parts}, {self.strategy}"
        return "\n".join([description, *(f"  {action}" for action in self.actions)])

    @property
    def may_keep_old_pods(self) -> bool:
        """Return whether OnDelete may have left pods of old versions."""
        return ON_DELETE in (
            self.strategy,
            *(action.strategy for action in self.actions if isinstance(action, SwitchStrategy)),
        )

    def part(self, name: str) -> Part:
        """Return the part with this name."""
        return next(part for part in self.parts if part.name == name)


def parts() -> st.SearchStrategy[tuple[Part, ...]]:
    """Draw one to three parts: f and h are standalone cliques, and p and d are scaling groups."""
    names = st.lists(st.sampled_from("fpdh"), min_size=1, max_size=3, unique=True)
    return names.flatmap(lambda chosen_names: st.tuples(*map(_part, sorted(chosen_names))))


def _part(name: str) -> st.SearchStrategy[Part]:
    minimums, extras, slacks = st.integers(1, 2), st.integers(0, 3), st.integers(0, 1)
    return st.builds(
        lambda minimum, extra, slack: Part(name, name in "pd", minimum + extra, minimum, minimum + slack),
        minimums,
        extras,
        slacks,
    )


def _actions(members: tuple[Part, ...]) -> st.SearchStrategy[Action]:
    names = [part.name for part in members]
    part_names = st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True).map(sorted).map(tuple)
    minimum_by_part = {part.name: part.minimum for part in members}
    scale_actions = st.sampled_from(names).flatmap(
        lambda name: st.builds(Scale, st.just(name), st.integers(minimum_by_part[name], minimum_by_part[name] + 4))
    )
    working_changes = st.builds(Change, part_names, st.integers(FIRST_VERSION, 3))
    broken_changes = st.builds(Change, part_names, st.integers(4, 5), st.just(False))
    return st.one_of(
        working_changes,
        st.builds(Proceed, st.integers(1, 3)),
        st.just(Revert()),
        scale_actions,
        st.just(Settle()),
        st.builds(LosePod, st.integers(0, 20)),
        broken_changes,
        st.just(Restart()),
        st.just(FailNode()),
        st.just(PauseCollector()),
        st.builds(SwitchStrategy, st.sampled_from(STRATEGIES)),
    )


def histories(limit: int = 8) -> st.SearchStrategy[GeneratedHistory]:
    """Draw histories with at most `limit` actions."""
    return parts().flatmap(
        lambda members: st.builds(
            GeneratedHistory,
            st.just(members),
            st.sampled_from([1, 1, 2]),
            st.lists(_actions(members), min_size=1, max_size=limit).map(tuple),
        )
    )


DIRECTIONS = tuple(permutations(STRATEGIES, 2))
"""All changes from one strategy to another."""


def switches(old_strategy: str, new_strategy: str) -> st.SearchStrategy[GeneratedHistory]:
    """Draw histories of sets that are created with one strategy and switched to another in any phase of an update.

    Half of the histories start with another switch, because the gangs of a set that was once Coherent keep the marks of
    coherent updates. With OnDelete, pods are deleted so that the operator replaces them.
    """
    earlier_strategies = [(), (), *((strategy,) for strategy in STRATEGIES if strategy != old_strategy)]

    def build_histories(members: tuple[Part, ...]) -> st.SearchStrategy[GeneratedHistory]:
        names = tuple(part.name for part in members)

        def build_history(
            first_strategies: tuple[str, ...], change: Change, pods: int, later_actions: list[Action]
        ) -> GeneratedHistory:
            first_strategy, *_ = (*first_strategies, old_strategy)
            deletions = [LosePod(number) for number in range(pods)] if old_strategy == ON_DELETE else []
            first_actions = [
                *([SwitchStrategy(old_strategy)] if first_strategies else []),
                change,
                *deletions,
                Replace(pods),
            ]
            return GeneratedHistory(
                members, 1, (*first_actions, SwitchStrategy(new_strategy), Settle(), *later_actions), first_strategy
            )

        return st.builds(
            build_history,
            st.sampled_from(earlier_strategies),
            st.builds(Change, st.just(names), st.integers(2, 3), st.sampled_from([True, True, False])),
            st.integers(0, sum(part.replicas for part in members)),
            st.lists(_actions(members), max_size=2),
        )

    return parts().flatmap(build_histories)
