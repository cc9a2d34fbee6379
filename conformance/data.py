"""The paths of the data folders `fixtures/`, `kwok-profiles/` and `docs/spec/`, in a checkout or in an installed wheel,
and of the user's cache."""

from __future__ import annotations

import os
from pathlib import Path

from conformance.errors import UsageError

PROJECT = Path(__file__).resolve().parent.parent
"""The folder that contains the packages: the root of a checkout, or the folder of a wheel that contains only them."""
_WHEEL_DATA = Path(__file__).resolve().parent / "_data"
"""The data folders of a wheel; a checkout has no such folder."""


def folder(name: str) -> Path:
    """Return the data folder `fixtures`, `kwok-profiles`, `docs` or `docs/spec`; a wheel has only part of `docs`."""
    wheel_folder = _WHEEL_DATA / name
    return wheel_folder if wheel_folder.is_dir() else PROJECT / name


def is_wheel() -> bool:
    """Return whether this is an installed wheel instead of a checkout."""
    return _WHEEL_DATA.is_dir()


def cache() -> Path:
    """Return the folder of files that can be generated or downloaded again: `$XDG_CACHE_HOME/grove-conformance`, by
    default `~/.cache/grove-conformance`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "grove-conformance"


def guide() -> str:
    """Return the text of docs/writing-an-implementation.md, which a wheel also contains."""
    return (folder("docs") / "writing-an-implementation.md").read_text(encoding="utf-8")


def page(name: str) -> Path:
    """Return the path of a page in `docs/`, which only a checkout has. Raises UsageError in an installed wheel."""
    if is_wheel():
        raise UsageError(f"docs/{name} belongs to a checkout, and this is an installed package", hint="give --to FILE")
    return PROJECT / "docs" / name
