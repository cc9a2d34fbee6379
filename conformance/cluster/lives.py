"""Lives: what fake pods can be made to go through, chosen by annotations of the pod (`kwok-profiles/lives.yaml`).

The stages play them; here is which there are, what they can be told, and whether annotations say something at all. A
mistake that reaches the cluster shows as the state InvalidLife of the pod's containers (stage pod-starts).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from conformance import documents
from conformance.data import folder
from conformance.errors import UsageError

PREFIX = "conformance.grove.io/"
LIFE = PREFIX + "life"

_FORMS = {"seconds": "[0-9]{1,6}s", "count": "[0-9]{1,7}", "code": "[0-9]{1,3}"}
_WORDS = {"seconds": "whole seconds, as in 5s", "count": "a whole number", "code": "an exit code"}


@dataclass(frozen=True)
class Life:
    """One way of a pod. `parameters`: name of the annotation without its prefix → default."""

    name: str
    about: str
    passes: tuple[str, ...]
    parameters: Mapping[str, str]


@dataclass(frozen=True)
class Lives:
    """All of `lives.yaml`. `forms`: name of a parameter → seconds, count or code."""

    lives: Mapping[str, Life]
    forms: Mapping[str, str]
    holds: tuple[str, ...]

    def patterns(self) -> dict[str, str]:
        """What a pod with a life may have of our annotations: name without prefix → regular expression of the value."""
        patterns = {"life": f"^({'|'.join(self.lives)})$"}
        patterns |= {name: f"^{_FORMS[form]}$" for name, form in self.forms.items()}
        return patterns | dict.fromkeys(self.holds, ".*")


@cache
def known() -> Lives:
    """The lives that there are. Raises UsageError."""
    return read(folder("kwok-profiles") / "lives.yaml")


def read(path: Path) -> Lives:
    """Reads and checks one file of lives. Raises UsageError with file, line and field."""
    document = documents.read(path, folder("kwok-profiles") / "lives.schema.json")
    data = document.value
    forms = {name: entry["type"] for name, entry in data["parameters"].items()}
    used = set()
    for life, entry in data["lives"].items():
        for name, default in entry["parameters"].items():
            where = document.where("lives", life, "parameters", name)
            used.add(name)
            if name not in forms:
                raise UsageError("unknown parameter", where=where, mend=documents.suggestion(name, forms))
            if not re.fullmatch(_FORMS[forms[name]], default):
                raise UsageError(f"{default!r} is no default of it", where=where, mend=f"give {_WORDS[forms[name]]}")
    for name in forms:
        if name not in used:
            raise UsageError("no life reads it", where=document.where("parameters", name), mend="drop it")
    lives = {
        name: Life(name, entry["about"], tuple(entry["passes"]), entry["parameters"])
        for name, entry in data["lives"].items()
    }
    return Lives(lives, forms, tuple(data["holds"]))


def annotated(life: str, **parameters: str | int) -> dict[str, str]:
    """The annotations that give a pod a life, e.g. `annotated("crash-loop", restart_after="2s", restarts=3)`.

    Raises UsageError for an unknown life or parameter, or a value of the wrong form.
    """
    found = {LIFE: life} | {PREFIX + name.replace("_", "-"): str(value) for name, value in parameters.items()}
    for mistake in mistakes(found):
        raise mistake
    return found


def mistakes(found: Mapping[str, str]) -> Iterator[UsageError]:
    """What is wrong with the annotations of a pod, as far as they are ours."""
    lives = known()
    life = lives.lives.get(found.get(LIFE, ""))
    if LIFE in found and life is None:
        yield UsageError(
            f"there is no life {found[LIFE]!r}", where=LIFE, mend=documents.suggestion(found[LIFE], lives.lives)
        )
    for key, value in found.items():
        name = key.removeprefix(PREFIX)
        if name == key or key == LIFE or name in lives.holds:
            continue
        if name not in lives.forms:
            mend = documents.suggestion(name, ("life", *lives.forms, *lives.holds))
            yield UsageError("unknown annotation", where=key, mend=mend)
        elif not re.fullmatch(_FORMS[lives.forms[name]], value):
            yield UsageError(f"{value!r} has not the right form", where=key, mend=f"give {_WORDS[lives.forms[name]]}")
        elif life is None and LIFE not in found:
            yield UsageError("means nothing without a life", where=key, mend=f"add {LIFE}")
        elif life is not None and name not in life.parameters:
            mend = documents.suggestion(name, life.parameters)
            yield UsageError(f"means nothing to the life {life.name}", where=key, mend=mend)


def mistakes_of_set(manifest: Mapping[str, Any]) -> Iterator[UsageError]:
    """What is wrong with the annotations that a PodCliqueSet gives its pods."""
    template = (manifest.get("spec") or {}).get("template") or {}
    for clique in template.get("cliques") or ():
        for mistake in mistakes(clique.get("annotations") or {}):
            yield UsageError(mistake.what, where=f"clique {clique.get('name')}: {mistake.where}", mend=mistake.mend)
