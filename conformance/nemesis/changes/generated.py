"""Sequences of changes: the usual ones, and generated ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from hypothesis import strategies as st

from conformance.nemesis.changes.desired import TEMPLATE, Change, Desired, after

MOST = 5
"""Maximum number of changes in a row."""
FIRST = (
    Change("image", "a", 2),
    Change("scale-clique", value=3),
    Change("scale-group", value=3),
    Change("scale-set", value=2),
    Change("image", "c", 2),
    Change("scale-clique", value=1),
    Change("scale-group", value=1),
)
"""Changes of a new set, one of each kind first."""
BACK = {"image": 1, "scale-clique": TEMPLATE.alone, "scale-group": TEMPLATE.groups, "scale-set": TEMPLATE.replicas}


def usual() -> Iterator[list[Change]]:
    """Return the sequences that are played first: each change reverted, followed by an update or by a new set of the
    same name, made twice, and reverted at once."""
    for change in FIRST:
        yield [change, _back(change)]
    update = FIRST[0]
    for change in FIRST[1:]:
        yield [change, update]
    for change in FIRST:
        yield [change, Change("recreate")]
    for change in FIRST:
        yield [change, change]
    for change in FIRST:
        yield [replace(change, rests=False), _back(change)]
    for one, other in product(FIRST, repeat=2):
        if one.what != other.what:
            yield [replace(one, rests=False), other]


def _back(change: Change) -> Change:
    return replace(change, value=BACK[change.what])


@st.composite
def generated(draw: st.DrawFn) -> list[Change]:
    """Draw changes, each of which changes the desired state or disturbs."""
    desired, changes = TEMPLATE, list[Change]()
    for _ in range(draw(st.integers(2, MOST))):
        change = draw(st.sampled_from(list(_possible(desired))))
        changes.append(replace(change, rests=draw(st.booleans())))
        desired = after(desired, change)
    return changes


def _possible(desired: Desired) -> Iterator[Change]:
    every = (
        *(Change("image", clique, version) for clique in "abc" for version in (1, 2)),
        *(Change("scale-clique", value=size) for size in (1, 2, 3)),
        *(Change("scale-group", value=size) for size in (1, 2, 3)),
        *(Change("scale-set", value=size) for size in (1, 2)),
    )
    yield from (change for change in every if after(desired, change) != desired)
    yield from (Change("recreate"), Change("restart"), *(Change("lose-pod", clique) for clique in "abc"))
