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
    return terms != [] and all(_term_matches(term.strip(), labels(pod)) for term in terms)


def _term_matches(term: str, object_labels: Mapping[str, str]) -> bool:
    if match := _AMONG.fullmatch(term):
        values = {value.strip() for value in match["values"].split(",")}
        return (object_labels.get(match["key"]) in values) is (match["operator"] == "in")
    if match := _EQUAL.fullmatch(term):
        return object_labels.get(match[1]) == match[2]
    key, operator, value = (part.strip() for part in term.partition("!="))
    if operator:
        return object_labels.get(key) != value
    return key in object_labels if not key.startswith("!") else key[1:].strip() not in object_labels


def matches(selector: object, object_labels: Mapping[str, str]) -> bool:
    """Return whether a `labelSelector` matches labels: an empty selector matches everything, and a missing one
    nothing."""
    if not isinstance(selector, Mapping):
        return False
    exact_labels = at(selector, "matchLabels")
    pairs = exact_labels.items() if isinstance(exact_labels, Mapping) else ()
    expressions = items(selector, "matchExpressions")
    return all(object_labels.get(key) == value for key, value in pairs) and all(
        _matches(e, object_labels) for e in expressions
    )


def _matches(expression: Document, object_labels: Mapping[str, str]) -> bool:
    key, values = text(expression, "key"), texts(expression, "values")
    match text(expression, "operator"):
        case "In":
            return object_labels.get(key) in values
        case "NotIn":
            return object_labels.get(key) not in values
        case "Exists":
            return key in object_labels
        case _:
            return key not in object_labels
