"""An exact algorithm that decides whether items fit together on nodes.

Nodes are filled one after another. Between two nodes, the state consists only of the number of items of each kind that
are left. There are few states, because a gang has few kinds of pods, and because a state is dropped if another state
has at most as many items of each kind left. The effort grows with the number of nodes and states, not with the number
of combinations of nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

Counts = tuple[int, ...]
"""The number of items of each kind."""
Fill = tuple[int, Counts]
"""A node, and the number of items of each kind that are placed on it."""
Trail = tuple[object, Fill] | None
"""The last fill and, recursively, the trail before it."""
MAX_STATES = 2_000
"""The maximum number of states that are kept. If states were dropped, a failure proves nothing."""


@dataclass(frozen=True)
class Item:
    """A kind of item. Each item is placed on one node as a whole."""

    requests: Mapping[str, int]
    count: int
    nodes: Collection[int]
    """The nodes on which the items may be placed."""


@dataclass
class Packing:
    """One packing problem. `steps` limits the effort; `proven` is False if a failure is not proven."""

    items: Sequence[Item]
    free: Sequence[Mapping[str, int]]
    """The free amounts of each node."""
    steps: int
    proven: bool = True

    def __post_init__(self) -> None:
        self._resources = sorted({name for item in self.items for name in item.requests})
        self._requested = [[item.requests.get(name, 0) for item in self.items] for name in self._resources]

    def run(self) -> list[Fill] | None:
        """Return a placement of all items, or None if no placement was found."""
        initial = tuple(item.count for item in self.items)
        nodes = self._nodes(sum(initial))
        self.steps -= 1 + len(nodes)
        if self.steps < 0:
            self.proven = False
            return None
        slots = [self._slots(node) for node in nodes]
        remaining_capacity = self._remaining_capacity(nodes, slots)
        if not self._may_fit(initial, remaining_capacity[0]):
            return None
        trails: dict[Counts, Trail] = {initial: None}
        for position, node in enumerate(nodes):
            reached_states: dict[Counts, Trail] = {}
            patterns: dict[Counts, list[Counts]] = {}
            for remaining, trail in trails.items():
                limits = tuple(map(min, remaining, slots[position]))
                if limits not in patterns:
                    patterns[limits] = self._patterns(node, limits)
                self.steps -= 1 + len(patterns[limits])
                for pattern in patterns[limits]:
                    remaining_items = tuple(a - b for a, b in zip(remaining, pattern, strict=True))
                    if remaining_items not in reached_states and self._may_fit(
                        remaining_items, remaining_capacity[position + 1]
                    ):
                        reached_states[remaining_items] = (trail, (node, pattern)) if any(pattern) else trail
                        if not any(remaining_items):
                            return _fills(reached_states[remaining_items])
            if self.steps < 0:
                self.proven = False
                return None
            if not reached_states:
                return None
            trails = self._best(reached_states)
        return None

    def _nodes(self, pods: int) -> list[int]:
        """Return the usable nodes, in ascending order of their slots. Of equal nodes, keep at most `pods`."""
        nodes_by_state: dict[object, list[int]] = {}
        for node in sorted({node for item in self.items for node in item.nodes}):
            slots = self._slots(node)
            if any(slots):
                state = tuple(sorted(self.free[node].items())), tuple(bool(n) for n in slots)
                nodes_by_state.setdefault(state, []).append(node)
        nodes = [node for equal_nodes in nodes_by_state.values() for node in equal_nodes[:pods]]
        return sorted(nodes, key=lambda node: (sum(self._slots(node)), node))

    def _slots(self, node: int) -> Counts:
        return tuple(self._slot(item, node) for item in self.items)

    def _slot(self, item: Item, node: int) -> int:
        if node not in item.nodes:
            return 0
        free = self.free[node]
        return max(0, min((free.get(name, 0) // n for name, n in item.requests.items() if n), default=item.count))

    def _remaining_capacity(self, nodes: Sequence[int], slots: Sequence[Counts]) -> list[tuple[Counts, list[int]]]:
        """Return, for each number of filled nodes, the slots by kind and the free amounts by resource of the remaining
        nodes."""
        counts, amounts = (0,) * len(self.items), [0] * len(self._resources)
        result = [(counts, amounts)]
        for node, node_slots in zip(reversed(nodes), reversed(slots), strict=True):
            counts = tuple(map(sum, zip(counts, node_slots, strict=True)))
            free = self.free[node]
            amounts = [n + max(0, free.get(name, 0)) for n, name in zip(amounts, self._resources, strict=True)]
            result.append((counts, amounts))
        return result[::-1]

    def _may_fit(self, remaining: Counts, behind: tuple[Counts, list[int]]) -> bool:
        """Return whether the remaining nodes have enough slots and free amounts for the remaining items."""
        counts, amounts = behind
        for n, m in zip(remaining, counts, strict=True):
            if n > m:
                return False
        for item_amounts, amount in zip(self._requested, amounts, strict=True):
            if sum(map(int.__mul__, remaining, item_amounts)) > amount:
                return False
        return True

    def _patterns(self, node: int, limits: Counts) -> list[Counts]:
        """Return the ways to fill a node so that no additional item fits, with at most `limits` items of each kind."""
        kinds = [k for k, n in enumerate(limits) if n]
        if not kinds:
            return [limits]
        free = self.free[node]
        requests = [self.items[k].requests for k in kinds]
        patterns: list[list[int]] = []

        def fill(position: int, room: Mapping[str, int], chosen_counts: list[int]) -> None:
            request = requests[position]
            max_count = min([limits[kinds[position]], *(room.get(name, 0) // n for name, n in request.items() if n)])
            if position == len(kinds) - 1:
                patterns.append([*chosen_counts, max_count])
                return
            for count in range(max_count, -1, -1):
                remaining = {name: amount - request.get(name, 0) * count for name, amount in room.items()}
                fill(position + 1, remaining, [*chosen_counts, count])

        fill(0, {name: free.get(name, 0) for name in self._resources}, [])
        self.steps -= len(patterns)
        result = []
        for pattern in _maximal(patterns):
            counts = [0] * len(limits)
            for k, count in zip(kinds, pattern, strict=True):
                counts[k] = count
            result.append(tuple(counts))
        return result

    def _best(self, reached_states: dict[Counts, Trail]) -> dict[Counts, Trail]:
        """Return the states that no other state dominates."""
        states: list[Counts] = []
        for state in sorted(reached_states, key=sum):
            if not any(all(map(int.__le__, other, state)) for other in states):
                states.append(state)
                if len(states) == MAX_STATES:
                    self.proven = False
                    break
        self.steps -= len(states)
        return {state: reached_states[state] for state in states}


def _maximal(patterns: list[list[int]]) -> list[list[int]]:
    maximal: list[list[int]] = []
    for pattern in sorted(patterns, key=sum, reverse=True):
        if not any(all(map(int.__ge__, other, pattern)) for other in maximal):
            maximal.append(pattern)
    return maximal


def _fills(trail: object) -> list[Fill]:
    fills = []
    while isinstance(trail, tuple):
        trail, fill = trail
        fills.append(fill)
    return fills
