"""A log of the nodes whose capacity has changed. The cost of a query depends on the number of these nodes and not on
the number of changes: while many gangs wait, a reader may have missed thousands of changes to a few nodes."""

from __future__ import annotations


class ChangeLog:
    """Nodes in the order of their last change. Each reader remembers the `count` up to which it has read."""

    def __init__(self) -> None:
        self.count = 0
        """The number of changes so far."""
        self._last_changes: dict[int, int] = {}
        """The number of each node's last change, in ascending order."""

    def add(self, node: int) -> None:
        """Record a change of a node."""
        self.count += 1
        self._last_changes.pop(node, None)
        self._last_changes[node] = self.count

    def changed_after(self, count: int) -> list[int]:
        """Return the nodes that have changed after the first `count` changes, in the order of their last change."""
        nodes = []
        for node, number in reversed(self._last_changes.items()):
            if number <= count:
                break
            nodes.append(node)
        return nodes[::-1]
