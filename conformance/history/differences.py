"""Reduce two states of many objects to their differences, to report a failed comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def differing(
    expected: Mapping[str, object], observed: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, object]]:
    """Return both (nested) mappings reduced to the entries that differ; both are empty if the mappings are equal."""
    expected_part: dict[str, object] = {}
    observed_part: dict[str, object] = {}
    for key in [*expected, *(key for key in observed if key not in expected)]:
        expected_value, observed_value = expected.get(key), observed.get(key)
        if key in expected and key in observed and expected_value == observed_value:
            continue
        if isinstance(expected_value, Mapping) and isinstance(observed_value, Mapping):
            expected_value, observed_value = differing(expected_value, observed_value)
        if key in expected:
            expected_part[key] = expected_value
        if key in observed:
            observed_part[key] = observed_value
    return expected_part, observed_part


def reduced(expected: object, observed: object) -> tuple[object, object]:
    """Return both values without the keys and elements that are equal. Lists that differ only in order are returned in
    full."""
    if isinstance(expected, Mapping) and isinstance(observed, Mapping):
        return differing(expected, observed)
    if isinstance(expected, list | tuple) and isinstance(observed, list | tuple):
        missing, surplus = _only(expected, observed), _only(observed, expected)
        return (missing, surplus) if missing or surplus else (expected, observed)
    return expected, observed


def _only(one: Sequence[object], other: Sequence[object]) -> list[object]:
    """Return the elements of `one` that `other` lacks, counting duplicates."""
    unmatched = list(other)
    surplus = []
    for element in one:
        if element in unmatched:
            unmatched.remove(element)
        else:
            surplus.append(element)
    return surplus
