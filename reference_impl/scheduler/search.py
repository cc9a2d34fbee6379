"""The search for nodes for pods that are placed together or not at all, within the domains that the pods must share.

Domains are chosen first, starting with the broadest scope, and then nodes in these domains. A greedy placement is tried
first, domain by domain: large pods before small ones, the fullest nodes first. If it fails everywhere, the domains are
chosen again, and `packing` decides exactly: before each choice whether the pods fit anywhere, and after the last choice
where they fit. If a domain is a single node (such as a hostname), it is not chosen in advance: the pods that must share
it are packed as one item. A budget of steps limits the effort.
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

STEPS_PER_GANG, STEPS_PER_CYCLE, MIN_STEPS_PER_GANG = 300_000, 4_000_000, 2_000
"""The steps of exact packing for one gang, for all gangs of a cycle, and for each gang after the cycle's steps are
spent."""
MAX_COMBINED_DOMAINS, MAX_COMBINATIONS = 8, 64
"""The maximum numbers of domains and of combinations that are considered when several domains are combined."""
MAX_TRIES = 32
"""The maximum number of choices of domains that the heuristic tries before the exact search starts."""


@dataclass
class Need:
    """Pods of one shape and one group to be placed."""

    group: int
    shape: Shape
    pods: list[Pod]
    desired_count: int = 0
    """The number of pods, including extra pods, for which the same domain should have capacity if possible."""

    @property
    def count(self) -> int:
        """The number of pods."""
        return len(self.pods)


@dataclass(frozen=True)
class Restriction:
    """A restriction of the pods of some needs to domains of `key`: the `settled` domains and at most `width` other
    domains."""

    key: str
    needs: tuple[int, ...]
    settled: frozenset[str] = frozenset()
    width: int = 1


@dataclass
class Budget:
    """The remaining steps of searches."""

    cycle_steps: int = STEPS_PER_CYCLE
    gang_steps: int = STEPS_PER_GANG
    exhausted: bool = False

    def start_search(self) -> None:
        """Start the search for another gang."""
        self.gang_steps = min(STEPS_PER_GANG, max(self.cycle_steps, MIN_STEPS_PER_GANG))
        self.exhausted = False

    def spend(self, steps: int) -> None:
        """Use some steps."""
        self.gang_steps -= steps
        self.cycle_steps -= steps


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
    tries: int = MAX_TRIES
    """The remaining tries of the heuristic before the exact search starts."""

    def run(self) -> bool:
        """Search for a placement. Return whether one was found."""
        if any(need.shape.total < need.count for need in self.needs):
            return False
        self.restrictions.sort(key=lambda r: (len(self.capacity.domains(r.key)), -len(r.needs)))
        all_nodes: list[Nodes] = [None] * len(self.needs)
        if self._choose_domains(0, all_nodes):
            return True
        if self._needs_stepwise:
            return False
        if self.tries == MAX_TRIES or (
            len(self.needs) == 1 and self.tries
        ):  # in these cases the heuristic misses nothing
            return False
        return self._search_exactly(all_nodes)

    def placement(self) -> list[tuple[Pod, int]]:
        """Return the placement pod by pod, after a successful `run`."""
        remaining_pods = {id(need): list(need.pods) for need in self.needs}
        return [(remaining_pods[id(need)].pop(0), node) for need, node, count in self.allocations for _ in range(count)]

    # Domains.

    def _search_exactly(self, all_nodes: list[Nodes]) -> bool:
        self.exact = True
        return self._choose_domains(0, all_nodes)

    def _choose_domains(self, position: int, allowed: list[Nodes]) -> bool:
        if self.exact:
            if (placed := self._place_exactly(position, allowed)) is not None:
                return placed
        elif position == len(self.restrictions):
            if self._needs_stepwise:
                return Stepwise(self, allowed).run()
            self.tries -= 1
            return self._place_greedily(allowed)
        restriction = self.restrictions[position]
        hopeless_signatures: set[object] = set()
        failed_domains: frozenset[str] | None = None
        for values in self._candidates(restriction, allowed):
            if failed_domains is not None:
                hopeless_signatures.add(self._signature(failed_domains, restriction.key, position, allowed))
                failed_domains = None
                if self._signature(values, restriction.key, position, allowed) in hopeless_signatures:
                    continue
            elif (
                hopeless_signatures
                and self._signature(values, restriction.key, position, allowed) in hopeless_signatures
            ):
                continue
            if self._choose_domains(position + 1, self._restrict_nodes(restriction, values, allowed)):
                return True
            if self.budget.exhausted or not (self.exact or self.tries):
                return False
            failed_domains = values
        return False

    def _restrict_nodes(self, restriction: Restriction, values: frozenset[str], allowed: list[Nodes]) -> list[Nodes]:
        domains = self.capacity.domains(restriction.key)
        domain_nodes = {node for value in values for node in domains.get(value, ())}
        result = list(allowed)
        for n in restriction.needs:
            previously_allowed = allowed[n]
            slots = self.needs[n].shape.slots
            result[n] = sorted(
                i
                for i in (domain_nodes if previously_allowed is None else previously_allowed)
                if i in domain_nodes and i in slots
            )
        return result

    def _candidates(self, restriction: Restriction, allowed: list[Nodes]) -> Iterator[frozenset[str]]:
        """Yield sets of domains that have room for each single need, the tightest first."""
        sums = [self._domain_sums(restriction.key, n, allowed[n]) for n in restriction.needs]
        needs = [self.needs[n] for n in restriction.needs]
        settled = restriction.settled
        settled_room = [sum(slots.get(value, 0) for value in settled) for slots in sums]
        if settled and all(b >= need.count for b, need in zip(settled_room, needs, strict=True)):
            yield settled
        parts = list(zip(needs, settled_room, sums, strict=True))
        if restriction.width:
            yield from self._single_domain_candidates(restriction.key, settled, parts)
        for width in range(2, restriction.width + 1):
            values = sorted({value for slots in sums for value in slots} - settled)
            largest_domains = sorted(
                values, key=lambda value: (-sum(slots.get(value, 0) for _, _, slots in parts), value)
            )
            ranked = []
            for choice in islice(combinations(largest_domains[:MAX_COMBINED_DOMAINS], width), MAX_COMBINATIONS):
                room = [b + sum(slots.get(value, 0) for value in choice) for _, b, slots in parts]
                if all(h >= need.count for h, need in zip(room, needs, strict=True)):
                    ranked.append((room, choice))
            yield from (settled.union(choice) for _, choice in sorted(ranked))

    def _single_domain_candidates(
        self, key: str, settled: frozenset[str], parts: Sequence[tuple[Need, int, Mapping[str, int]]]
    ) -> Iterator[frozenset[str]]:
        """Yield the settled domains plus one domain. Domains that also have capacity for the extra pods come first, the
        tightest of them first; the other domains follow, the largest first."""
        (need, settled_room, first_sums), other_parts = parts[0], parts[1:]
        too_small = self._too_small_domains(key, settled, [need for need, _, _ in parts])
        maximum, minimum = need.desired_count - settled_room, need.count - settled_room
        other_counts = [
            (other.desired_count - other_settled_room, other.count - other_settled_room, slots)
            for other, other_settled_room, slots in other_parts
        ]
        domains_of_others = dict.fromkeys(self.capacity.domains(key), 0) if minimum <= 0 else {}
        fitting = [
            (room, v)
            for v, room in {**domains_of_others, **first_sums}.items()
            if room >= minimum and v not in settled and v not in too_small
        ]
        yielded = set()
        for room, value in sorted(fitting):
            if room >= maximum and all(
                slots.get(value, 0) >= desired_count for desired_count, _, slots in other_counts
            ):
                yielded.add(value)
                yield settled | {value}
        for _, value in sorted((-room, value) for room, value in fitting):
            if value not in yielded and all(slots.get(value, 0) >= count for _, count, slots in other_counts):
                yield settled | {value}

    def _too_small_domains(self, key: str, settled: frozenset[str], needs: Sequence[Need]) -> set[str]:
        """Return domains that may fit each single need but not all needs, because they have too little of a
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
            missing_amount = amount - sum(free.get(value, 0) for value in settled)
            too_small.update(value for value in self.capacity.domains(key) if free.get(value, 0) < missing_amount)
        return too_small

    def _domain_sums(self, key: str, need: int, allowed: Nodes) -> dict[str, int]:
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

    def _signature(self, values: frozenset[str], key: str, position: int, allowed: list[Nodes]) -> object:
        """Return a key that is equal for choices of domains that the search cannot distinguish."""
        if len(values) > 1 or self._needs_stepwise:
            return values
        nodes = self.capacity.domains(key)[next(iter(values))]
        keys = list(dict.fromkeys(r.key for r in self.restrictions[position + 1 :] if r.key != key))
        slots = [need.shape.slots for need in self.needs]
        usable = [
            need_slots if allowed_nodes is None else set(allowed_nodes)
            for need_slots, allowed_nodes in zip(slots, allowed, strict=True)
        ]
        return self._equivalence_key(nodes, keys, usable)

    def _equivalence_key(self, nodes: list[int], keys: list[str], usable: Sequence[Collection[int]]) -> object:
        if not keys:
            amounts = self.capacity.amounts
            return tuple(
                sorted(
                    (amounts(i), sum([1 << n for n, need_nodes in enumerate(usable) if i in need_nodes])) for i in nodes
                )
            )
        nodes_by_domain: dict[str, list[int]] = defaultdict(list)
        values = self.capacity.values(keys[0])
        for i in nodes:
            nodes_by_domain[values[i]].append(i)
        domains = self.capacity.domains(keys[0])
        # A domain that extends beyond these nodes is unique, so its name is part of the key.
        parts = [
            (
                "" if value and len(domains[value]) == len(group) else f"={value}",
                self._equivalence_key(group, keys[1:], usable),
            )
            for value, group in nodes_by_domain.items()
        ]
        return tuple(sorted(parts, key=repr))

    # Nodes.

    @property
    def _needs_stepwise(self) -> bool:
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
                node = need.shape.find_tightest_node() if order is None else next(order, None)
                if node is None:
                    self.capacity.undo(mark)
                    return False
                count = min(need.shape.slots[node], remaining)
                self._take(need, node, count)
                remaining -= count
        return True

    def _place_exactly(self, position: int, allowed: list[Nodes]) -> bool | None:
        """Decide exactly if every domain that remains to be chosen is a single node: place the needs and return True,
        or return False. In other cases return None, or False if the needs do not fit even without the other domain
        restrictions."""
        remaining_restrictions = self.restrictions[position:]
        single_node_restrictions = [
            r
            for r in remaining_restrictions
            if r.width == 1 and not r.settled and self.capacity.has_single_nodes(r.key)
        ]
        packed_parts = _merged_parts([r.needs for r in single_node_restrictions], len(self.needs))
        single_node_needs = {n for r in single_node_restrictions for n in r.needs}
        items = [
            self._item(part, single_node_restrictions, allowed, as_one_item=part[0] in single_node_needs)
            for part in packed_parts
        ]
        packing = Packing(items, self.capacity.free, self.budget.gang_steps)
        fills = packing.run()
        self.budget.spend(self.budget.gang_steps - packing.steps)
        if fills is None:
            self.budget.exhausted |= not packing.proven
            return False
        if len(single_node_restrictions) < len(remaining_restrictions):
            return None
        self.allocations.clear()
        for node, counts in fills:
            for part, count in zip(packed_parts, counts, strict=True):
                for need in (self.needs[n] for n in part if count):
                    self._take(need, node, need.count if part[0] in single_node_needs else count)
        return True

    def _item(
        self, part: list[int], single_node_restrictions: list[Restriction], allowed: list[Nodes], *, as_one_item: bool
    ) -> Item:
        """Return the pods of a need as items or, with `as_one_item`, all pods of several needs as one item."""
        requests: dict[str, int] = defaultdict(int)
        nodes: set[int] | None = None
        for n in part:
            need, allowed_nodes = self.needs[n], allowed[n]
            for resource, amount in need.shape.requests:
                requests[resource] += amount * (need.count if as_one_item else 1)
            need_nodes = set(need.shape.eligible if allowed_nodes is None else allowed_nodes)
            nodes = need_nodes if nodes is None else nodes & need_nodes
        for key in {r.key for r in single_node_restrictions if r.needs[0] in part}:
            nodes = {i for i in nodes or () if self.capacity.domain(key, i)}
        return Item(requests, 1 if as_one_item else self.needs[part[0]].count, nodes or set())

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
