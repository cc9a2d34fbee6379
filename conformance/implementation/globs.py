"""The files that a pattern in a descriptor matches. Patterns that would search a large part of the disk are
rejected."""

from __future__ import annotations

import os
from itertools import takewhile
from pathlib import Path

MAX_FILES = 20_000
"""Maximum number of files and folders below the fixed part of a pattern. A large repository has about as many."""


def files(pattern: Path) -> list[Path]:
    """Return the files that match an absolute pattern, sorted. Raises OSError, or ValueError if too many files would
    have to be searched."""
    anchor, has_wildcards = Path(pattern.anchor), [bool(set(part) & set("*?[")) for part in pattern.parts]
    fixed_part = Path(
        *(part for part, _ in takewhile(lambda pair: not pair[1], zip(pattern.parts, has_wildcards, strict=True)))
    )
    if ("**" in pattern.parts or sum(has_wildcards) > 1) and _is_large(fixed_part):
        raise ValueError(f"there are more than {MAX_FILES:,} files below {fixed_part}")
    return sorted(file for file in anchor.glob(str(pattern.relative_to(anchor))) if file.is_file())


def _is_large(folder: Path) -> bool:
    count = 0
    for _, folders, names in os.walk(folder):
        count += len(folders) + len(names)
        if count > MAX_FILES:
            return True
    return False
