"""Placement of pods that depend on other pods (anti-affinity, affinity or spread), one pod at a time, with the filters
checking each step. The search is exact for small gangs; a gang of more than `MAX_BACKTRACKING_PODS` pods gets one try
without backtracking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reference_impl.scheduler.search import Need, Nodes, Search

MAX_BACKTRACKING_PODS = 200
"""Maximum number of pods of a gang for which the search backtracks."""
STEP_COST = 100
"""The cost, in steps of the budget, of each pod that is placed after backtracking. It is high because many nodes are
checked for the pod."""


class Stepwise:
    """One attempt. A successful `run` leaves the placement in the capacity, a failed one leaves it unchanged."""

    def __init__(self, search: Search, allowed: list[Nodes]) -> None:
        self._search, self._needs, self._allowed = search, search.needs, allowed
        self._capacity = search.capacity
        self._index = {id(need): n for n, need in enumerate(self._needs)}
        self._remaining = [need.count for need in self._needs]
        self._order_matters = not all(need.shape.guard is None or need.shape.guard.monotone for need in self._needs)
        self.obstacle: tuple[Need, int, Counter[str]] | None = None
        """The need whose pods could not all be placed, the number of its placed pods, and the number of nodes that each
        filter rejects."""

    def run(self, *, explain: bool = False) -> bool:
        """Search for a placement and return whether there is one. With `explain`, stop after the first try and record
        the obstacle."""
        search, budget, mark = self._search, self._search.budget, self._capacity.mark()
        search.allocations.clear()
        backtracks, visited = sum(self._remaining) <= MAX_BACKTRACKING_PODS and not explain, set[object]()
        if backtracks and any(self._exceeds_room(n) for n in range(len(self._needs))):
            return False
        options, has_backtracked = [self._options()], False
        while any(self._remaining):
            option = next(options[-1], None)
            if option is None:
                if explain:
                    self._record_obstacle()
                options.pop()
                if not options or not backtracks:
                    break
                self._step_back()
                has_backtracked = True
                continue
            if has_backtracked:
                budget.spend(STEP_COST)
                if budget.gang_steps < 0:
                    budget.exhausted = True
                    break
            self._take(*option)
            state = (
                frozenset(Counter((id(need), node) for need, node, _ in search.allocations).items())
                if backtracks
                else None
            )
            if backtracks and state in visited:
                self._step_back()
                continue
            visited.add(state)
            options.append(self._options())
        else:
            return True
        self._capacity.undo(mark)
        search.allocations.clear()
        return False

    def _options(self) -> Iterator[tuple[int, int]]:
        """Yield the next pods that can be placed, as the index of the need and a node. Of equal nodes, only one is
        tried."""
        for n, need in enumerate(self._needs):
            if not self._remaining[n]:
                continue
            tried: set[object] = set()
            for node in self._nodes(n):
                if not self._refusal(need, node) and (key := self._equivalence_key(node)) not in tried:
                    tried.add(key)
                    yield n, node
            if not self._order_matters:
                return

    def _nodes(self, n: int) -> list[int]:
        slots, allowed_nodes = self._needs[n].shape.slots, self._allowed[n]
        nodes = [i for i in (self._needs[n].shape.eligible if allowed_nodes is None else allowed_nodes) if slots.get(i)]
        return sorted(nodes, key=slots.__getitem__)

    def _refusal(self, need: Need, node: int) -> str:
        return need.shape.guard.refusal(self._capacity.nodes[node]) if need.shape.guard else ""

    def _equivalence_key(self, node: int) -> object:
        """Return a key that is equal for nodes that no filter can distinguish."""
        capacity, noticed_pods_by_node = self._capacity, self._capacity.noticed_pods_by_node
        if capacity.nodes[node].metadata.name in noticed_pods_by_node or any(
            need.shape.guard and need.shape.guard.distinguishes_nodes for need in self._needs
        ):
            return node
        eligible = tuple(node in need.shape.slots for need in self._needs)
        domains = tuple(capacity.shared_domain(key, node) for key in sorted(capacity.keys))
        devices = capacity.state.devices.likeness(capacity.nodes[node])
        return tuple(sorted(capacity.free[node].items())), eligible, domains, devices

    def _exceeds_room(self, n: int) -> bool:
        """Return whether there are more pods of a need than fit on its nodes, without regard to other needs."""
        need, room = self._needs[n], 0
        if need.shape.guard is None or not need.shape.guard.monotone:
            return False
        for node in self._nodes(n):
            if not self._refusal(need, node):
                slots = need.shape.slots[node]
                self._take(n, node)
                room += 1 if self._refusal(need, node) else slots
                self._step_back()
                if room >= need.count:
                    return False
        return True

    def _take(self, n: int, node: int) -> None:
        need = self._needs[n]
        self._capacity.take(node, need.shape.requests, 1, need.shape.pod)
        self._search.allocations.append((need, node, 1))
        self._remaining[n] -= 1

    def _step_back(self) -> None:
        need, _, _ = self._search.allocations.pop()
        self._capacity.undo(self._capacity.mark() - 1)
        self._remaining[self._index[id(need)]] += 1

    def _record_obstacle(self) -> None:
        unplaced_needs = [need for need, remaining in zip(self._needs, self._remaining, strict=True) if remaining]
        need = next((n for n in unplaced_needs if n.shape.guard is not None), unplaced_needs[0])
        reasons = (
            self._refusal(need, node) if slots else "NodeResourcesFit: Insufficient resources"
            for node, slots in need.shape.slots.items()
        )
        self.obstacle = (
            need,
            need.count - self._remaining[self._index[id(need)]],
            Counter(reason for reason in reasons if reason),
        )
