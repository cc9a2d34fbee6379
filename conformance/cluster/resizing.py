"""The next nodes of a profile to add, and the first nodes to remove. Pure functions on names and indices.

The `size` nodes of a unit (1, a rack or a block) have consecutive indices, the first of which is a multiple of `size`:
see `nodes.node_manifest`.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from itertools import count, islice


def indices(stem: str, names: Iterable[str]) -> set[int]:
    """Return the indices of the nodes whose names consist of `stem`, a hyphen and an index."""
    suffixes = (name.removeprefix(f"{stem}-") for name in names if name.startswith(f"{stem}-"))
    return {int(suffix) for suffix in suffixes if suffix.isascii() and suffix.isdigit() and str(int(suffix)) == suffix}


def first_free(used_indices: AbstractSet[int], units: int, size: int) -> list[int]:
    """Return the indices of the first `units` units that have no node yet."""
    free_starts = (start for start in count(0, size) if used_indices.isdisjoint(range(start, start + size)))
    return [index for start in islice(free_starts, units) for index in range(start, start + size)]


def last_complete(used_indices: AbstractSet[int], units: int, size: int) -> list[int]:
    """Return the indices of the last `units` units whose nodes are all present, or of all such units if there are
    fewer."""
    starts = sorted({index - index % size for index in used_indices}, reverse=True)
    complete_starts = [start for start in starts if used_indices >= set(range(start, start + size))][:units]
    return [index for start in sorted(complete_starts) for index in range(start, start + size)]
