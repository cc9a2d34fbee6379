"""Kubernetes' syntax of names, labels, annotations and environment variables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from reference_impl.admission.errors import ErrorType, FieldError, invalid

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
ANNOTATIONS_LIMIT = 256 * 1024
"""Maximum total size of an object's annotations in bytes."""


def is_label_name(text: str) -> bool:
    """Return whether the text is a DNS-1123 label."""
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None


def is_subdomain(text: str) -> bool:
    """Return whether the text is a DNS-1123 subdomain."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None


def is_variable(text: str) -> bool:
    """Return whether the text is a valid name of an environment variable (VAL-42)."""
    return _VARIABLE.fullmatch(text) is not None


def is_qualified_name(text: str) -> bool:
    """Return whether the text is a valid key of a label or an annotation."""
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and len(name) <= 63 and _NAME_PART.fullmatch(name) is not None


def label_errors(path: str, labels: Mapping[str, str] | None) -> Iterator[FieldError]:
    """Validate the keys and values of labels (VAL-14)."""
    for key, value in sorted((labels or {}).items()):
        if not is_qualified_name(key):
            yield invalid(path, key, "is not a valid label key")
        if value and (len(value) > 63 or not _NAME_PART.fullmatch(value)):
            yield invalid(path, value, f"is not a valid value of the label {key}")


def annotation_errors(path: str, annotations: Mapping[str, str] | None) -> Iterator[FieldError]:
    """Validate the keys and the total size of annotations (VAL-15)."""
    size = 0
    for key, value in sorted((annotations or {}).items()):
        size += len(key.encode(errors="replace")) + len(value.encode(errors="replace"))
        if not is_qualified_name(key.lower()):
            yield invalid(path, key, "is not a valid annotation key")
    if size > ANNOTATIONS_LIMIT:
        yield FieldError(path, ErrorType.TOO_LONG, detail=f"may not be more than {ANNOTATIONS_LIMIT} bytes")


def mappings(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects of a list with their indices. Skip all other items."""
    for i, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, dict):
            yield i, item


def duplicates(values: list[str]) -> list[str]:
    """Return the values that occur more than once, in order of appearance."""
    return [value for value, count in Counter(values).items() if count > 1]
