"""Nodes sorted by their free amount of one resource. The cost of a query depends on the size of its result, not on the
number of nodes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

from reference_impl.scheduler.change_log import ChangeLog


class Ranking:
    """Some nodes, in ascending order, ranked by their free amount of a resource. Each query first processes the new
    entries in the log of changed nodes."""

    def __init__(self, nodes: Sequence[int], free: Sequence[Mapping[str, int]], log: ChangeLog, resource: str) -> None:
        self.nodes = nodes
        """The reference keeps the list alive, since its id is the key of the ranking."""
        self.zeros = dict.fromkeys(nodes, 0)
        """A template: copying it is faster than building a new dict."""
        self._free, self._log, self._resource = free, log, resource
        self._free_amounts = {node: free[node].get(resource, 0) for node in nodes}
        self._ranked = sorted(nodes, key=self._free_amounts.__getitem__)
        self._amounts = [self._free_amounts[node] for node in self._ranked]
        self._read_count = log.count

    def count_below(self, amount: int) -> int:
        """Return the number of nodes that have less than `amount`."""
        self._catch_up()
        return bisect_left(self._amounts, amount)

    def nodes_below(self, nodes: Sequence[int], amount: int) -> list[int]:
        """Return the nodes in `nodes` that have less than `amount`."""
        if not self.count_below(amount):
            return []
        free = self._free_amounts
        return [node for node in nodes if free[node] < amount]

    def multiples(self, amount: int) -> Iterator[tuple[int, list[int]]]:
        """Yield the nodes that have at least the amount, grouped by the multiple of the amount that they have. No
        amount may change during the iteration."""
        start = self.count_below(amount)
        while start < len(self._ranked):
            times = self._amounts[start] // amount
            end = bisect_left(self._amounts, (times + 1) * amount, start)
            yield times, self._ranked[start:end]
            start = end

    def _catch_up(self) -> None:
        if self._read_count == self._log.count:
            return
        for node in self._log.changed_after(self._read_count):
            old = self._free_amounts.get(node)
            if old is None or (amount := self._free[node].get(self._resource, 0)) == old:
                continue
            rank = self._rank(node, old)
            del self._amounts[rank], self._ranked[rank]
            rank = self._rank(node, amount)
            self._amounts.insert(rank, amount)
            self._ranked.insert(rank, node)
            self._free_amounts[node] = amount
        self._read_count = self._log.count

    def _rank(self, node: int, amount: int) -> int:
        """Return the rank of a node with this amount; nodes with equal amounts are ranked by index."""
        start = bisect_left(self._amounts, amount)
        return bisect_left(self._ranked, node, start, bisect_right(self._amounts, amount, start))
