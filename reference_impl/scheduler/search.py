"""Finds nodes for pods that are placed together or not at all, within the domains that they have to share.

Domains are chosen first, the widest scope first, then nodes in them. A greedy placement is tried first: large pods
before small ones, the fullest nodes first. If it fails, branch and bound tries all alternatives until the budget is
spent. The search is exact for small instances and bounded for large ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice

from reference_impl.scheduler.capacity import Capacity, Requests, Shape
from reference_impl.scheduler.model import Pod

STEPS_PER_GANG, STEPS_PER_CYCLE, STEPS_AFTERWARDS = 30_000, 400_000, 200
"""Steps of branch and bound: for one gang, for all gangs of a cycle, and for each gang after these are spent."""
WIDE_VALUES, WIDE_CHOICES = 8, 64
"""If several domains are combined: how many are considered, and how many combinations."""
DEEPEST = 200
"""Branch and bound is tried for gangs of up to this many pods."""


@dataclass
class Need:
    """Pods of one shape and one group to place."""

    group: int
    shape: Shape
    pods: list[Pod]
    hoped: int = 0
    """The number of pods including extra pods, which are to find capacity in the same domain if possible."""

    @property
    def count(self) -> int:
        """The number of pods."""
        return len(self.pods)


@dataclass(frozen=True)
class Restriction:
    """Pods of some needs have to be in domains of `key`: in `settled` ones, or in at most `width` others."""

    key: str
    needs: tuple[int, ...]
    settled: frozenset[str] = frozenset()
    width: int = 1


@dataclass
class Budget:
    """The remaining steps of searches."""

    left: int = STEPS_PER_CYCLE
    gang: int = STEPS_PER_GANG
    exhausted: bool = False

    def begin(self) -> None:
        """Begin the search for another gang."""
        self.gang = min(STEPS_PER_GANG, max(self.left, STEPS_AFTERWARDS))
        self.exhausted = False

    def spend(self) -> bool:
        """Use one step; returns False if none is left."""
        if self.gang <= 0:
            self.exhausted = True
            return False
        self.gang -= 1
        self.left -= 1
        return True


Nodes = list[int] | None
"""Nodes that a need may use; None for all eligible ones."""


@dataclass
class Search:
    """One search. A successful `run` leaves the placement in the capacity, a failed one leaves it unchanged."""

    capacity: Capacity
    needs: list[Need]
    restrictions: list[Restriction]
    budget: Budget
    found: list[tuple[Need, int, int]] = field(default_factory=list)
    """Need, node, number of pods."""

    def run(self) -> bool:
        """Search for a placement; returns whether there is one."""
        if any(need.shape.total < need.count for need in self.needs):
            return False
        self.restrictions.sort(key=lambda r: (len(self.capacity.domains(r.key)), -len(r.needs)))
        return self._settle(0, [None] * len(self.needs))

    def placement(self) -> list[tuple[Pod, int]]:
        """The placement pod by pod, after a successful `run`."""
        left = {id(need): list(need.pods) for need in self.needs}
        return [(left[id(need)].pop(0), node) for need, node, count in self.found for _ in range(count)]

    # Domains.

    def _settle(self, at: int, allowed: list[Nodes]) -> bool:
        if at == len(self.restrictions):
            return self._pack(allowed)
        restriction = self.restrictions[at]
        hopeless: set[object] = set()
        failed: frozenset[str] | None = None
        for values in self._candidates(restriction, allowed):
            if failed is not None:
                hopeless.add(self._signature(failed, restriction.key, at, allowed))
                failed = None
                if self._signature(values, restriction.key, at, allowed) in hopeless:
                    continue
            elif hopeless and self._signature(values, restriction.key, at, allowed) in hopeless:
                continue
            if self._settle(at + 1, self._narrowed(restriction, values, allowed)):
                return True
            if self.budget.exhausted:
                return False
            failed = values
        return False

    def _narrowed(self, restriction: Restriction, values: frozenset[str], allowed: list[Nodes]) -> list[Nodes]:
        domains = self.capacity.domains(restriction.key)
        inside = {node for value in values for node in domains.get(value, ())}
        result = list(allowed)
        for n in restriction.needs:
            before = allowed[n]
            slots = self.needs[n].shape.slots
            result[n] = sorted(i for i in (inside if before is None else before) if i in inside and i in slots)
        return result

    def _candidates(self, restriction: Restriction, allowed: list[Nodes]) -> Iterator[frozenset[str]]:
        """Sets of domains that fit each need by itself, the tightest first."""
        sums = [self._sums(restriction.key, n, allowed[n]) for n in restriction.needs]
        needs = [self.needs[n] for n in restriction.needs]
        settled = restriction.settled
        base = [sum(of.get(value, 0) for value in settled) for of in sums]
        if settled and all(b >= need.count for b, need in zip(base, needs, strict=True)):
            yield settled
        parts = list(zip(needs, base, sums, strict=True))
        if restriction.width:
            yield from self._single(restriction.key, settled, parts)
        for width in range(2, restriction.width + 1):
            values = [value for value in sums[0] if value not in settled]
            roomy = sorted(values, key=lambda value: (-sum(of.get(value, 0) for _, _, of in parts), value))
            ranked = []
            for choice in islice(combinations(roomy[:WIDE_VALUES], width), WIDE_CHOICES):
                held = [b + sum(of.get(value, 0) for value in choice) for _, b, of in parts]
                if all(h >= need.count for h, need in zip(held, needs, strict=True)):
                    ranked.append((held, choice))
            yield from (settled.union(choice) for _, choice in sorted(ranked))

    def _single(
        self, key: str, settled: frozenset[str], parts: Sequence[tuple[Need, int, Mapping[str, int]]]
    ) -> Iterator[frozenset[str]]:
        """One more domain: the tightest that also has capacity for the extra pods, then the largest."""
        (need, base, first), others = parts[0], parts[1:]
        too_small = self._too_small(key, settled, [need for need, _, _ in parts])
        roomy = sorted([(held, v) for v, held in first.items() if base + held >= need.hoped and v not in settled])
        passed = set()
        for _, value in roomy:
            if value not in too_small and all(b + of.get(value, 0) >= other.hoped for other, b, of in others):
                passed.add(value)
                yield settled | {value}
        tight = [(-held, v) for v, held in first.items() if base + held >= need.count and v not in settled]
        for _, value in sorted(tight):
            if (
                value not in passed
                and value not in too_small
                and all(b + of.get(value, 0) >= other.count for other, b, of in others)
            ):
                yield settled | {value}

    def _too_small(self, key: str, settled: frozenset[str], needs: Sequence[Need]) -> set[str]:
        """Domains that may fit each need, but not all together: they have too little of a resource."""
        if len(needs) == 1:
            return set()
        asked: dict[str, int] = defaultdict(int)
        for need in needs:
            for resource, amount in need.shape.requests:
                asked[resource] += amount * need.count
        found: set[str] = set()
        for resource, amount in asked.items():
            free = self.capacity.tally(key, resource)
            lacking = amount - sum(free.get(value, 0) for value in settled)
            found.update(value for value in self.capacity.domains(key) if free.get(value, 0) < lacking)
        return found

    def _sums(self, key: str, need: int, allowed: Nodes) -> dict[str, int]:
        shape = self.needs[need].shape
        if allowed is None:
            return dict(
                shape.sums(key)
            )  # a copy: the shape's own changes with each attempt, and choices are ranked in between
        sums: dict[str, int] = defaultdict(int)
        slots = shape.slots
        for i in allowed:
            if value := self.capacity.domain(key, i):
                sums[value] += slots[i]
        return sums

    def _signature(self, values: frozenset[str], key: str, at: int, allowed: list[Nodes]) -> object:
        """A key that is equal for choices of domains that the search cannot distinguish."""
        if len(values) > 1:
            return values
        nodes = self.capacity.domains(key)[next(iter(values))]
        keys = list(dict.fromkeys(r.key for r in self.restrictions[at + 1 :] if r.key != key))
        return self._alike(nodes, keys, [None if a is None else set(a) for a in allowed])

    def _alike(self, nodes: list[int], keys: list[str], allowed: list[set[int] | None]) -> object:
        if not keys:
            return tuple(sorted((self._state(i), self._mask(i, allowed)) for i in nodes))
        within: dict[str, list[int]] = defaultdict(list)
        for i in nodes:
            within[self.capacity.domain(keys[0], i)].append(i)
        domains = self.capacity.domains(keys[0])
        # A domain that extends beyond these nodes is unique: its name is part of the key.
        parts = [
            ("" if value and len(domains[value]) == len(group) else f"={value}", self._alike(group, keys[1:], allowed))
            for value, group in within.items()
        ]
        return tuple(sorted(parts, key=repr))

    def _mask(self, node: int, allowed: list[set[int] | None]) -> int:
        return sum(
            1 << n
            for n, need in enumerate(self.needs)
            if node in need.shape.slots and ((only := allowed[n]) is None or node in only)
        )

    def _state(self, node: int) -> Requests:
        return tuple(sorted(self.capacity.free[node].items()))

    # Nodes.

    def _pack(self, allowed: list[Nodes]) -> bool:
        if self._quickly(allowed):
            return True
        if not self._enough(allowed) or sum(need.count for need in self.needs) > DEEPEST:
            return False
        self.found.clear()
        return self._exactly(0, allowed)

    def _quickly(self, allowed: list[Nodes]) -> bool:
        mark = self.capacity.mark()
        self.found.clear()
        for need, nodes in zip(self.needs, allowed, strict=True):
            left = need.count
            slots = need.shape.slots
            order = None if nodes is None else iter(sorted((i for i in nodes if slots[i]), key=slots.__getitem__))
            while left:
                node = need.shape.tightest() if order is None else next(order, None)
                if node is None:
                    self.capacity.undo(mark)
                    return False
                count = min(need.shape.slots[node], left)
                self._take(need, node, count)
                left -= count
        return True

    def _enough(self, allowed: list[Nodes]) -> bool:
        """Whether the nodes together have what the needs request together."""
        nodes = {i for need, only in zip(self.needs, allowed, strict=True) for i in (only or need.shape.eligible)}
        asked: dict[str, int] = defaultdict(int)
        for need in self.needs:
            for resource, amount in need.shape.requests:
                asked[resource] += amount * need.count
        free = self.capacity.free
        return all(sum(max(0, free[i].get(r, 0)) for i in nodes) >= amount for r, amount in asked.items())

    def _exactly(self, at: int, allowed: list[Nodes]) -> bool:
        if at == len(self.needs):
            return True
        for need, only in zip(self.needs[at:], allowed[at:], strict=True):
            slots = need.shape.slots
            if (need.shape.total if only is None else sum(slots[i] for i in only)) < need.count:
                return False
        nodes = self._worth_a_try(at, allowed)
        slots = self.needs[at].shape.slots
        hold = [slots[node] for node, _ in nodes]
        behind = [0] * (len(hold) + 1)
        for j in range(len(hold) - 1, -1, -1):
            behind[j] = behind[j + 1] + hold[j]
        return self._spread(at, allowed, nodes, hold, behind, [0] * len(nodes), 0, self.needs[at].count)

    def _worth_a_try(self, at: int, allowed: list[Nodes]) -> list[tuple[int, object]]:
        """Nodes for a need, the tightest first, each with its class. Of equal nodes, as many as there are pods."""
        only = [None if a is None else set(a) for a in allowed]
        need = self.needs[at]
        pods = sum(n.count for n in self.needs[at:])
        slots = need.shape.slots
        mine = allowed[at]
        classes: dict[object, list[int]] = defaultdict(list)
        for i in need.shape.eligible if mine is None else mine:
            if slots[i]:
                classes[(self._state(i), self._mask(i, only) >> at)].append(i)
        ranked = sorted(classes.items(), key=lambda item: (slots[item[1][0]], item[1][0]))
        return [(i, number) for number, (_, nodes) in enumerate(ranked) for i in nodes[:pods]]

    def _spread(
        self,
        at: int,
        allowed: list[Nodes],
        nodes: list[tuple[int, object]],
        hold: list[int],
        behind: list[int],
        chosen: list[int],
        begin: int,
        left: int,
    ) -> bool:
        """Place the `left` remaining pods of a need on nodes from `begin` on, then the needs after it."""
        if not left:
            return self._exactly(at + 1, allowed)
        need = self.needs[at]
        for j in range(begin, len(nodes)):
            if behind[j] < left:
                return False
            node, alike = nodes[j]
            most = min(hold[j], left)
            if j and nodes[j - 1][1] == alike:
                most = min(most, chosen[j - 1])  # of equal nodes, the earlier one gets no fewer pods
            for count in range(most, 0, -1):
                if not self.budget.spend():
                    return False
                mark = self.capacity.mark()
                self._take(need, node, count)
                chosen[j] = count
                if self._spread(at, allowed, nodes, hold, behind, chosen, j + 1, left - count):
                    return True
                self.capacity.undo(mark)
                self.found.pop()
                chosen[j] = 0
                if self.budget.exhausted:
                    return False
        return False

    def _take(self, need: Need, node: int, count: int) -> None:
        self.capacity.take(node, need.shape.requests, count)
        self.found.append((need, node, count))
