"""Where the data folders `fixtures/`, `kwok-profiles/` and `docs/spec/` are, in a checkout or in an installed wheel."""

from __future__ import annotations

from pathlib import Path

from conformance.errors import UsageError

PROJECT = Path(__file__).resolve().parent.parent
"""The folder that holds our packages: the root of a checkout, or a `site-packages` that we share with anybody."""
_PACKED = Path(__file__).resolve().parent / "_data"
"""Only a wheel has it. It comes first, because a folder of the same name beside a wheel's packages is not ours."""


def folder(name: str) -> Path:
    """The data folder `fixtures`, `kwok-profiles` or `docs/spec`."""
    packed = _PACKED / name
    return packed if packed.is_dir() else PROJECT / name


def packed() -> bool:
    """Whether this is an installed wheel rather than a checkout."""
    return _PACKED.is_dir()


def page(name: str) -> Path:
    """A page of `docs/`, which only a checkout has. Raises UsageError in an installed wheel."""
    if packed():
        raise UsageError(f"docs/{name} belongs to a checkout, and this is an installed package", hint="give --to FILE")
    return PROJECT / "docs" / name
