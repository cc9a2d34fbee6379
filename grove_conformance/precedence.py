"""Our packages come before others of their names."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

PACKAGES = ("conformance", "kube", "reference_impl")
_HERE = Path(__file__).resolve().parent
FOLDER = _HERE / "packages" if (_HERE / "packages").is_dir() else _HERE.parent
"""The folder that contains them: that of the wheel, or the root of a checkout."""


def take() -> None:
    """Import our packages, so that this process has no others of their names. Processes that inherit its `sys.path`,
    such as workers of pytest-xdist, find ours first. Raises ImportError, with one line, if something else was imported
    under one of the names."""
    if str(FOLDER) != sys.path[0]:
        sys.path.insert(0, str(FOLDER))
    for name in PACKAGES:
        if (place := _place(import_module(name))) != FOLDER / name:
            raise ImportError(
                f"{place} was imported as {name} and hides the package {name} of grove-conformance: "
                "rename the folder, or start grove-conformance in a process of its own"
            )


def _place(package: ModuleType) -> Path:
    """Return the folder or file that a package was imported from."""
    return Path(next(iter(getattr(package, "__path__", ())), package.__file__ or "?")).resolve()
