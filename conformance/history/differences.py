"""Two readings of many objects, reduced to their differences: what a report shows of a failed comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def differing(wanted: Mapping[str, object], seen: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Return both mappings (of mappings) reduced to the entries that differ; two empty ones if all are equal."""
    left: dict[str, object] = {}
    right: dict[str, object] = {}
    for key in [*wanted, *(key for key in seen if key not in wanted)]:
        want, have = wanted.get(key), seen.get(key)
        if key in wanted and key in seen and want == have:
            continue
        if isinstance(want, Mapping) and isinstance(have, Mapping):
            want, have = differing(want, have)
        if key in wanted:
            left[key] = want
        if key in seen:
            right[key] = have
    return left, right


def reduced(expected: object, seen: object) -> tuple[object, object]:
    """Return both values without the keys and elements that are equal. Lists that differ only in order stay whole."""
    if isinstance(expected, Mapping) and isinstance(seen, Mapping):
        return differing(expected, seen)
    if isinstance(expected, list | tuple) and isinstance(seen, list | tuple):
        left, right = _only(expected, seen), _only(seen, expected)
        return (left, right) if left or right else (expected, seen)
    return expected, seen


def _only(one: Sequence[object], other: Sequence[object]) -> list[object]:
    """Return the elements of one list that occur less often in the other."""
    left = list(other)
    found = []
    for element in one:
        if element in left:
            left.remove(element)
        else:
            found.append(element)
    return found
