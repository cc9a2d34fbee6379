"""Tests that the slots of shapes and the ranks of nodes are right after any sequence of changes and undos."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from reference_impl.scheduler.capacity import Capacity
from tests.reference.filters.scenes import node, pod

RESOURCES = {"cpu": 1, "memory": 2**30, "example.com/gpu": 1}


def amounts(random, maximum):
    return {name: str(random.randint(1, maximum) * unit) for name, unit in RESOURCES.items()}


def slots(capacity, shape):
    """Return the number of pods that fit on each node, computed by division."""
    return {
        i: max(0, min(capacity.free[i].get(name, 0) // amount for name, amount in shape.requests))
        for i in shape.eligible
    }


@pytest.mark.parametrize("seed", range(20))
def test_slots_and_ranks_are_right_after_each_change(seed):
    random = Random(seed)
    nodes = [node(f"n{i:02}", status=amounts(random, 9), unschedulable=i % 5 == 0) for i in range(20)]
    capacity, shapes, marks = Capacity(nodes, {}), [], []
    for step in range(60):
        requests = dict(random.sample(sorted(amounts(random, 4).items()), random.randint(1, 3)))
        shapes.append(capacity.shape(pod(f"p{step}", containers=[{"name": "c", "resources": {"requests": requests}}])))
        shape = random.choice(shapes)
        expected = slots(capacity, shapes[-1])
        assert shapes[-1].slots == expected and shapes[-1].total == sum(expected.values())
        assert shape.slots == slots(capacity, shape)
        tightest = shapes[-1].find_tightest_node()
        fewest = min((n for n in expected.values() if n), default=None)
        assert expected.get(tightest) == fewest
        expected_shortages = Counter(
            {name: sum(capacity.free[i].get(name, 0) < n for i in shape.eligible) for name, n in shape.requests}
        )
        assert shape.shortages() == expected_shortages
        if marks and random.random() < 0.3:
            capacity.undo(marks.pop(random.randrange(len(marks))))
            marks = [mark for mark in marks if mark <= capacity.mark()]
        else:
            marks.append(capacity.mark())
            capacity.take(random.choice(shape.eligible), shape.requests, random.choice((1, 1, 2, 9)))
    assert capacity.log.count > 40
