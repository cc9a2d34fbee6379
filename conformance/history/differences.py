"""Two readings of many objects, reduced to where they differ: what a report shows of a failed comparison."""

from __future__ import annotations

from collections.abc import Mapping


def differing(wanted: Mapping[str, object], seen: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Both mappings (of mappings) reduced to the entries that are not equal; two empty ones where all are."""
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
