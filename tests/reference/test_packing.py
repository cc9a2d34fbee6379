"""Tests of the exact packing of items on nodes, compared with brute force."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_impl.scheduler import preemption
from reference_impl.scheduler.capacity import Capacity
from reference_impl.scheduler.gang import Gang, Group
from reference_impl.scheduler.packing import Item, Packing
from reference_impl.scheduler.search import Budget
from tests.reference.examples import gpu_pod, node

amounts = st.fixed_dictionaries({"gpu": st.integers(0, 4), "cpu": st.integers(0, 4)})
nodes = st.lists(amounts, min_size=1, max_size=3)
items = st.lists(st.tuples(amounts, st.integers(1, 3), st.sets(st.integers(0, 2))), min_size=1, max_size=3)


def fits(free, demands):
    """Return whether the pods fit, by trying all nodes for all pods."""
    pods = [(requests, allowed) for requests, count, allowed in demands for _ in range(count)]
    for node_choices in product(range(len(free)), repeat=len(pods)):
        remaining = [dict(amounts) for amounts in free]
        for (requests, _), node_index in zip(pods, node_choices, strict=True):
            for name, amount in requests.items():
                remaining[node_index][name] -= amount
        allowed = all(node_index in amounts for (_, amounts), node_index in zip(pods, node_choices, strict=True))
        if allowed and all(amount >= 0 for amounts in remaining for amount in amounts.values()):
            return True
    return False


@settings(deadline=None, max_examples=60)
@given(nodes, items)
def test_a_packing_exists_if_and_only_if_one_is_returned(free, demands):
    demands = [(requests, count, allowed & set(range(len(free)))) for requests, count, allowed in demands]
    packing = Packing([Item(*demand) for demand in demands], free, steps=100_000)
    fills = packing.run()
    assert packing.proven and (fills is not None) == fits(free, demands)
    for node_index, counts in fills or ():
        assert all(node_index in allowed for (_, _, allowed), count in zip(demands, counts, strict=True) if count)
        for name, amount in free[node_index].items():
            assert sum(requests[name] * n for (requests, _, _), n in zip(demands, counts, strict=True)) <= amount
    for kind, (_, count, _) in enumerate(demands):
        assert fills is None or sum(counts[kind] for _, counts in fills) == count


@pytest.mark.parametrize("steps", [0, 5])
def test_a_packing_that_gives_up_proves_nothing(steps):
    free = [{"gpu": 3, "cpu": 5 + i} for i in range(9)]
    kinds = [Item({"gpu": 2, "cpu": 1}, 8, range(9)), Item({"gpu": 1, "cpu": 5}, 9, range(9))]
    packing = Packing(kinds, free, steps)
    assert packing.run() is None and not packing.proven


def test_a_search_for_victims_ends_without_candidates():
    item = Gang("a", [Group("a-0", 1, [gpu_pod("a-0-0", 4)])], priority=1)
    assert preemption._find_minimal_set(item, [], [], {}, Capacity([node("n", 2)], {}), Budget()) == ()
