"""Label selectors as text, as the status of a scale subresource contains them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from conformance.grove.fields import Document, labels

_TERM = re.compile(r"[^,(]+(?:\([^)]*\))?")
_EQUAL = re.compile(r"\s*([^\s=!]+)\s*==?\s*([^\s=]*)\s*")
_AMONG = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^)]*)\)")


def selects(selector: str, pod: Document) -> bool:
    """Return whether a selector selects an object. An empty one selects nothing here."""
    terms = _TERM.findall(selector)
    return terms != [] and all(_holds(term.strip(), labels(pod)) for term in terms)


def _holds(term: str, tags: Mapping[str, str]) -> bool:
    if found := _AMONG.fullmatch(term):
        values = {value.strip() for value in found["values"].split(",")}
        return (tags.get(found["key"]) in values) is (found["operator"] == "in")
    if found := _EQUAL.fullmatch(term):
        return tags.get(found[1]) == found[2]
    key, unequal, value = (part.strip() for part in term.partition("!="))
    if unequal:
        return tags.get(key) != value
    return key in tags if not key.startswith("!") else key[1:].strip() not in tags
