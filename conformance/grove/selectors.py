"""Evaluate label selectors: as text, as in the status of a scale subresource, and as structures, as in pod specs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from conformance.grove.fields import Document, at, items, labels, text, texts

_TERM = re.compile(r"[^,(]+(?:\([^)]*\))?")
_EQUAL = re.compile(r"\s*([^\s=!]+)\s*==?\s*([^\s=]*)\s*")
_AMONG = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)")


def selects(selector: str, pod: Document) -> bool:
    """Return whether a selector in text form selects an object. An empty selector selects nothing here."""
    terms = _TERM.findall(selector)
    return terms != [] and all(_holds(term.strip(), labels(pod)) for term in terms)


def _holds(term: str, tags: Mapping[str, str]) -> bool:
    if match := _AMONG.fullmatch(term):
        values = {value.strip() for value in match["values"].split(",")}
        return (tags.get(match["key"]) in values) is (match["operator"] == "in")
    if match := _EQUAL.fullmatch(term):
        return tags.get(match[1]) == match[2]
    key, unequal, value = (part.strip() for part in term.partition("!="))
    if unequal:
        return tags.get(key) != value
    return key in tags if not key.startswith("!") else key[1:].strip() not in tags


def matches(selector: object, tags: Mapping[str, str]) -> bool:
    """Return whether a `labelSelector` matches labels: an empty selector matches everything, and a missing one
    nothing."""
    if not isinstance(selector, Mapping):
        return False
    exact = at(selector, "matchLabels")
    pairs = exact.items() if isinstance(exact, Mapping) else ()
    expressions = items(selector, "matchExpressions")
    return all(tags.get(key) == value for key, value in pairs) and all(_matches(e, tags) for e in expressions)


def _matches(expression: Document, tags: Mapping[str, str]) -> bool:
    key, values = text(expression, "key"), texts(expression, "values")
    match text(expression, "operator"):
        case "In":
            return tags.get(key) in values
        case "NotIn":
            return tags.get(key) not in values
        case "Exists":
            return key in tags
        case _:
            return key not in tags
