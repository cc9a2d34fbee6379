"""Where the data folders `fixtures/` and `kwok-profiles/` are, in a checkout or in an installed wheel."""

from __future__ import annotations

from pathlib import Path

from conformance.errors import UsageError

PROJECT = Path(__file__).resolve().parent.parent
"""The folder that holds our packages: the root of a checkout, or a `site-packages` that we share with anybody."""
_PACKED = Path(__file__).resolve().parent / "_data"
"""Only a wheel has it. It comes first, because a folder of the same name beside a wheel's packages is not ours."""


def folder(name: str) -> Path:
    """The data folder `fixtures` or `kwok-profiles`."""
    packed = _PACKED / name
    return packed if packed.is_dir() else PROJECT / name


def page(name: str) -> Path:
    """A page of `docs/`, which only a checkout has. Raises UsageError in an installed wheel."""
    if _PACKED.is_dir():
        raise UsageError(f"docs/{name} belongs to a checkout, and this is an installed package", hint="give --to FILE")
    return PROJECT / "docs" / name
