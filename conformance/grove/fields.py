"""Read fields of objects that may be malformed, because a judged implementation may omit any field, or set it to any
value.

Nothing here raises. A field that is missing or has the wrong type yields a value that no correct field has: None for a
number or boolean, the empty string for text, or an empty list or mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]
"""A Kubernetes object, or a part of one, as decoded from JSON."""

Step = str | int

MAX_DIGITS = 20
"""Number of digits of the largest unsigned integer of 64 bits, such as a revision."""

_MAPPING = (dict, Mapping)
"""Types for isinstance. Decoded objects are dictionaries, for which the check is much cheaper than with Mapping
alone."""


def at(document: object, *path: Step) -> object:
    """Return the value at a path of keys and indices; None if there is nothing."""
    here: Any = document
    for step in path:
        if isinstance(step, str) and isinstance(here, _MAPPING):
            here = here.get(step)
        elif isinstance(step, int) and isinstance(here, list) and -len(here) <= step < len(here):
            here = here[step]
        else:
            return None
    return here


def text(document: object, *path: Step) -> str:
    """Return the text at a path; empty if there is none."""
    value = at(document, *path)
    return value if isinstance(value, str) else ""


def number(document: object, *path: Step) -> int | None:
    """Return the integer at a path; None if there is none."""
    value = at(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def decimal(digits: str) -> int | None:
    """Return the number that a text of decimal digits denotes; None for any other text. A number that Kubernetes cannot
    represent is none: Python converts at most 4,300 digits, and superscripts are digits, too."""
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= MAX_DIGITS else None


def count(document: object, *path: Step) -> int:
    """Return the integer at a path, or 0 if there is none, because Kubernetes omits zeros. Use this function for sums
    and comparisons."""
    return number(document, *path) or 0


def truth(document: object, *path: Step) -> bool | None:
    """Return the boolean at a path; None if there is none."""
    value = at(document, *path)
    return value if isinstance(value, bool) else None


def items(document: object, *path: Step) -> list[Document]:
    """Return the objects of the list at a path. Items of other types are left out."""
    value = at(document, *path)
    return [item for item in value if isinstance(item, _MAPPING)] if isinstance(value, list) else []


def texts(document: object, *path: Step) -> list[str]:
    """Return the texts of the list at a path. Items of other types are left out."""
    value = at(document, *path)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def mapping(document: object, *path: Step) -> dict[str, str]:
    """Return the mapping from text to text at a path, such as labels. Other values are left out."""
    value = at(document, *path)
    return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, Mapping) else {}


def name(document: object) -> str:
    """Return `metadata.name`; empty if there is none."""
    return text(document, "metadata", "name")


def uid(document: object) -> str:
    """Return `metadata.uid`; empty if there is none."""
    return text(document, "metadata", "uid")


def label(document: object, key: str) -> str:
    """Return the value of a label; empty if the object does not have it."""
    return text(document, "metadata", "labels", key)


def labels(document: object) -> dict[str, str]:
    """Return the labels of an object."""
    return mapping(document, "metadata", "labels")


def finalizers(document: object) -> list[str]:
    """Return the finalizers of an object."""
    return texts(document, "metadata", "finalizers")


def terminating(document: object) -> bool:
    """Return whether the object has a deletion timestamp."""
    return text(document, "metadata", "deletionTimestamp") != ""


def controller(document: object) -> Document:
    """Return the owner reference with `controller: true`; an empty mapping if there is none."""
    for reference in items(document, "metadata", "ownerReferences"):
        if reference.get("controller") is True:
            return reference
    return {}


def condition(document: object, condition_type: str) -> Document:
    """Return the status condition of a type; an empty mapping if there is none."""
    for entry in items(document, "status", "conditions"):
        if entry.get("type") == condition_type:
            return entry
    return {}


def condition_is(document: object, condition_type: str) -> str:
    """Return the status of a condition: `True`, `False` or `Unknown`; empty if there is no such condition."""
    return text(condition(document, condition_type), "status")


def pruned(expected: object, observed: object) -> object:
    """Return `observed` reduced to the fields of `expected`.

    Additions by other components (defaults of the API server, tolerations, injected variables and volumes) are left
    out, so that the result equals `expected` if `observed` has everything that is expected. List items are matched by
    `name`; items without a name are compared as a whole.
    """
    if isinstance(expected, Mapping):
        if not isinstance(observed, Mapping):
            return observed
        return {key: pruned(value, at(observed, key)) for key, value in expected.items()}
    if isinstance(expected, list) and isinstance(observed, list):
        return [_counterpart(item, observed) for item in expected]
    return observed


def _counterpart(expected: object, observed: list[object]) -> object:
    if isinstance(expected, Mapping) and "name" in expected:
        return next((pruned(expected, item) for item in observed if at(item, "name") == expected["name"]), None)
    return next((expected for item in observed if pruned(expected, item) == expected), None)
