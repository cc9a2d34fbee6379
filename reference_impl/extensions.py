"""Extensions: code outside this package that changes a process of the reference when an option asks for it.

Extensions are entry points of the group `grove_reference.extensions`, so nothing here imports them. The project's
mutants and variants are extensions; an installed wheel has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Literal, Protocol, cast

GROUP = "grove_reference.extensions"

Role = Literal["operator", "gang-scheduler"]


class UnknownNameError(Exception):
    """An extension is not installed, or does not provide a name."""


class Extension(Protocol):
    """The object that an entry point of the group refers to."""

    def arm(self, names: Iterable[str], role: Role) -> None:
        """Change the behavior of this process as the named mutants or variants specify. Raises UnknownNameError for an
        unknown name."""

    def listed(self) -> Iterable[tuple[str, str, str]]:
        """Return the name, role and description of everything that `arm` accepts."""


def load(kind: str) -> Extension:
    """Return the extension of this kind. Raises UnknownNameError if it is not installed, as with an installed wheel."""
    for entry in entry_points(group=GROUP, name=kind):
        try:
            return cast(Extension, entry.load())
        except ModuleNotFoundError:
            continue
    raise UnknownNameError(f"no {kind}s are installed (hint: they belong to a checkout; run `make .venv/.ready` there)")
