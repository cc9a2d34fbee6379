"""Finds nodes for pods that are placed together or not at all, within the domains that the pods must share.

Domains are chosen first, starting with the broadest scope, and then nodes in these domains. A greedy placement is tried
first, domain by domain: large pods before small ones, the fullest nodes first. If it fails everywhere, the domains are
chosen again, and `packing` decides exactly: before each choice whether the pods fit at all, and after the last choice
where they fit. Domains that are single nodes are not chosen one by one; their pods are packed as one item. A budget of
steps limits the effort.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice

from reference_impl.scheduler.capacity import Capacity, Shape
from reference_impl.scheduler.model import Pod
from reference_impl.scheduler.packing import Item, Packing
from reference_impl.scheduler.stepwise import Stepwise

STEPS_PER_GANG, STEPS_PER_CYCLE, STEPS_AFTERWARDS = 300_000, 4_000_000, 2_000
"""The steps of exact packing for one gang, for all gangs of a cycle, and for each gang after the cycle's steps are
spent."""
WIDE_VALUES, WIDE_CHOICES = 8, 64
"""When several domains are combined: how many domains and how many combinations are considered."""
TRIES = 32
"""The number of choices of domains that only the heuristic tries, before the exact search starts."""


@dataclass
class Need:
    """Pods of one shape and one group to be placed."""

    group: int
    shape: Shape
    pods: list[Pod]
    hoped: int = 0
    """The number of pods including extra pods, for which the same domain should have capacity if possible."""

    @property
    def count(self) -> int:
        """The number of pods."""
        return len(self.pods)


@dataclass(frozen=True)
class Restriction:
    """Pods of some needs must be in domains of `key`: in the `settled` domains or in at most `width` other domains."""

    key: str
    needs: tuple[int, ...]
    settled: frozenset[str] = frozenset()
    width: int = 1


@dataclass
class Budget:
    """The remaining steps of searches."""

    remaining: int = STEPS_PER_CYCLE
    gang: int = STEPS_PER_GANG
    exhausted: bool = False

    def begin(self) -> None:
        """Start the search for another gang."""
        self.gang = min(STEPS_PER_GANG, max(self.remaining, STEPS_AFTERWARDS))
        self.exhausted = False

    def spend(self, steps: int) -> None:
        """Use some steps."""
        self.gang -= steps
        self.remaining -= steps


Nodes = list[int] | None
"""Nodes that a need may use; None means all eligible nodes."""


@dataclass
class Search:
    """One search. A successful `run` leaves the placement in the capacity, a failed one leaves it unchanged."""

    capacity: Capacity
    needs: list[Need]
    restrictions: list[Restriction]
    budget: Budget
    allocations: list[tuple[Need, int, int]] = field(default_factory=list)
    """Tuples of need, node and number of pods."""
    exact: bool = False
    tries: int = TRIES
    """The remaining tries of the heuristic before the exact search starts."""

    def run(self) -> bool:
        """Search for a placement. Return whether one was found."""
        if any(need.shape.total < need.count for need in self.needs):
            return False
        self.restrictions.sort(key=lambda r: (len(self.capacity.domains(r.key)), -len(r.needs)))
        everywhere: list[Nodes] = [None] * len(self.needs)
        if self._settle(0, everywhere):
            return True
        if self._stepwise:
            return False
        if self.tries == TRIES or (len(self.needs) == 1 and self.tries):  # in these cases the heuristic misses nothing
            return False
        return self._thoroughly(everywhere)

    def placement(self) -> list[tuple[Pod, int]]:
        """Return the placement pod by pod, after a successful `run`."""
        remaining_pods = {id(need): list(need.pods) for need in self.needs}
        return [(remaining_pods[id(need)].pop(0), node) for need, node, count in self.allocations for _ in range(count)]

    # Domains.

    def _thoroughly(self, everywhere: list[Nodes]) -> bool:
        self.exact = True
        return self._settle(0, everywhere)

    def _settle(self, at: int, allowed: list[Nodes]) -> bool:
        if self.exact:
            if (placed := self._exactly(at, allowed)) is not None:
                return placed
        elif at == len(self.restrictions):
            if self._stepwise:
                return Stepwise(self, allowed).run()
            self.tries -= 1
            return self._place_greedily(allowed)
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
            if self.budget.exhausted or not (self.exact or self.tries):
                return False
            failed = values
        return False

    def _narrowed(self, restriction: Restriction, values: frozenset[str], allowed: list[Nodes]) -> list[Nodes]:
        domains = self.capacity.domains(restriction.key)
        inside = {node for value in values for node in domains.get(value, ())}
        result = list(allowed)
        for n in restriction.needs:
            previously_allowed = allowed[n]
            slots = self.needs[n].shape.slots
            result[n] = sorted(
                i for i in (inside if previously_allowed is None else previously_allowed) if i in inside and i in slots
            )
        return result

    def _candidates(self, restriction: Restriction, allowed: list[Nodes]) -> Iterator[frozenset[str]]:
        """Yield sets of domains that have room for each need by itself, the tightest first."""
        sums = [self._sums(restriction.key, n, allowed[n]) for n in restriction.needs]
        needs = [self.needs[n] for n in restriction.needs]
        settled = restriction.settled
        base = [sum(slots.get(value, 0) for value in settled) for slots in sums]
        if settled and all(b >= need.count for b, need in zip(base, needs, strict=True)):
            yield settled
        parts = list(zip(needs, base, sums, strict=True))
        if restriction.width:
            yield from self._single(restriction.key, settled, parts)
        for width in range(2, restriction.width + 1):
            values = sorted({value for slots in sums for value in slots} - settled)
            roomy = sorted(values, key=lambda value: (-sum(slots.get(value, 0) for _, _, slots in parts), value))
            ranked = []
            for choice in islice(combinations(roomy[:WIDE_VALUES], width), WIDE_CHOICES):
                room = [b + sum(slots.get(value, 0) for value in choice) for _, b, slots in parts]
                if all(h >= need.count for h, need in zip(room, needs, strict=True)):
                    ranked.append((room, choice))
            yield from (settled.union(choice) for _, choice in sorted(ranked))

    def _single(
        self, key: str, settled: frozenset[str], parts: Sequence[tuple[Need, int, Mapping[str, int]]]
    ) -> Iterator[frozenset[str]]:
        """Yield the settled domains plus one domain. Domains that also have capacity for the extra pods come first, the
        tightest of them first; then come the others, the largest first."""
        (need, base, first), other_parts = parts[0], parts[1:]
        too_small = self._too_small(key, settled, [need for need, _, _ in parts])
        maximum, minimum = need.hoped - base, need.count - base
        also = [(other.hoped - b, other.count - b, slots) for other, b, slots in other_parts]
        domains_of_others = dict.fromkeys(self.capacity.domains(key), 0) if minimum <= 0 else {}
        fitting = [
            (room, v)
            for v, room in {**domains_of_others, **first}.items()
            if room >= minimum and v not in settled and v not in too_small
        ]
        yielded = set()
        for room, value in sorted(fitting):
            if room >= maximum and all(slots.get(value, 0) >= hoped_count for hoped_count, _, slots in also):
                yielded.add(value)
                yield settled | {value}
        for _, value in sorted((-room, value) for room, value in fitting):
            if value not in yielded and all(slots.get(value, 0) >= count for _, count, slots in also):
                yield settled | {value}

    def _too_small(self, key: str, settled: frozenset[str], needs: Sequence[Need]) -> set[str]:
        """Return domains that may fit each need by itself but not all needs together, because they have too little of a
        resource."""
        if len(needs) == 1:
            return set()
        requested: dict[str, int] = defaultdict(int)
        for need in needs:
            for resource, amount in need.shape.requests:
                requested[resource] += amount * need.count
        too_small: set[str] = set()
        for resource, amount in requested.items():
            free = self.capacity.tally(key, resource)
            lacking = amount - sum(free.get(value, 0) for value in settled)
            too_small.update(value for value in self.capacity.domains(key) if free.get(value, 0) < lacking)
        return too_small

    def _sums(self, key: str, need: int, allowed: Nodes) -> dict[str, int]:
        shape = self.needs[need].shape
        if allowed is None:
            return dict(
                shape.sums(key)
            )  # a copy: the shape's own sums change with each attempt, and choices are ranked in between
        sums: dict[str, int] = defaultdict(int)
        slots, values = shape.slots, self.capacity.values(key)
        for i in allowed:
            if value := values[i]:
                sums[value] += slots[i]
        return sums

    def _signature(self, values: frozenset[str], key: str, at: int, allowed: list[Nodes]) -> object:
        """Return a key that is equal for choices of domains that the search cannot distinguish."""
        if len(values) > 1 or self._stepwise:
            return values
        nodes = self.capacity.domains(key)[next(iter(values))]
        keys = list(dict.fromkeys(r.key for r in self.restrictions[at + 1 :] if r.key != key))
        slots = [need.shape.slots for need in self.needs]
        usable = [need_slots if only is None else set(only) for need_slots, only in zip(slots, allowed, strict=True)]
        return self._alike(nodes, keys, usable)

    def _alike(self, nodes: list[int], keys: list[str], usable: Sequence[Collection[int]]) -> object:
        if not keys:
            amounts = self.capacity.amounts
            return tuple(
                sorted(
                    (amounts(i), sum([1 << n for n, need_nodes in enumerate(usable) if i in need_nodes])) for i in nodes
                )
            )
        within: dict[str, list[int]] = defaultdict(list)
        values = self.capacity.values(keys[0])
        for i in nodes:
            within[values[i]].append(i)
        domains = self.capacity.domains(keys[0])
        # A domain that extends beyond these nodes is unique, so its name is part of the key.
        parts = [
            ("" if value and len(domains[value]) == len(group) else f"={value}", self._alike(group, keys[1:], usable))
            for value, group in within.items()
        ]
        return tuple(sorted(parts, key=repr))

    # Nodes.

    @property
    def _stepwise(self) -> bool:
        """Whether the placement of some of the pods depends on where other pods are."""
        return any(need.shape.guard is not None for need in self.needs)

    def _place_greedily(self, allowed: list[Nodes]) -> bool:
        mark = self.capacity.mark()
        self.allocations.clear()
        for need, nodes in zip(self.needs, allowed, strict=True):
            remaining = need.count
            slots = need.shape.slots
            order = None if nodes is None else iter(sorted((i for i in nodes if slots[i]), key=slots.__getitem__))
            while remaining:
                node = need.shape.tightest() if order is None else next(order, None)
                if node is None:
                    self.capacity.undo(mark)
                    return False
                count = min(need.shape.slots[node], remaining)
                self._take(need, node, count)
                remaining -= count
        return True

    def _exactly(self, at: int, allowed: list[Nodes]) -> bool | None:
        """Decide exactly if every domain that remains to be chosen is a single node: place the needs and return True,
        or return False. In other cases return None, or False if the needs do not fit even without the other domain
        restrictions."""
        later = self.restrictions[at:]
        single = [r for r in later if r.width == 1 and not r.settled and self.capacity.single(r.key)]
        together = _merged_parts([r.needs for r in single], len(self.needs))
        single_node_needs = {n for r in single for n in r.needs}
        items = [self._item(part, single, allowed, whole=part[0] in single_node_needs) for part in together]
        packing = Packing(items, self.capacity.free, self.budget.gang)
        fills = packing.run()
        self.budget.spend(self.budget.gang - packing.steps)
        if fills is None:
            self.budget.exhausted |= not packing.proven
            return False
        if len(single) < len(later):
            return None
        self.allocations.clear()
        for node, counts in fills:
            for part, count in zip(together, counts, strict=True):
                for need in (self.needs[n] for n in part if count):
                    self._take(need, node, need.count if part[0] in single_node_needs else count)
        return True

    def _item(self, part: list[int], single: list[Restriction], allowed: list[Nodes], *, whole: bool) -> Item:
        """Return the pods of a need as items or, with `whole`, all pods of several needs as one item."""
        requests: dict[str, int] = defaultdict(int)
        nodes: set[int] | None = None
        for n in part:
            need, only = self.needs[n], allowed[n]
            for resource, amount in need.shape.requests:
                requests[resource] += amount * (need.count if whole else 1)
            need_nodes = set(need.shape.eligible if only is None else only)
            nodes = need_nodes if nodes is None else nodes & need_nodes
        for key in {r.key for r in single if r.needs[0] in part}:
            nodes = {i for i in nodes or () if self.capacity.domain(key, i)}
        return Item(requests, 1 if whole else self.needs[part[0]].count, nodes or set())

    def _take(self, need: Need, node: int, count: int) -> None:
        self.capacity.take(node, need.shape.requests, count, need.shape.pod)
        self.allocations.append((need, node, count))


def _merged_parts(sets: Sequence[tuple[int, ...]], count: int) -> list[list[int]]:
    """Return a partition of 0 to `count` - 1 in which the members of each set are in the same part."""
    parts = [[n] for n in range(count)]
    for members in sets:
        joined = [part for part in parts if set(part) & set(members)]
        parts = [part for part in parts if part not in joined] + [sorted(n for part in joined for n in part)]
    return parts
