"""Reading objects that may be wrong: a judged implementation may leave out any field, or put anything in it.

Nothing here raises. A missing field or one of the wrong type gives a value that equals no right one: None for a number
or a truth, the empty string for a text, an empty list or mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]
"""A Kubernetes object, or a part of one, as decoded from JSON."""

Step = str | int


def at(document: object, *path: Step) -> object:
    """What stands at a path of keys and indices, None where there is nothing."""
    here: Any = document
    for step in path:
        if isinstance(step, str) and isinstance(here, Mapping):
            here = here.get(step)
        elif isinstance(step, int) and isinstance(here, list) and -len(here) <= step < len(here):
            here = here[step]
        else:
            return None
    return here


def text(document: object, *path: Step) -> str:
    value = at(document, *path)
    return value if isinstance(value, str) else ""


def number(document: object, *path: Step) -> int | None:
    value = at(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def count(document: object, *path: Step) -> int:
    """A number for sums and comparisons: a missing one counts as 0, which is how Kubernetes leaves out zeros."""
    return number(document, *path) or 0


def truth(document: object, *path: Step) -> bool | None:
    value = at(document, *path)
    return value if isinstance(value, bool) else None


def items(document: object, *path: Step) -> list[Document]:
    """The objects in a list; what is no object is left out."""
    value = at(document, *path)
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def texts(document: object, *path: Step) -> list[str]:
    value = at(document, *path)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def mapping(document: object, *path: Step) -> dict[str, str]:
    """A mapping from texts to texts, such as labels; other values are left out."""
    value = at(document, *path)
    return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, Mapping) else {}


def name(document: object) -> str:
    return text(document, "metadata", "name")


def uid(document: object) -> str:
    return text(document, "metadata", "uid")


def label(document: object, key: str) -> str:
    return text(document, "metadata", "labels", key)


def labels(document: object) -> dict[str, str]:
    return mapping(document, "metadata", "labels")


def finalizers(document: object) -> list[str]:
    return texts(document, "metadata", "finalizers")


def terminating(document: object) -> bool:
    return text(document, "metadata", "deletionTimestamp") != ""


def controller(document: object) -> Document:
    """The owner reference with `controller: true`, an empty mapping where there is none."""
    for reference in items(document, "metadata", "ownerReferences"):
        if reference.get("controller") is True:
            return reference
    return {}


def condition(document: object, kind: str) -> Document:
    """The status condition of a type, an empty mapping where there is none."""
    for entry in items(document, "status", "conditions"):
        if entry.get("type") == kind:
            return entry
    return {}


def condition_is(document: object, kind: str) -> str:
    """`True`, `False`, `Unknown`, or the empty string where the condition is absent."""
    return text(condition(document, kind), "status")
