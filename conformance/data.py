"""Where the data folders `fixtures/` and `kwok-profiles/` are, in a checkout or in an installed wheel."""

from __future__ import annotations

from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
_PACKED = Path(__file__).resolve().parent / "_data"


def folder(name: str) -> Path:
    """The data folder `fixtures` or `kwok-profiles`."""
    beside = PROJECT / name
    return beside if beside.is_dir() else _PACKED / name
