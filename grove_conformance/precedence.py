"""Give our packages precedence over other packages of the same names."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

PACKAGES = ("conformance", "kube", "reference_impl")
_HERE = Path(__file__).resolve().parent
FOLDER = _HERE / "packages" if (_HERE / "packages").is_dir() else _HERE.parent
"""The folder that contains the packages: `packages/` in a wheel, or the root of a checkout."""


def import_packages() -> None:
    """Import our packages, so that this process uses them and not other packages of the same names. Processes that
    inherit this process's `sys.path`, such as pytest-xdist workers, find our packages first. Raises ImportError with a
    one-line message if another package was already imported under one of the names."""
    if str(FOLDER) != sys.path[0]:
        sys.path.insert(0, str(FOLDER))
    for name in PACKAGES:
        if (location := _location(import_module(name))) != FOLDER / name:
            raise ImportError(
                f"{location} was imported as {name} and hides the package {name} of grove-conformance: "
                "rename the folder, or start grove-conformance in a process of its own"
            )


def _location(package: ModuleType) -> Path:
    """Return the folder or file that a package was imported from."""
    return Path(next(iter(getattr(package, "__path__", ())), package.__file__ or "?")).resolve()
