"""Sequences of changes: a fixed list, and generated sequences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from hypothesis import strategies as st

from conformance.nemesis.changes.desired import TEMPLATE, DesiredState, SetChange, apply_change

MAX_CHANGES = 5
"""Maximum number of changes in a sequence."""
SINGLE_CHANGES = (
    SetChange("image", "a", 2),
    SetChange("scale-clique", value=3),
    SetChange("scale-group", value=3),
    SetChange("scale-set", value=2),
    SetChange("image", "c", 2),
    SetChange("scale-clique", value=1),
    SetChange("scale-group", value=1),
)
"""Changes to a new set, starting with one of each kind."""
ORIGINAL_SIZES = {
    "image": 1,
    "scale-clique": TEMPLATE.pods,
    "scale-group": TEMPLATE.groups,
    "scale-set": TEMPLATE.replicas,
}


def fixed_sequences() -> Iterator[list[SetChange]]:
    """Yield the sequences that are tried first: each change reverted, followed by an update, followed by the recreation
    of the set, made twice, reverted immediately, and immediately followed by each change of another kind."""
    for change in SINGLE_CHANGES:
        yield [change, _reversal(change)]
    update = SINGLE_CHANGES[0]
    for change in SINGLE_CHANGES[1:]:
        yield [change, update]
    for change in SINGLE_CHANGES:
        yield [change, SetChange("recreate")]
    for change in SINGLE_CHANGES:
        yield [change, change]
    for change in SINGLE_CHANGES:
        yield [replace(change, rests=False), _reversal(change)]
    for first, second in product(SINGLE_CHANGES, repeat=2):
        if first.what != second.what:
            yield [replace(first, rests=False), second]


def _reversal(change: SetChange) -> SetChange:
    return replace(change, value=ORIGINAL_SIZES[change.what])


@st.composite
def random_changes(draw: st.DrawFn) -> list[SetChange]:
    """Draw changes, each of which changes the desired state or is a disturbance."""
    desired, changes = TEMPLATE, list[SetChange]()
    for _ in range(draw(st.integers(2, MAX_CHANGES))):
        change = draw(st.sampled_from(list(_possible_changes(desired))))
        changes.append(replace(change, rests=draw(st.booleans())))
        desired = apply_change(desired, change)
    return changes


def _possible_changes(desired: DesiredState) -> Iterator[SetChange]:
    candidates = (
        *(SetChange("image", clique, version) for clique in "abc" for version in (1, 2)),
        *(SetChange("scale-clique", value=size) for size in (1, 2, 3)),
        *(SetChange("scale-group", value=size) for size in (1, 2, 3)),
        *(SetChange("scale-set", value=size) for size in (1, 2)),
    )
    yield from (change for change in candidates if apply_change(desired, change) != desired)
    yield from (SetChange("recreate"), SetChange("restart"), *(SetChange("lose-pod", clique) for clique in "abc"))
